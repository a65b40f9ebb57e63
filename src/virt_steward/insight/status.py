"""What the statuses on a cluster say, one section per controller."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from datetime import datetime
from heapq import nlargest
from typing import TYPE_CHECKING

from msgspec import field
from msgspec.structs import replace as replace_struct

from virt_steward.catalog.load import load
from virt_steward.controllers.advisor.definition import GO_LEASE as ADVISOR_LEASE
from virt_steward.controllers.advisor.watches import CONFIGS as PROFILE_CONFIGS
from virt_steward.controllers.approver.definition import GO_LEASE as APPROVER_LEASE
from virt_steward.controllers.approver.watches import APPROVERS, PLANS
from virt_steward.controllers.autopilot.access import GO_LEASE as AUTOPILOT_LEASE
from virt_steward.controllers.autopilot.annotation_keys import DECISION
from virt_steward.controllers.autopilot.overrides.scope import Idle
from virt_steward.controllers.placement.report import placed_condition
from virt_steward.controllers.placement.watches import CONFIGS, MACHINES, NOWHERE
from virt_steward.holds.freezes import Frozen
from virt_steward.insight.assets.explain import IN_PLACE, states
from virt_steward.insight.assets.survey import NoPlatform, survey
from virt_steward.insight.freeze import freeze_now
from virt_steward.insight.reading import listed_if_served
from virt_steward.kube.client import Selection
from virt_steward.kube.errors import Forbidden, one_line
from virt_steward.objects.decision_record import read_decision
from virt_steward.objects.document import JsonDocument

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator

    from virt_steward.controllers.advisor.observation import VirtPlatformConfig as ProfileConfig
    from virt_steward.controllers.approver.observation import Approver
    from virt_steward.controllers.autopilot.options import AutopilotOptions
    from virt_steward.controllers.placement.observation import Machine
    from virt_steward.controllers.placement.observe import KubevirtConfig
    from virt_steward.insight.assets.survey import Survey
    from virt_steward.kube.client import Reader
    from virt_steward.objects.decision_record import DecisionRecord

GO_LEASES = {"advisor": ADVISOR_LEASE, "autopilot": AUTOPILOT_LEASE, "approver": APPROVER_LEASE}
"""The Lease of the Go operator that does the work of a controller."""
SIGNED_PLANS = replace(PLANS, selection=Selection(metadata_only=True), may_be_denied=True)
"""InstallPlans without their content, which may be hundreds of kilobytes each."""
DECISIONS_SHOWN = 5
NOT_OBSERVED = "not observed yet"


class ProfileRow(JsonDocument, frozen=True):
    profile: str
    action: str
    phase: str
    impact: str
    since: datetime | None
    message: str


class AssetRow(JsonDocument, frozen=True):
    """An asset that is not in place."""

    asset: str
    state: str
    why: str


class PendingPlanRow(JsonDocument, frozen=True):
    """An InstallPlan that an approver reports as pending."""

    plan: str
    reason: str
    since: datetime
    message: str


class MemberRow(JsonDocument, frozen=True):
    cluster: str
    state: str
    schedulable: bool
    machines: int
    version: str
    message: str


class UnplacedRow(JsonDocument, frozen=True):
    """A Machine without a cluster."""

    machine: str
    reason: str
    message: str


class DecisionRow(JsonDocument, frozen=True):
    """A decision of a person about one object."""

    object: str
    verb: str
    subject: str
    by: str
    at: datetime
    comment: str
    sentence: str


class Section(JsonDocument, frozen=True, kw_only=True):
    """The state of one controller's objects: a summary, the counts in it, and the rows of its tables."""

    controller: str
    summary: str
    counts: dict[str, int] = field(default_factory=dict)
    by_state: dict[str, int] = field(default_factory=dict)
    """How many objects are in each phase or state, or wait for each reason."""
    active: int = 0
    """Objects that ask the controller to act."""
    frozen: str = ""
    """Why nothing begins; empty if there is no freeze."""
    profiles: tuple[ProfileRow, ...] = ()
    assets: tuple[AssetRow, ...] = ()
    install_plans: tuple[PendingPlanRow, ...] = ()
    clusters: tuple[MemberRow, ...] = ()
    machines: tuple[UnplacedRow, ...] = ()
    decisions: tuple[DecisionRow, ...] = ()
    """The last decisions of people about these objects; the newest first."""
    unread: tuple[str, ...] = ()
    """What this person may not read, and why."""


