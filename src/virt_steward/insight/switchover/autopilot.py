"""The autopilot's part: what ours would do to each object at first contact, and which objects it would not manage."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING

from virt_steward.catalog.aliases import current_name
from virt_steward.catalog.load import MANAGED_BY, load
from virt_steward.controllers.autopilot.annotation_keys import ROLLOUT, SCOPE
from virt_steward.controllers.autopilot.overrides.scope import Idle, Only
from virt_steward.controllers.autopilot.rollouts.policy import REBOOTING
from virt_steward.controllers.autopilot.verdicts import SkipReason
from virt_steward.insight.assets.changes import ChangeAction, preview_changes
from virt_steward.insight.assets.impact import find_impacts
from virt_steward.insight.assets.survey import NoPlatform, survey
from virt_steward.insight.switchover.findings import Effect, SwitchFinding, unknown
from virt_steward.kube.client import Selection
from virt_steward.kube.errors import Forbidden, NotServed
from virt_steward.objects.diff import unified
from virt_steward.objects.identity import Kind, Ref
from virt_steward.objects.meta import Existing
from virt_steward.plans.draft import fitted
from virt_steward.ssa.managers import AUTOPILOT

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime
    from typing import Any

    from virt_steward.catalog.load import Catalog
    from virt_steward.controllers.autopilot.options import AutopilotOptions
    from virt_steward.insight.assets.changes import AssetChange
    from virt_steward.insight.assets.impact import RebootImpact
    from virt_steward.kube.client import Client, Reader

ONLY_THEIRS = (Kind("ifo.kubevirt.io", "OperationRuleSet", "operationrulesets"),)
"""Kinds of objects that only the Go autopilot writes."""
CHOSEN = frozenset((SkipReason.OUT_OF_SCOPE, SkipReason.EXCLUDED, SkipReason.UNMANAGED))
"""A person chose that the object is not managed, and both implementations obey."""

AS_5_0 = "--activation opt-out, as release 5.0 of the Go autopilot does"


class Contact(StrEnum):
    """What ours would do to an object."""

    CREATE = "create"
    CHANGE = "change"
    REOWN = "take ownership"
    LEAVE = "leave"
    FAIL = "fail"


@dataclass(frozen=True, slots=True)
class AssetContact:
    asset: str
    ref: Ref
    contact: Contact
    why: str = ""
    diff: str = ""
    disruption: str = ""
    staged: str = ""
    """What the change waits for; empty if it would be written at once."""
    alerts_gone: tuple[str, ...] = ()
    """Names of alerts that only the live PrometheusRule has."""


@dataclass(frozen=True, slots=True)
class AutopilotSeen:
    idle: str = ""
    """Why ours would manage nothing."""
    is_off: bool = False
    """The annotation says false, which both obey."""
    contacts: tuple[AssetContact, ...] = ()
    others: tuple[Ref, ...] = ()
    """Objects of the Go autopilot that belong to no asset of ours."""
    obsolete: tuple[AssetChange, ...] = ()
    """Those that ours deletes, because a tombstone names them."""
    managed: int = 0
    """Objects that carry the label of the autopilot."""
    renamed: tuple[str, ...] = ()
    """Names in the allow-list that have another name here."""
    problems: tuple[str, ...] = ()

    @property
    def traces(self) -> tuple[str, ...]:
        return (f"Objects with the label {MANAGED_BY}: {self.managed}",) if self.managed else ()


async def observe_autopilot(client: Client, options: AutopilotOptions, now: datetime) -> AutopilotSeen:
    catalog = load()
    labelled, problems = await _labelled(client, catalog)
    try:
        found = await survey(client, catalog, options, now)
    except NoPlatform as error:
        return AutopilotSeen(str(error), managed=len(labelled), others=labelled, problems=problems)
    except Forbidden as error:
        return AutopilotSeen(managed=len(labelled), problems=(*problems, str(error)))
    scope = found.seen.scope
    ours = {found.view.ref(asset) for asset in catalog.assets}
    obsolete = {stone.ref for stone in catalog.tombstones}
    others = tuple(ref for ref in labelled if ref not in ours | obsolete)
    if isinstance(scope, Idle):
        is_off = found.seen.context.hco.annotations.get(SCOPE, "").strip() == "false"
        why = f'{scope.why}. To turn it on, set {SCOPE}: "true" on the HyperConverged, or run it with {AS_5_0}'
        return AutopilotSeen(why, is_off, others=labelled, managed=len(labelled), problems=problems)
    changes = await preview_changes(client, found)
    impacts = await find_impacts(client, found, changes)
    contacts = (_contact(change, impacts.get(change.ref)) for change in changes if not change.is_obsolete)
    return AutopilotSeen(
        contacts=tuple(one for one in contacts if one),
        others=others,
        obsolete=tuple(change for change in changes if change.is_obsolete),
        managed=len(labelled),
        renamed=tuple(sorted(scope.renamed)) if isinstance(scope, Only) else (),
        problems=problems,
    )


async def _labelled(reader: Reader, catalog: Catalog) -> tuple[tuple[Ref, ...], tuple[str, ...]]:
    """Find what carries the autopilot's label, of all kinds that either implementation writes."""
    kinds = sorted(
        {
            *(asset.object.kind for asset in catalog.assets),
            *(stone.ref.kind for stone in catalog.tombstones),
            *ONLY_THEIRS,
        }
    )
    found: list[Ref] = []
    problems: list[str] = []
    selection = Selection(labels=f"{MANAGED_BY}={AUTOPILOT.name}", metadata_only=True)
    for kind, answer in zip(
        kinds, await asyncio.gather(*(_list(reader, kind, selection) for kind in kinds)), strict=True
    ):
        if isinstance(answer, str):
            problems.append(answer)
        else:
            found += [Ref(kind, one.metadata.key) for one in answer]
    return tuple(sorted(found)), tuple(problems)


