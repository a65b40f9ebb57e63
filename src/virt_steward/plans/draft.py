"""From intents to a plan: each is previewed by a dry run, and what would change is shown."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec

from virt_steward.apis.virtplatformconfig import PlanItem, TakenField
from virt_steward.kube.errors import NotServed, Refused
from virt_steward.objects.diff import changes, unified
from virt_steward.objects.fieldpaths import Field
from virt_steward.objects.normalize import sanitized
from virt_steward.objects.paths import Pointer
from virt_steward.plans.annotations import with_annotations, without_annotations
from virt_steward.plans.fields import only, pointer_to
from virt_steward.plans.fingerprint import fields_hash
from virt_steward.plans.intent import worst
from virt_steward.platform.health import Ready
from virt_steward.ssa.locks import Stale
from virt_steward.ssa.ownership import carried
from virt_steward.ssa.preview import Changes, Conflicts, Creates, Reowns, Unchanged, preview
from virt_steward.ssa.refusals import RefusedIntent

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from virt_steward.apis.virtplatformconfig import Impact
    from virt_steward.kube.client import Client
    from virt_steward.kube.errors import Claim
    from virt_steward.objects.identity import Ref
    from virt_steward.plans.intent import Intent, Object
    from virt_steward.plans.owner import PlanOwner
    from virt_steward.platform.health import Health
    from virt_steward.ssa.managers import FieldManager
    from virt_steward.ssa.preview import Preview

IN_PLACE = "Already in desired state"
LONGEST_DIFF = 131_072
ROOM_FOR_A_NOTE = 80
LONGEST_MESSAGE = 2048


@dataclass(frozen=True, slots=True)
class Drafted:
    """A plan. Items that change nothing are Completed from the start; `judged` then checks whether they are ready."""

    items: tuple[PlanItem, ...]


@dataclass(frozen=True, slots=True)
class TargetsMoving:
    """A target changed while the plan was drafted: try again."""

    why: str


@dataclass(frozen=True, slots=True)
class DraftRejected:
    """The API server refuses an item."""

    item: str
    why: str


Draft = Drafted | TargetsMoving | DraftRejected


async def draft(
    client: Client, owner: PlanOwner, intents: Iterable[Intent], targets: Mapping[Ref, Object | None]
) -> Draft:
    """Preview each intent by a dry run, or by two where fields of other managers are taken over."""
    tried = await asyncio.gather(*(_item(client, owner, intent, targets.get(intent.ref)) for intent in intents))
    for outcome in tried:
        if not isinstance(outcome, PlanItem):
            return outcome
    return Drafted(tuple(item for item in tried if isinstance(item, PlanItem)))


async def _item(
    client: Client, owner: PlanOwner, intent: Intent, live: Object | None
) -> PlanItem | TargetsMoving | DraftRejected:
    if intent.moot:
        return _moot(intent)
    try:
        found = await _previewed(client, owner, intent, live)
    except NotServed:
        raise
    except (Refused, RefusedIntent) as refusal:
        return DraftRejected(intent.name, str(refusal))
    return (
        TargetsMoving(f"{intent.ref} changed while the plan was drafted: {found.because}")
        if isinstance(found, Stale)
        else found
    )


def judged(item: PlanItem, health: Health) -> PlanItem:
    """The item by the health of its target: one that changes nothing is InProgress while its target is not ready.

    For example, an earlier plan has written a MachineConfig and was cut short: the new plan has nothing to write, but
    still waits until the nodes have rebooted.
    """
    if item.state != "Completed" or not item.desired_state or isinstance(health, Ready):
        return item
    message = f"{item.message}, but not ready yet: {health.message}"[:LONGEST_MESSAGE]
    return msgspec.structs.replace(item, state="InProgress", message=message)


def sent(intent: Object, live: Object | None, manager: FieldManager) -> Object:
    """What is applied: the intent, and what was dropped from it but no other manager owns yet."""
    return intent if live is None else carried(intent, live, manager)


async def _previewed(client: Client, owner: PlanOwner, intent: Intent, live: Object | None) -> PlanItem | Stale:
    wanted = with_annotations(intent.desired, owner.name, fields_hash(intent.desired, intent.fields))
    tried = await preview(client, sent(wanted, live, owner.manager), owner.manager, live)
    if isinstance(tried, Stale):
        return tried
    planned = _planned(tried)
    diff = _diff(live, planned, intent.fields)
    takes = tuple(TakenField(claim.manager, claim.field) for claim in _claims(tried)) if diff else ()
    return PlanItem(
        name=intent.name,
        target_ref=intent.target,
        impact_severity=_impact(intent, live, diff, takes),
        state="Pending" if diff else "Completed",
        message=_message(intent, takes) if diff else IN_PLACE,
        diff=fitted(diff),
        desired_state=intent.desired,
        managed_fields=intent.fields,
        takes=takes,
        hash=fields_hash(live, intent.fields),
        planned_hash=fields_hash(planned, intent.fields),
    )


def _moot(intent: Intent) -> PlanItem:
    return PlanItem(intent.name, intent.target, "Low", state="Completed", message=intent.moot)


def _planned(tried: Preview) -> Object:
    match tried:
        case Unchanged(live):
            return live
        case Creates(planned) | Changes(_, planned) | Reowns(_, planned) | Conflicts(_, planned, _):
            return planned
    raise TypeError(f"{tried} has no result")


def _claims(tried: Preview) -> list[Claim]:
    claims = tried.claims if isinstance(tried, Conflicts) else frozenset()
    return sorted(claims, key=lambda claim: (claim.field, claim.manager))


def _diff(live: Object | None, planned: Object, fields: tuple[str, ...]) -> str:
    """What changes, with only our own fields as context."""
    after = without_annotations(sanitized(planned))
    if live is None:
        return unified(None, after)
    before = without_annotations(sanitized(live))
    ours = [pointer_to(field) for field in fields]
    changed = [_down_to_a_list(change.path) for change in changes(before, after)]
    if not changed:
        return ""
    shown = [*ours, *(pointer for pointer in changed if not any(_is_within(pointer, one) for one in ours))]
    return unified(only(before, shown), only(after, shown))


def fitted(diff: str) -> str:
    """Cut a diff to what a status can hold, and note how much is left out."""
    if len(diff) <= LONGEST_DIFF:
        return diff
    kept = diff[: LONGEST_DIFF - ROOM_FOR_A_NOTE].rpartition("\n")[0]
    left_out = len(diff[len(kept) :].splitlines()) - 1
    return f"{kept}\n\\ {left_out} more lines are not shown\n"


def _down_to_a_list(path: Iterable[object]) -> Pointer:
    tokens: list[str] = []
    for step in path:
        if not isinstance(step, Field):
            break
        tokens.append(step.name)
    return Pointer(tuple(tokens))


def _is_within(pointer: Pointer, outer: Pointer) -> bool:
    return pointer.tokens[: len(outer.tokens)] == outer.tokens


def _impact(intent: Intent, live: Object | None, diff: str, takes: tuple[TakenField, ...]) -> Impact:
    if not diff:
        return "Low"
    usual = intent.impacts.creates if live is None else intent.impacts.changes
    return worst((usual, "Medium")) if takes else usual


def _message(intent: Intent, takes: tuple[TakenField, ...]) -> str:
    if not takes:
        return intent.message
    listed = ", ".join(f"{one.field} of {one.manager}" for one in takes)
    return f"{intent.message}; takes over {listed}"[:LONGEST_MESSAGE]