async def read_section(reader: Reader, controller: str, options: AutopilotOptions, now: datetime) -> Section:
    """Read the objects of a controller. What this person may not read is said, and hides nothing else."""
    try:
        section = await SECTIONS[controller](reader, options, now)
    except Forbidden as error:
        section = Section(controller=controller, summary="", unread=(f"its objects: {error}",))
    freeze = await freeze_now(reader, options.namespace, controller, now)
    return replace_struct(section, frozen=freeze.message) if isinstance(freeze, Frozen) else section


async def advisor(reader: Reader, _options: AutopilotOptions, _now: datetime) -> Section:
    """One row per profile."""
    configs = sorted(await listed_if_served(reader, PROFILE_CONFIGS), key=lambda one: one.metadata.name)
    phases = Counter(one.status.phase or NOT_OBSERVED for one in configs)
    counted = ", ".join(f"{count} {phase}" for phase, count in sorted(phases.items()))
    return Section(
        controller="advisor",
        summary=f"profiles: {len(configs)}" + (f" ({counted})" if counted else ""),
        counts={"profiles": len(configs)},
        by_state=dict(phases),
        active=sum(one.spec.action != "Ignore" for one in configs),
        profiles=tuple(_profile(one) for one in configs),
        decisions=_newest((one.metadata.name, one.last_decision) for one in configs),
    )


def _profile(config: ProfileConfig) -> ProfileRow:
    status = config.status
    condition = next((one for one in status.conditions if one.type == status.phase), None)
    moving = next((item for item in status.items if item.state == "InProgress"), None)
    return ProfileRow(
        config.metadata.name,
        config.spec.action,
        status.phase or NOT_OBSERVED,
        status.impact_severity or "unknown",
        condition.last_transition_time if condition else None,
        one_line(f"{moving.name}: {moving.message}" if moving else condition.message if condition else ""),
    )


async def autopilot(reader: Reader, options: AutopilotOptions, now: datetime) -> Section:
    """One row per asset that is not in place."""
    try:
        found = await survey(reader, load(), options, now)
    except NoPlatform as error:
        return Section(controller="autopilot", summary=str(error))
    if isinstance(found.seen.scope, Idle):
        return Section(controller="autopilot", summary=f"idle: {found.seen.scope.why}")
    assets = tuple(states(found))
    counts = Counter(state for _, state, _ in assets)
    summary = "; ".join(f"{state.lower()}: {count}" for state, count in counts.most_common())
    return Section(
        controller="autopilot",
        summary=f"assets {summary}",
        counts={"assets": len(assets)},
        by_state=dict(counts),
        active=1,
        assets=tuple(AssetRow(one.name, state, one_line(why)) for one, state, why in assets if state != IN_PLACE),
        decisions=_newest(_about_assets(found)),
    )


def _about_assets(found: Survey) -> Iterator[tuple[str, DecisionRecord | None]]:
    hco, annotations = str(found.seen.hco.ref), found.seen.context.hco.annotations
    yield hco, read_decision(annotations, DECISION)
    for asset in found.view.catalog.assets:
        ref, live = str(found.view.ref(asset)), found.view.live_summary(asset.name)
        if live and ref != hco:
            yield ref, read_decision(live.annotations, DECISION)


