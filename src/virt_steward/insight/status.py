"""What the statuses on a cluster say, one section per controller."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from heapq import nlargest
from typing import TYPE_CHECKING

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
from virt_steward.objects.wallclock import rfc3339
from virt_steward.runtime.standby import other_leases, standing_by

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator

    from virt_steward.controllers.advisor.observation import VirtPlatformConfig as ProfileConfig
    from virt_steward.controllers.approver.observation import Approver
    from virt_steward.controllers.autopilot.options import AutopilotOptions
    from virt_steward.controllers.placement.observe import KubevirtConfig
    from virt_steward.insight.assets.survey import Survey
    from virt_steward.kube.client import Reader
    from virt_steward.objects.decision_record import DecisionRecord

GO_LEASES = {"advisor": ADVISOR_LEASE, "autopilot": AUTOPILOT_LEASE, "approver": APPROVER_LEASE}
"""The Lease of the Go operator that does the work of a controller."""
SIGNED_PLANS = replace(PLANS, selection=Selection(metadata_only=True), may_be_denied=True)
"""InstallPlans without their content, which may be hundreds of kilobytes each."""
DECISIONS_SHOWN = 5


@dataclass(frozen=True, slots=True)
class Section:
    """The state of one controller's objects: a summary and a table."""

    controller: str
    summary: str
    columns: tuple[str, ...] = ()
    rows: tuple[tuple[str, ...], ...] = ()
    decisions: tuple[tuple[str, DecisionRecord], ...] = ()
    """The last decisions of people about these objects, each with its object; the newest first."""


async def collect_sections(reader: Reader, options: AutopilotOptions) -> tuple[Section, ...]:
    """Read the statuses of one cluster; the options name its platform."""
    found = [await _with_standby(reader, await section(reader, options)) for section in SECTIONS]
    return tuple([await _with_freeze(reader, options.namespace, section) for section in found])


async def _with_freeze(reader: Reader, namespace: str, section: Section) -> Section:
    """Say so where the installation is frozen: then nothing begins, whatever else the section says."""
    freeze = await freeze_now(reader, namespace, section.controller, datetime.now(UTC))
    if not isinstance(freeze, Frozen):
        return section
    return replace(section, summary=f"{freeze.message}; {section.summary}")


async def _with_standby(reader: Reader, section: Section) -> Section:
    """Say so where the controller stands by, since then the rest of the section is another operator's work."""
    if section.controller not in GO_LEASES:
        return section
    leases = await listed_if_served(reader, other_leases(GO_LEASES[section.controller]))
    now = datetime.now(UTC)
    found = sorted(
        (one.metadata.key, one.holder) for one in leases if one.is_renewed(now, timedelta(seconds=one.duration))
    )
    if not found:
        return section
    return replace(section, summary=f"{standing_by(*found[0])}; {section.summary}")


async def advisor(reader: Reader, _options: AutopilotOptions) -> Section:
    """One row per profile."""
    configs = sorted(await listed_if_served(reader, PROFILE_CONFIGS), key=lambda one: one.metadata.name)
    phases = Counter(one.status.phase or "not observed yet" for one in configs)
    counted = ", ".join(f"{count} {phase}" for phase, count in sorted(phases.items()))
    summary = f"profiles: {len(configs)}" + (f" ({counted})" if counted else "")
    columns = ("profile", "action", "phase", "impact", "since", "message")
    decisions = _newest((one.metadata.name, one.last_decision) for one in configs)
    return Section("advisor", summary, columns, tuple(_profile(one) for one in configs), decisions)


def _profile(config: ProfileConfig) -> tuple[str, ...]:
    status = config.status
    condition = next((one for one in status.conditions if one.type == status.phase), None)
    moving = next((item for item in status.items if item.state == "InProgress"), None)
    return (
        config.metadata.name,
        config.spec.action,
        status.phase or "not observed yet",
        status.impact_severity or "unknown",
        rfc3339(condition.last_transition_time) if condition else "",
        one_line(f"{moving.name}: {moving.message}" if moving else condition.message if condition else ""),
    )


