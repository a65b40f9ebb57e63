"""How the plan of this version compares with one that another version has executed."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from virt_steward.apis.virtplatformconfig import PlanItem
from virt_steward.controllers.advisor.observation import VersionChange
from virt_steward.objects.canonical import same
from virt_steward.plans.draft import IN_PLACE
from virt_steward.plans.fields import values
from virt_steward.plans.fingerprint import fields_hash
from virt_steward.plans.intent import ref_to

if TYPE_CHECKING:
    from collections.abc import Sequence

    from virt_steward.controllers.advisor.profiles.profile import Profile, ProfileContext
    from virt_steward.plans.intent import Intent


def compare_versions(profile: Profile, context: ProfileContext, done: Sequence[PlanItem]) -> VersionChange:
    """Compare the present intents with the executed items, and with the cluster."""
    # What others have changed since is drift and not new logic, so the targets are taken as they were planned.
    planned = {ref_to(item.target_ref): item.desired_state or None for item in done}
    wanted = {one.name: one for one in profile.intents(replace(context, targets={**context.targets, **planned}))}
    before = {item.name: item for item in done}
    differs = tuple(name for name in {**before, **wanted} if _differ(before.get(name), wanted.get(name)))
    if not differs:
        return VersionChange()
    intents = profile.intents(context)
    if all(intent.moot or _holds(intent, context) for intent in intents):
        return VersionChange(differs, tuple(_in_place(intent, context) for intent in intents))
    return VersionChange(differs)


def _differ(item: PlanItem | None, intent: Intent | None) -> bool:
    if item is None or intent is None:
        return True
    desired = {} if intent.moot else intent.desired
    fields = () if intent.moot else intent.fields
    return (item.target_ref, item.managed_fields) != (intent.target, fields) or not same(item.desired_state, desired)


def _holds(intent: Intent, context: ProfileContext) -> bool:
    live = context.targets.get(intent.ref)
    return live is not None and same(values(live, intent.fields), values(intent.desired, intent.fields))


def _in_place(intent: Intent, context: ProfileContext) -> PlanItem:
    if intent.moot:
        return PlanItem(intent.name, intent.target, "Low", state="Completed", message=intent.moot)
    found = fields_hash(context.targets.get(intent.ref), intent.fields)
    return PlanItem(
        name=intent.name,
        target_ref=intent.target,
        impact_severity="Low",
        state="Completed",
        message=IN_PLACE,
        desired_state=intent.desired,
        managed_fields=intent.fields,
        hash=found,
        planned_hash=found,
    )
