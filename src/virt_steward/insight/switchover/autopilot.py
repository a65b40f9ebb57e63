"""The autopilot's part: what ours would do to each object at first contact, and which objects it would not manage."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING

from virt_steward.catalog.aliases import current_name
from virt_steward.catalog.load import MANAGED_BY, load
from virt_steward.controllers.autopilot.annotation_keys import ROLLOUT, SCOPE
from virt_steward.controllers.autopilot.decide import Wanted
from virt_steward.controllers.autopilot.overrides.scope import Idle, Only
from virt_steward.controllers.autopilot.rollouts.policy import REBOOTING
from virt_steward.controllers.autopilot.verdicts import AssetFailed, AssetSkipped, SkipReason
from virt_steward.insight.assets.survey import NoPlatform, survey, target_state
from virt_steward.insight.reading import listed_if_served
from virt_steward.insight.switchover.findings import Effect, SwitchFinding, unknown
from virt_steward.kube.client import Selection
from virt_steward.kube.errors import Forbidden, NotServed, Refused
from virt_steward.objects.diff import unified
from virt_steward.objects.identity import Kind, Ref
from virt_steward.objects.meta import Existing
from virt_steward.objects.normalize import sanitized
from virt_steward.plans.blast_radius import blast_radius, take_census
from virt_steward.plans.draft import fitted
from virt_steward.platform.machineconfigs import MACHINE_CONFIG
from virt_steward.platform.sources import POOLS
from virt_steward.ssa.locks import Stale
from virt_steward.ssa.managers import AUTOPILOT
from virt_steward.ssa.preview import Changes, Creates, Reowns, preview
from virt_steward.ssa.refusals import RefusedIntent

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime
    from typing import Any

    from virt_steward.catalog.asset import Asset
    from virt_steward.catalog.load import Catalog
    from virt_steward.controllers.autopilot.options import AutopilotOptions
    from virt_steward.insight.assets.survey import Survey
    from virt_steward.kube.client import Client, Reader
    from virt_steward.ssa.preview import Preview

ONLY_THEIRS = (Kind("ifo.kubevirt.io", "OperationRuleSet", "operationrulesets"),)
"""Kinds of objects that only the Go autopilot writes."""
CHOSEN = frozenset((SkipReason.OUT_OF_SCOPE, SkipReason.EXCLUDED, SkipReason.UNMANAGED))
"""A person chose that the object is not managed, and both implementations obey."""

ALERTS_OF_5_0 = "VirtPlatformAutopilot"
"""How the names of its alerts begin; those of 4.22 and ours have no Autopilot in them."""
METRICS_OF_5_0 = ("kubevirt_autopilot_dependency_opted_in", "kubevirt_autopilot_render_failed")


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
    obsolete: tuple[Ref, ...] = ()
    """Those of them that ours deletes, because a tombstone names them."""
    managed: int = 0
    """Objects that carry the label of the autopilot."""
    renamed: tuple[str, ...] = ()
    """Names in the allow-list that have another name here."""
    problems: tuple[str, ...] = ()
    has_predecessor: bool = False
    """Whether ours meets objects of the Go autopilot, so that it stages what it would create at once elsewhere."""

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
        why = f'{scope.why}. To turn ours on, set {SCOPE}: "true" on the HyperConverged'
        return AutopilotSeen(why, is_off, others=labelled, managed=len(labelled), problems=problems)
    contacts = await asyncio.gather(*(_contact(client, found, asset) for asset in catalog.assets))
    return AutopilotSeen(
        contacts=await _with_disruption(client, found, [one for one in contacts if one]),
        others=others,
        obsolete=tuple(ref for ref in labelled if ref in obsolete),
        managed=len(labelled),
        renamed=tuple(sorted(scope.renamed)) if isinstance(scope, Only) else (),
        problems=problems,
        has_predecessor=found.view.has_predecessor(),
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


async def _contact(client: Client, found: Survey, asset: Asset) -> AssetContact | None:
    """None: nothing would be written, and nothing is lost."""
    ref, outcome, live = found.view.ref(asset), found.decision(asset).outcome, found.live(asset)
    match outcome:
        case AssetFailed(_, message):
            return AssetContact(asset.name, ref, Contact.FAIL, message)
        case AssetSkipped(reason, message):
            is_managed = live is not None and live["metadata"].get("labels", {}).get(MANAGED_BY) == AUTOPILOT.name
            lost = is_managed and reason not in CHOSEN
            return AssetContact(asset.name, ref, Contact.LEAVE, message) if lost else None
        case Wanted() as wanted if not wanted.is_only_watched:
            return await _previewed(client, found, asset)
    return None


async def _previewed(client: Client, found: Survey, asset: Asset) -> AssetContact | None:
    ref, intent, live = found.view.ref(asset), target_state(found, asset).intent, found.live(asset)
    if intent is None:
        return None
    try:
        outcome = await preview(client, intent, AUTOPILOT, live)
    except (Refused, RefusedIntent) as error:
        return AssetContact(asset.name, ref, Contact.FAIL, str(error))
    return _contact_by(outcome, asset.name, ref)


def _contact_by(outcome: Preview, asset: str, ref: Ref) -> AssetContact | None:
    match outcome:
        case Creates(planned):
            return AssetContact(asset, ref, Contact.CREATE, diff=_diff(None, planned))
        case Changes(before, planned):
            gone = tuple(sorted(_alerts(before) - _alerts(planned)))
            return AssetContact(asset, ref, Contact.CHANGE, diff=_diff(before, planned), alerts_gone=gone)
        case Reowns():
            return AssetContact(asset, ref, Contact.REOWN)
        case Stale(message):
            return AssetContact(asset, ref, Contact.FAIL, f"it changed meanwhile: {message}; try again")
    return None


def _diff(before: dict[str, Any] | None, planned: dict[str, Any]) -> str:
    return fitted(unified(sanitized(before) if before else None, sanitized(planned)))


def _alerts(rule: dict[str, Any]) -> set[str]:
    groups = rule.get("spec", {}).get("groups", ()) if rule.get("kind") == "PrometheusRule" else ()
    return {one["alert"] for group in groups for one in group.get("rules", ()) if "alert" in one}


async def _with_disruption(reader: Reader, found: Survey, contacts: list[AssetContact]) -> tuple[AssetContact, ...]:
    """Add which nodes reboot; nodes and VMs are listed only if some do."""
    written = (Contact.CREATE, Contact.CHANGE)
    if not any(one.ref.kind == MACHINE_CONFIG and one.contact in written for one in contacts):
        return tuple(contacts)
    try:
        census, pools = await asyncio.gather(take_census(reader), listed_if_served(reader, POOLS))
    except Forbidden as error:
        return tuple(_disrupting(one, f"which nodes reboot is unknown: {error}") for one in contacts)
    known = tuple(pools)
    texts = {
        one.asset: blast_radius(_labels(found, one.asset), known, census).message
        for one in contacts
        if one.contact in written and one.ref.kind == MACHINE_CONFIG
    }
    return tuple(_disrupting(one, texts.get(one.asset, "")) for one in contacts)


def _disrupting(contact: AssetContact, text: str) -> AssetContact:
    if contact.ref.kind not in REBOOTING or contact.contact not in (Contact.CREATE, Contact.CHANGE):
        return contact
    return replace(contact, disruption=text or "this concerns the pools that its machineConfigPoolSelector selects")


def _labels(found: Survey, name: str) -> dict[str, str]:
    asset = found.view.catalog.find(name)
    intent = target_state(found, asset).intent if asset else None
    labels: dict[str, str] = (intent or {}).get("metadata", {}).get("labels", {})
    return labels


def autopilot_findings(seen: AutopilotSeen) -> Iterator[SwitchFinding]:
    for problem in seen.problems:
        yield unknown("Objects of the autopilot", problem)
    if seen.idle and not seen.is_off and seen.managed:
        message = (
            f"ours would be idle, and the {seen.managed} objects of the Go autopilot would stay as they are, managed "
            f"by nobody: {seen.idle}"
        )
        yield SwitchFinding(Effect.CHANGE, "HyperConverged", message)
        return
    for name in seen.renamed:
        yield SwitchFinding(Effect.NOTE, f"Asset {name}", f"is called {current_name(name)} here; both names work")
    for contact in seen.contacts:
        yield from _contact_findings(contact, is_staged=seen.has_predecessor)
    for ref in seen.obsolete:
        yield SwitchFinding(Effect.CHANGE, str(ref), _fate_of_obsolete(ref))
    for ref in () if seen.idle else seen.others:
        message = "stays as it is, managed by nobody: ours has no asset for it, and deletes nothing of others"
        yield SwitchFinding(Effect.CHANGE, str(ref), message)


def _contact_findings(contact: AssetContact, *, is_staged: bool) -> Iterator[SwitchFinding]:
    subject = str(contact.ref)
    if contact.contact is Contact.FAIL:
        yield unknown(subject, contact.why)
    elif contact.contact is Contact.REOWN:
        yield SwitchFinding(Effect.NOTE, subject, "no value changes; ours would own its fields")
    elif contact.contact is Contact.LEAVE:
        message = f"stays as it is, managed by nobody: asset {contact.asset} is not applied here: {contact.why}"
        yield SwitchFinding(Effect.CHANGE, subject, message)
    else:
        message = _fate(contact, is_staged=is_staged)
        yield SwitchFinding(Effect.CHANGE, subject, message, contact.diff, contact.disruption)
    if contact.alerts_gone:
        named = ", ".join(contact.alerts_gone)
        message = f"these alerts would no longer exist; adapt routes and silences that name them: {named}"
        yield SwitchFinding(Effect.CHANGE, subject, message)
    if any(name.startswith(ALERTS_OF_5_0) for name in contact.alerts_gone):
        message = f"metrics of release 5.0 do not exist here: {', '.join(METRICS_OF_5_0)}; adapt queries that use them"
        yield SwitchFinding(Effect.NOTE, "Metrics", message)


def _fate_of_obsolete(ref: Ref) -> str:
    if ref.kind in REBOOTING:
        return (
            "would be staged for deletion, for it is obsolete and a tombstone names it: it is deleted once you release "
            "the asset that replaces it, or with the next rollout of its pool"
        )
    return "would be deleted: it is obsolete, and a tombstone names it"


def _fate(contact: AssetContact, *, is_staged: bool) -> str:
    if contact.contact is Contact.CREATE and contact.ref.kind in REBOOTING and not is_staged:
        return (
            f"would be created (asset {contact.asset}), and nodes reboot: at once, or with the staged changes of its "
            f"pool. To review it first, set {ROLLOUT}: approve on the HyperConverged"
        )
    if contact.contact is Contact.CREATE and contact.ref.kind not in REBOOTING:
        return f"would be created (asset {contact.asset})"
    if contact.ref.kind in REBOOTING:
        return (
            f"would be staged, not written (asset {contact.asset}): it is applied once you release it, or with the "
            "next rollout of its pool"
        )
    return f"would be changed (asset {contact.asset})"