async def autopilot(reader: Reader, options: AutopilotOptions) -> Section:
    """One row per asset that is not in place."""
    try:
        found = await survey(reader, load(), options, datetime.now(UTC))
    except (NoPlatform, Forbidden) as error:
        return Section("autopilot", str(error))
    if isinstance(found.seen.scope, Idle):
        return Section("autopilot", f"idle: {found.seen.scope.why}")
    assets = tuple(states(found))
    counts = Counter(state for _, state, _ in assets)
    summary = "; ".join(f"{state.lower()}: {count}" for state, count in counts.most_common())
    rows = tuple((asset.name, state, one_line(why)) for asset, state, why in assets if state != IN_PLACE)
    return Section("autopilot", f"assets {summary}", ("asset", "state", "why"), rows, _newest(_about_assets(found)))


def _about_assets(found: Survey) -> Iterator[tuple[str, DecisionRecord | None]]:
    hco, annotations = str(found.seen.hco.ref), found.seen.context.hco.annotations
    yield hco, read_decision(annotations, DECISION)
    for asset in found.view.catalog.assets:
        ref, live = str(found.view.ref(asset)), found.view.live_summary(asset.name)
        if live and ref != hco:
            yield ref, read_decision(live.annotations, DECISION)


async def approver(reader: Reader, _options: AutopilotOptions) -> Section:
    plans = await listed_if_served(reader, SIGNED_PLANS)
    signed = ((f"InstallPlan {one.metadata.key}", one.signature.record(one.csvs)) for one in plans)
    return replace(of_approvers(tuple(await listed_if_served(reader, APPROVERS))), decisions=_newest(signed))


def of_approvers(approvers: Collection[Approver]) -> Section:
    """One row per pending InstallPlan that a status lists."""
    listed = {(plan.plan, plan.reason): plan for one in approvers for plan in one.status.pending}
    rows = tuple((plan.plan, plan.reason, rfc3339(plan.since), plan.message) for _, plan in sorted(listed.items()))
    approved = sum(one.status.approved_count for one in approvers)
    unlisted = sum(max(one.status.pending_count - len(one.status.pending), 0) for one in approvers)
    pending = f"{len({plan for plan, _ in listed}) + unlisted}" + (f" ({unlisted} not listed)" if unlisted else "")
    summary = f"InstallPlanApprovers: {len(approvers)}; plans approved: {approved}; pending: {pending}"
    return Section("approver", summary, ("plan", "reason", "since", "message"), rows)


async def placement(reader: Reader, _options: AutopilotOptions) -> Section:
    """One row per cluster."""
    configs = await listed_if_served(reader, CONFIGS)
    machines = await listed_if_served(reader, MACHINES)
    unplaced = [one for one in machines.by("config", NOWHERE) if not one.is_deleting]
    reasons = Counter(
        condition.reason for one in unplaced if (condition := placed_condition(one)) and condition.status == "False"
    )
    rows = tuple(_cluster(one) for one in sorted(configs, key=lambda one: one.metadata.name))
    why = ", ".join(f"{count} {reason}" for reason, count in sorted(reasons.items()))
    summary = f"clusters: {len(configs)}; machines without a cluster: {len(unplaced)}" + (f" ({why})" if why else "")
    decisions = _newest((f"Machine {one.metadata.key}", one.request.last_decision) for one in machines)
    return Section("placement", summary, ("cluster", "state", "machines", "version", "message"), rows, decisions)


def _newest(found: Iterable[tuple[str, DecisionRecord | None]]) -> tuple[tuple[str, DecisionRecord], ...]:
    known = ((name, record) for name, record in found if record)
    return tuple(nlargest(DECISIONS_SHOWN, known, key=lambda one: (one[1].at, one[0])))


def _cluster(config: KubevirtConfig) -> tuple[str, ...]:
    status = config.status
    state = status.phase or "not observed yet"
    message = next((one.message for one in status.conditions if one.status == "False"), "")
    state += "" if config.is_schedulable else ", cordoned"
    return config.metadata.name, state, str(status.machines), one_line(status.version) or "unknown", one_line(message)


SECTIONS: tuple[Callable[[Reader, AutopilotOptions], Awaitable[Section]], ...] = (
    advisor,
    autopilot,
    approver,
    placement,
)