async def approver(reader: Reader, _options: AutopilotOptions, _now: datetime) -> Section:
    plans = await listed_if_served(reader, SIGNED_PLANS)
    signed = ((f"InstallPlan {one.metadata.key}", one.signature.record(one.csvs)) for one in plans)
    section = of_approvers(tuple(await listed_if_served(reader, APPROVERS)))
    unread = ("the decisions on InstallPlans: you are forbidden (403) to list them",) if plans.denied else ()
    return replace_struct(section, decisions=_newest(signed), unread=unread)


def of_approvers(approvers: Collection[Approver]) -> Section:
    """One row per pending InstallPlan that a status lists."""
    listed = {(plan.plan, plan.reason): plan for one in approvers for plan in one.status.pending}
    approved = sum(one.status.approved_count for one in approvers)
    unlisted = sum(max(one.status.pending_count - len(one.status.pending), 0) for one in approvers)
    pending = len({plan for plan, _ in listed}) + unlisted
    shown = f"{pending}" + (f" ({unlisted} not listed)" if unlisted else "")
    return Section(
        controller="approver",
        summary=f"InstallPlanApprovers: {len(approvers)}; plans approved: {approved}; pending: {shown}",
        counts={"approvers": len(approvers), "approved": approved, "pending": pending, "pendingNotListed": unlisted},
        active=len(approvers),
        install_plans=tuple(
            PendingPlanRow(plan.plan, plan.reason, plan.since, one_line(plan.message))
            for _, plan in sorted(listed.items())
        ),
    )


async def placement(reader: Reader, _options: AutopilotOptions, _now: datetime) -> Section:
    """One row per cluster, and one per Machine that has none."""
    configs = await listed_if_served(reader, CONFIGS)
    machines = await listed_if_served(reader, MACHINES)
    unplaced = tuple(_unplaced(one) for one in machines.by("config", NOWHERE) if one.is_ours and not one.is_deleting)
    reasons = Counter(one.reason for one in unplaced)
    why = ", ".join(f"{count} {reason}" for reason, count in sorted(reasons.items()))
    return Section(
        controller="placement",
        summary=f"clusters: {len(configs)}; machines without a cluster: {len(unplaced)}" + (f" ({why})" if why else ""),
        counts={"clusters": len(configs), "machines": len(machines), "unplaced": len(unplaced)},
        by_state=dict(reasons),
        active=len(unplaced),
        clusters=tuple(_cluster(one) for one in sorted(configs, key=lambda one: one.metadata.name)),
        machines=unplaced,
        decisions=_newest((f"Machine {one.metadata.key}", one.request.last_decision) for one in machines),
    )


def _unplaced(machine: Machine) -> UnplacedRow:
    condition = placed_condition(machine)
    if condition is None or condition.status != "False":
        return UnplacedRow(str(machine.metadata.key), NOT_OBSERVED, "no decision yet; is the placement running?")
    return UnplacedRow(str(machine.metadata.key), condition.reason or "Unplaced", one_line(condition.message))


def _newest(found: Iterable[tuple[str, DecisionRecord | None]]) -> tuple[DecisionRow, ...]:
    known = ((name, record) for name, record in found if record)
    newest = nlargest(DECISIONS_SHOWN, known, key=lambda one: (one[1].at, one[0]))
    return tuple(
        DecisionRow(name, record.verb, record.subject, record.by, record.at, record.comment, str(record))
        for name, record in newest
    )


def _cluster(config: KubevirtConfig) -> MemberRow:
    status = config.status
    message = next((one.message for one in status.conditions if one.status == "False"), "")
    return MemberRow(
        config.metadata.name,
        status.phase or NOT_OBSERVED,
        config.is_schedulable,
        status.machines,
        one_line(status.version) or "unknown",
        one_line(message),
    )


SECTIONS: dict[str, Callable[[Reader, AutopilotOptions, datetime], Awaitable[Section]]] = {
    "advisor": advisor,
    "autopilot": autopilot,
    "approver": approver,
    "placement": placement,
}