async def _list(reader: Reader, kind: Kind, selection: Selection) -> list[Existing] | str:
    try:
        return await reader.list(kind, selection, Existing)
    except NotServed:
        return []
    except Forbidden as error:
        return str(error)


def _contact(change: AssetChange, impact: RebootImpact | None) -> AssetContact | None:
    """None: nothing would be written, and nothing is lost."""
    found = AssetContact(change.asset, change.ref, Contact.LEAVE, change.message, staged=change.staged)
    disruption = impact.message if impact else ""
    match change.action:
        case ChangeAction.UNKNOWN if change.skipped is None:
            return replace(found, contact=Contact.FAIL)
        case ChangeAction.SKIP | ChangeAction.UNKNOWN:
            return found if _is_managed(change.live) and change.skipped not in CHOSEN else None
        case ChangeAction.OWN:
            return replace(found, contact=Contact.REOWN)
        case ChangeAction.CREATE | ChangeAction.UPDATE:
            contact = Contact.CREATE if change.action is ChangeAction.CREATE else Contact.CHANGE
            gone = tuple(sorted(_alerts(change.live) - _alerts(change.planned)))
            diff = fitted(unified(change.live, change.planned))
            return replace(found, contact=contact, diff=diff, disruption=disruption, alerts_gone=gone)
    return None


def _is_managed(live: dict[str, Any] | None) -> bool:
    return live is not None and live["metadata"].get("labels", {}).get(MANAGED_BY) == AUTOPILOT.name


def _alerts(rule: dict[str, Any] | None) -> set[str]:
    groups = rule.get("spec", {}).get("groups", ()) if rule and rule.get("kind") == "PrometheusRule" else ()
    return {one["alert"] for group in groups for one in group.get("rules", ()) if "alert" in one}


def autopilot_findings(seen: AutopilotSeen) -> Iterator[SwitchFinding]:
    for problem in seen.problems:
        yield unknown("Objects of the autopilot", problem)
    if seen.idle and not seen.is_off and seen.managed:
        message = (
            f"virt-steward would be idle, and the {seen.managed} objects of the Go autopilot would stay as they are, "
            f"managed by nobody: {seen.idle}"
        )
        yield SwitchFinding(Effect.CHANGE, "HyperConverged", message)
        return
    for name in seen.renamed:
        yield SwitchFinding(Effect.NOTE, f"Asset {name}", f"is called {current_name(name)} here; both names work")
    for contact in seen.contacts:
        yield from _contact_findings(contact)
    for change in seen.obsolete:
        fate = f"would be kept for now: {change.staged}" if change.staged else "would be deleted"
        yield SwitchFinding(Effect.CHANGE, str(change.ref), f"{change.message}; {fate}")
    for ref in () if seen.idle else seen.others:
        message = "stays as it is, managed by nobody: virt-steward has no asset for it, and deletes nothing of others"
        yield SwitchFinding(Effect.CHANGE, str(ref), message)


def _contact_findings(contact: AssetContact) -> Iterator[SwitchFinding]:
    subject = str(contact.ref)
    if contact.contact is Contact.FAIL:
        yield unknown(subject, contact.why)
    elif contact.contact is Contact.REOWN:
        yield SwitchFinding(Effect.NOTE, subject, "no value changes; virt-steward would own its fields")
    elif contact.contact is Contact.LEAVE:
        message = f"stays as it is, managed by nobody: asset {contact.asset} is not applied here: {contact.why}"
        yield SwitchFinding(Effect.CHANGE, subject, message)
    else:
        message = _fate(contact)
        yield SwitchFinding(Effect.CHANGE, subject, message, contact.diff, contact.disruption)
    if contact.alerts_gone:
        named = ", ".join(contact.alerts_gone)
        message = f"these alerts would no longer exist; adapt routes and silences that name them: {named}"
        yield SwitchFinding(Effect.CHANGE, subject, message)


def _fate(contact: AssetContact) -> str:
    verb = "created" if contact.contact is Contact.CREATE else "changed"
    if contact.staged:
        return (
            f"would be staged, not {verb} (asset {contact.asset}): {contact.staged}. It is also applied once you "
            "release it"
        )
    text = f"would be {verb} (asset {contact.asset})"
    if contact.ref.kind not in REBOOTING:
        return text
    return f"{text}, and nodes reboot at once. To review it first, set {ROLLOUT}: approve on the HyperConverged"
