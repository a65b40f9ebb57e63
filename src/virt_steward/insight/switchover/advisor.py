"""The advisor's part: what ours would make of each VirtPlatformConfig and its status.

What the Go advisor completed stays completed: where ours would plan something else, that is offered as an upgrade.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from virt_steward.controllers.advisor.profiles import profiles
from virt_steward.controllers.advisor.watches import CONFIGS
from virt_steward.insight.plans import ForbiddenPlan, NoPlan, preview_plan
from virt_steward.insight.reading import listed_if_served
from virt_steward.insight.switchover.findings import Effect, SwitchFinding, unknown
from virt_steward.kube.errors import Forbidden

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from datetime import datetime

    from virt_steward.apis.profiles import ProfileOptions
    from virt_steward.apis.virtplatformconfig import PlanItem
    from virt_steward.controllers.advisor.observation import VirtPlatformConfig
    from virt_steward.controllers.advisor.options import AdvisorOptions
    from virt_steward.insight.plans import PlannedChanges
    from virt_steward.kube.client import Client

UPGRADE = (
    "stays completed, and nothing is executed. Our version differs: the phase becomes CompletedWithUpgrade, and the "
    "difference is applied only after you set action to DryRun, review the plan and approve it"
)
REVIEW = "is put into review with our plan; it is applied only after you approve it"
OFFERS: Mapping[str | None, str] = {
    "Completed": UPGRADE,
    "CompletedWithErrors": REVIEW,
    "CompletedWithUpgrade": UPGRADE,
    "ReviewRequired": "stays in review, with our plan instead; it is applied only after you approve it",
    "InProgress": "goes on waiting for what was applied; what is left is put into review",
    "Drifted": "stays Drifted until the drift is gone; to plan its removal, set action to DryRun",
    "Failed": "stays Failed, and nothing is executed; set action to DryRun for a new plan",
    "Pending": REVIEW,
    "Drafting": REVIEW,
    "PrerequisiteFailed": REVIEW,
}
"""What happens to a config that the Go advisor left in this phase, if our plan has changes (see `adoption.py`)."""


@dataclass(frozen=True, slots=True)
class ConfigSeen:
    """One VirtPlatformConfig, and what ours would plan for it."""

    profile: str
    action: str
    phase: str | None
    is_ours: bool = False
    """Our own advisor has written its status already."""
    plan: PlannedChanges | None = None
    no_plan: str = ""
    """Why none can be drafted."""
    forbidden: str = ""


@dataclass(frozen=True, slots=True)
class AdvisorSeen:
    configs: tuple[ConfigSeen, ...] = ()
    unreadable: tuple[str, ...] = ()
    problem: str = ""

    @property
    def traces(self) -> tuple[str, ...]:
        count = len(self.configs) + len(self.unreadable)
        return (f"VirtPlatformConfigs: {count}",) if count else ()


async def observe_advisor(client: Client, options: AdvisorOptions, now: datetime) -> AdvisorSeen:
    try:
        store = await listed_if_served(client, CONFIGS)
    except Forbidden as error:
        return AdvisorSeen(problem=str(error))
    known = {profile.name for profile in profiles(options)}
    configs = [
        await _config(client, one, known, options, now) for one in sorted(store, key=lambda one: one.metadata.name)
    ]
    broken = tuple(f"VirtPlatformConfig {key} cannot be read: {store.unreadable(key)}" for key in store.unreadables())
    return AdvisorSeen(tuple(configs), broken)


async def _config(
    client: Client, config: VirtPlatformConfig, known: set[str], options: AdvisorOptions, now: datetime
) -> ConfigSeen:
    name, status = config.metadata.name, config.status
    seen = ConfigSeen(name, config.spec.action, status.phase, is_ours=bool(status.plan_hash))
    if seen.is_ours or seen.action == "Ignore":
        return seen
    if name not in known:
        return ConfigSeen(name, seen.action, seen.phase, no_plan=f"there is no profile {name} here")
    try:
        plan = await preview_plan(client, name, _unchanged, options, now)
    except (ForbiddenPlan, Forbidden) as error:
        return ConfigSeen(name, seen.action, seen.phase, forbidden=str(error))
    except NoPlan as error:
        return ConfigSeen(name, seen.action, seen.phase, no_plan=str(error))
    return ConfigSeen(name, seen.action, seen.phase, plan=plan)


def _unchanged(options: ProfileOptions) -> ProfileOptions:
    return options


def advisor_findings(seen: AdvisorSeen) -> Iterator[SwitchFinding]:
    if seen.problem:
        yield unknown("VirtPlatformConfigs", seen.problem)
    for problem in seen.unreadable:
        yield unknown("VirtPlatformConfigs", problem)
    for config in seen.configs:
        yield from _config_findings(config)


def _config_findings(config: ConfigSeen) -> Iterator[SwitchFinding]:
    subject = f"VirtPlatformConfig {config.profile}"
    if config.forbidden:
        yield unknown(subject, config.forbidden)
    elif config.no_plan:
        yield SwitchFinding(Effect.NOTE, subject, f"has no plan here: {config.no_plan}")
    elif config.plan and config.plan.changes:
        yield SwitchFinding(Effect.CHANGE, subject, _fate(config))
        yield from (_item(item) for item in config.plan.changes)


def _fate(config: ConfigSeen) -> str:
    if config.phase in OFFERS:
        return OFFERS[config.phase]
    phase = f"is {config.phase}" if config.phase else "has no status yet"
    if config.action == "Apply":
        return f"{phase}; with action Apply virt-steward plans and executes it. Set DryRun first to review the plan"
    return f"{phase}; virt-steward plans it and waits for review"


def _item(item: PlanItem) -> SwitchFinding:
    target = item.target_ref
    name = f"{target.namespace}/{target.name}" if target.namespace else target.name
    message = f"would change once you approve the plan ({item.name}, impact {item.impact_severity})"
    disruption = item.blast_radius.message if item.blast_radius else ""
    return SwitchFinding(Effect.CHANGE, f"{target.kind} {name}", message, item.diff, disruption)
