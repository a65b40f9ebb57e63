"""What a profile would change, and why its plan is in its phase: observed and decided by the advisor's own code."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import msgspec

from virt_steward.apis.meta import Condition
from virt_steward.apis.profiles import ProfileOptions
from virt_steward.apis.virtplatformconfig import (
    VIRT_PLATFORM_CONFIG,
    Action,
    Execution,
    Impact,
    Input,
    PlanApproval,
    PlanItem,
    VirtPlatformConfigSpec,
    VirtPlatformConfigStatus,
)
from virt_steward.controllers.advisor.act import draft_plan
from virt_steward.controllers.advisor.conditions import STALE, is_holding
from virt_steward.controllers.advisor.decide import decide, trace
from virt_steward.controllers.advisor.integrity import unauthenticated
from virt_steward.controllers.advisor.observation import VirtPlatformConfig, VirtPlatformConfigMeta
from virt_steward.controllers.advisor.profiles import OFF_BY_DEFAULT, profiles
from virt_steward.controllers.advisor.steps import LackPrerequisites, Settle
from virt_steward.controllers.advisor.watches import CONFIGS
from virt_steward.insight.cluster_view import read_advisor_view
from virt_steward.insight.reading import dry_run_client
from virt_steward.kube.whoami import lacking
from virt_steward.objects.checks import CheckResult
from virt_steward.objects.decision_record import DecisionRecord
from virt_steward.objects.document import JsonDocument
from virt_steward.objects.errors import UserError
from virt_steward.objects.identity import Key
from virt_steward.plans.draft import Drafted, DraftRejected, TargetsMoving
from virt_steward.plans.fingerprint import plan_hash
from virt_steward.plans.intent import worst
from virt_steward.platform.hco import HYPERCONVERGED

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    from virt_steward.controllers.advisor.observe import AdvisorClusterView
    from virt_steward.controllers.advisor.options import AdvisorOptions
    from virt_steward.controllers.advisor.profiles.profile import Profile, ProfileContext
    from virt_steward.kube.client import Client, Reader

ATTEMPTS = 3
"""Tries to draft a plan for objects that are changing."""

PlanRequest = Callable[[ProfileOptions], ProfileOptions]


class NoPlan(UserError):
    """There is no plan and none can be drafted; the text says why."""


class ForbiddenPlan(NoPlan):
    """The user lacks the right to dry-run an item; the text says which."""


class PlannedChanges(JsonDocument, frozen=True):
    """What a profile would do now."""

    profile: str
    options: ProfileOptions
    impact: Impact
    plan_hash: str
    items: tuple[PlanItem, ...]
    inputs: tuple[Input, ...]
    """What else it depends on."""
    change_count: int
    """How many items change something."""
    notes: tuple[str, ...] = ()
    """What was assumed, because it could not be found."""

    @property
    def changes(self) -> tuple[PlanItem, ...]:
        return tuple(item for item in self.items if item.state == "Pending")


class PlanExplanation(JsonDocument, frozen=True):
    """The whole answer on one profile."""

    profile: str
    action: Action
    phase: str
    reason: str
    because: str
    waits_for: str | None
    """What has to happen before it continues; None if it has ended."""
    impact: Impact | None
    plan_hash: str
    version: str
    """The version of virt-steward that drafted the plan."""
    items: tuple[PlanItem, ...]
    conditions: tuple[Condition, ...]
    approval: PlanApproval | None
    history: tuple[Execution, ...]
    decision: DecisionRecord | None
    """What a person decided last about the profile, whatever it was."""
    checks: tuple[CheckResult, ...]
    """Every check of the advisor, and which one decides what it does next; none if there is nothing to do."""


async def preview_plan(
    client: Client, name: str, change: PlanRequest, options: AdvisorOptions, now: datetime
) -> PlannedChanges:
    """Draft a plan by dry runs, as the advisor would; none of our components need be installed. Raises NoPlan.

    `change` alters the options that the cluster's own VirtPlatformConfig has, or the defaults if there is none.
    """
    dry_runs = dry_run_client(client)
    profile = profile_named(name, options)
    for _ in range(ATTEMPTS):
        view = await read_advisor_view(dry_runs, options)
        config = _config_to_preview(view, profile, change)
        seen = view.observe(unauthenticated(config), profile, now)
        match decide(seen, now):
            case Settle(why):
                raise NoPlan(f"Cannot plan {name}: {why}")
            case LackPrerequisites(missing):
                raise NoPlan(f"Cannot plan {name}: prerequisites are missing: {'; '.join(missing)}")
        context = view.context(config, profile)
        match await draft_plan(dry_runs, profile, context):
            case Drafted(items):
                impact = worst(item.impact_severity for item in items)
                digest = plan_hash(name, items, executions=config.status.executions)
                count = sum(item.state == "Pending" for item in items)
                notes = tuple(_assumptions(profile, context, options.hco))
                return PlannedChanges(name, config.options, impact, digest, items, seen.inputs, count, notes)
            case DraftRejected(item, why):
                raise await _rejection(client, profile, item, why)
            case TargetsMoving(why):
                last = why
    raise NoPlan(f"Cannot plan {name}: its targets changed during {ATTEMPTS} attempts: {last}; try again")


async def explain_plan(reader: Reader, name: str, options: AdvisorOptions, now: datetime) -> PlanExplanation:
    """Read what the advisor reads, and decide as it would. Raises NoPlan."""
    profile = profile_named(name, options)
    view = await read_advisor_view(reader, options)
    config = view.config(Key("", name))
    if config is None:
        raise NoPlan(_absence(view, name))
    seen = view.observe(unauthenticated(config), profile, now.replace(microsecond=0))
    status = config.status
    condition = next((one for one in status.conditions if one.type == status.phase), None)
    return PlanExplanation(
        profile=name,
        action=config.spec.action,
        phase=status.phase or "none yet",
        reason=condition.reason if condition else "",
        because=condition.message if condition else "",
        waits_for=waits_for(config),
        impact=status.impact_severity,
        plan_hash=status.plan_hash,
        version=status.operator_version,
        items=status.items,
        conditions=status.conditions,
        approval=status.approval,
        history=status.history,
        decision=config.last_decision,
        checks=trace(seen, now.replace(microsecond=0)),
    )


def profile_named(name: str, options: AdvisorOptions) -> Profile:
    known = {profile.name: profile for profile in profiles(options)}
    if name not in known and name in OFF_BY_DEFAULT:
        raise NoPlan(f"profile {name} is off; add {OFF_BY_DEFAULT[name]} to turn it on")
    if name not in known:
        raise NoPlan(f"Profile {name!r} not found; known profiles: {', '.join(known)}")
    return known[name]


def _assumptions(profile: Profile, context: ProfileContext, hco: Key) -> Iterator[str]:
    """Say that the HyperConverged is missing, if the profile reads it: its defaults may not be those of the cluster."""
    if context.hco is None and any(one.kind == HYPERCONVERGED for one in profile.prerequisites(context.options)):
        limits = context.live_migration
        yield (
            f"HyperConverged {hco} not found, so the plan assumes its defaults: {limits.per_cluster} migrations at "
            f"once in the cluster, {limits.per_node} per node; name that of the platform by --hyperconverged"
        )


def waits_for(config: VirtPlatformConfig) -> str | None:  # noqa: PLR0911 - a table by phase
    """Say what has to happen before the plan continues; None if it has ended."""
    status, name = config.status, config.metadata.name
    match status.phase:
        case None | "Pending" | "Drafting":
            return "the advisor to draft a plan; if this lasts, check that the advisor is running"
        case "ReviewRequired" if config.is_true(STALE) and not config.spec.bypass_optimistic_lock:
            return next(one.message for one in status.conditions if one.type == STALE)
        case "ReviewRequired" if config.is_rejected:
            return f"a new plan or an approval: {config.rejected_by or 'someone'} rejected this plan"
        case "ReviewRequired":
            count = config.approval_count(status.plan_hash)
            return f"review and approval{f' ({count})' if count else ''}: virt-steward approve {name}"
        case "InProgress":
            return _awaited_item(status)
        case "PrerequisiteFailed":
            return "the missing prerequisites; it continues automatically once they are met"
        case "Failed" | "CompletedWithErrors":
            return "a manual fix; then set action to DryRun to draft a new plan"
        case "Drifted":
            return "the change to be reverted; to draft a plan that reverts it, set action to DryRun"
        case "CompletedWithUpgrade":
            return "a decision; set action to DryRun to preview what this version plans differently"
    return None


def _awaited_item(status: VirtPlatformConfigStatus) -> str | None:
    """Say what keeps the next item from starting, or what the current one waits for."""
    item = next((one for one in status.items if one.state in ("Pending", "InProgress")), None)
    waits = f"{item.name}: {item.message}" if item else None
    return next((one.message for one in status.conditions if is_holding(one)), waits)


def _config_to_preview(view: AdvisorClusterView, profile: Profile, change: PlanRequest) -> VirtPlatformConfig:
    existing = view.config(Key("", profile.name))
    spec = existing.spec if existing else msgspec.convert({"profile": profile.name}, VirtPlatformConfigSpec)
    options = change(spec.options or ProfileOptions())
    return VirtPlatformConfig(
        VirtPlatformConfigMeta(profile.name),
        msgspec.structs.replace(spec, action="DryRun", options=options),
        VirtPlatformConfigStatus(executions=existing.status.executions if existing else 0),
    )


async def _rejection(client: Client, profile: Profile, item: str, why: str) -> NoPlan:
    problem = f"Cannot plan {item}: {why}"
    denied = await lacking(client, "patch", profile.targets)
    if not denied:
        return NoPlan(problem)
    named = ", ".join(map(str, denied))
    return ForbiddenPlan(
        f"{problem}; a dry run changes nothing, but needs the right to patch: you are forbidden (403) to patch {named}"
    )


def _absence(view: AdvisorClusterView, name: str) -> str:
    if not view.discovery.serves(VIRT_PLATFORM_CONFIG.group, VIRT_PLATFORM_CONFIG.plural):
        return f"The advisor is not installed on this cluster; `virt-steward plan {name}` works without it"
    store = view.informers.of(CONFIGS).store
    if problem := store.unreadable(Key("", name)):
        return f"VirtPlatformConfig {name} cannot be read: {problem}"
    there = ", ".join(sorted(one.metadata.name for one in store)) or "none"
    return f"VirtPlatformConfig {name} not found; existing: {there}"
