"""Profiles with their prerequisites and options, and the plan of one: its impact, its changes, and the decision."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import msgspec

from virt_steward.apis.profiles import ProfileOptions
from virt_steward.apis.virtplatformconfig import VIRT_PLATFORM_CONFIG
from virt_steward.console import forms
from virt_steward.console.diffs import diff_lines, drift_of
from virt_steward.console.ownership import owners_of_item
from virt_steward.console.page_context import PageContent, matches, not_found
from virt_steward.console.pictures.rollout_timeline import rollout_timeline
from virt_steward.console.rollouts import recounted, rollouts
from virt_steward.controllers.advisor.annotation_keys import REJECTION_COMMENT
from virt_steward.controllers.advisor.conditions import ADOPTED, FREEZE, GATES, INPUT_DRIFT, STALE, UPGRADE, WINDOW
from virt_steward.controllers.advisor.decide import trace
from virt_steward.controllers.advisor.phases import SETTLED
from virt_steward.decisions.plans import action_after_rejection
from virt_steward.decisions.profiles import has_executed_plan, is_rolling_back
from virt_steward.objects.corekinds import NODE
from virt_steward.objects.identity import Key, Ref
from virt_steward.platform.machineconfigs import MACHINE_CONFIG_POOL

if TYPE_CHECKING:
    from virt_steward.apis.meta import Condition
    from virt_steward.apis.virtplatformconfig import PlanItem
    from virt_steward.console.diffs import DiffLine, ItemDrift
    from virt_steward.console.live import Topic
    from virt_steward.console.page_context import PageContext
    from virt_steward.console.pictures.rollout_timeline import RolloutTimeline
    from virt_steward.console.rollouts import Rollout
    from virt_steward.controllers.advisor.observation import VirtPlatformConfig
    from virt_steward.controllers.advisor.profiles.profile import Profile
    from virt_steward.insight.field_owners import FieldOwners
    from virt_steward.objects.checks import CheckResult
    from virt_steward.platform.pools import Pool


TOPICS: frozenset[Topic] = frozenset({"profiles", "rollout", "activity"})
TONES = {
    "ReviewRequired": "warn",
    "InProgress": "info",
    "Completed": "ok",
    "CompletedWithErrors": "bad",
    "CompletedWithUpgrade": "info",
    "Failed": "bad",
    "Drifted": "warn",
    "PrerequisiteFailed": "warn",
}
WORDS = {
    None: "Not created yet",
    "Ignored": "Inactive",
    "ReviewRequired": "Review required",
    "InProgress": "In progress",
    "CompletedWithErrors": "Completed with errors",
    "CompletedWithUpgrade": "Upgrade available",
    "PrerequisiteFailed": "Prerequisite missing",
}
BADGES = {
    UPGRADE: ("Upgrade available", "info"),
    INPUT_DRIFT: ("Inputs changed", "warn"),
    STALE: ("Plan out of date", "warn"),
    FREEZE: ("Frozen", "info"),
    WINDOW: ("Waiting for its window", "info"),
    GATES: ("Waiting for gates", "info"),
    ADOPTED: ("Left by another advisor", "info"),
}
REPLANNABLE = ("Failed", "CompletedWithErrors", "CompletedWithUpgrade", "Drifted")
"""Phases that only a new plan ends."""
IMPACT_TONES = {"High": "bad", "Medium": "warn", "Low": "ok"}


@dataclass(frozen=True, slots=True)
class Badge:
    """A coloured word, with its explanation."""

    word: str
    tone: str
    message: str


@dataclass(frozen=True, slots=True)
class ProfileCard:
    """A profile, whether or not its VirtPlatformConfig exists."""

    profile: Profile
    config: VirtPlatformConfig | None
    phase: Badge
    badges: tuple[Badge, ...]
    prerequisites: tuple[str, ...]
    """Those that are missing; all of them if that is not known."""
    prerequisites_known: bool
    fields: tuple[forms.FormField, ...]

    @property
    def is_active(self) -> bool:
        return self.config is not None and self.config.spec.action != "Ignore"


@dataclass(frozen=True, slots=True)
class ItemView:
    """An item of a plan, with what is known of its object now."""

    item: PlanItem
    lines: tuple[DiffLine, ...]
    tone: str
    rollouts: tuple[Rollout, ...]
    drift: ItemDrift | None
    recounted: str
    """Its impact now; empty if that is what the plan says."""
    owners: FieldOwners | None
    """None: its object does not exist, or the viewer may not list it."""


async def page(context: PageContext) -> PageContent:
    configs = {config.metadata.name: config for config in context.configs}
    offered = [one for one in context.cache.profiles.all if one.about.is_advertised or one.name in configs]
    cards = [_card(context, profile, configs.get(profile.name)) for profile in offered]
    shown = [card for card in cards if matches(f"{card.profile.name} {card.profile.about.description}", context.search)]
    values = {"cards": shown, "may_change": await context.may("patch", VIRT_PLATFORM_CONFIG)}
    return PageContent("profiles.html", "Profiles", values, TOPICS, kinds=(VIRT_PLATFORM_CONFIG,))


async def plan(context: PageContext) -> PageContent:
    name = context.match["name"]
    profile = context.cache.profiles.named(name)
    config = next((one for one in context.configs if one.metadata.name == name), None)
    if profile is None or config is None:
        return not_found(f"VirtPlatformConfig {name}", VIRT_PLATFORM_CONFIG)
    card, status = _card(context, profile, config), config.status
    nodes = list(context.cache.nodes) if context.scope.sees(NODE) else []
    has_begun = status.phase not in (None, "ReviewRequired", "Ignored")
    items = [
        ItemView(
            item,
            diff_lines(item.diff),
            IMPACT_TONES[item.impact_severity],
            rollouts(item, context.pools, nodes, partial(_timeline, context, config, item)) if has_begun else (),
            await drift_of(context, item) if status.phase == "Drifted" else None,
            recounted(item, context.pools, nodes) if status.phase == "ReviewRequired" else "",
            await owners_of_item(context, item),
        )
        for item in status.items
    ]
    values = {
        "card": card,
        "config": config,
        "status": status,
        "checks": _checks(context, profile, config),
        "items": items,
        "impact": impact_of(config),
        "impact_tones": IMPACT_TONES,
        "rejection": _rejection(config),
        "is_stale": config.is_true(STALE),
        "is_frozen": config.is_true(FREEZE),
        "can_decide": status.phase == "ReviewRequired" and bool(status.plan_hash) and not config.is_touched,
        "is_rolling_back": is_rolling_back(config),
        "stays_active": action_after_rejection(config) != "Ignore",
        "can_replan": _can_replan(config),
        "can_roll_back": status.phase in (*SETTLED, "Ignored")
        and has_executed_plan(config)
        and config.spec.action != "Rollback",
        "may_change": await context.may("patch", VIRT_PLATFORM_CONFIG),
        "may_approve": await context.may_approve(),
        "events": context.events_about(str(Ref(VIRT_PLATFORM_CONFIG, Key("", name))))[:20],
    }
    return PageContent("plan.html", name, values, TOPICS, kinds=(MACHINE_CONFIG_POOL, NODE) if has_begun else ())


def _timeline(context: PageContext, config: VirtPlatformConfig, item: PlanItem, pool: Pool) -> RolloutTimeline | None:
    """What is known of the rollout of this item; nothing for viewers who may not list nodes."""
    if not context.scope.sees(NODE):
        return None
    board, approval = context.cache.board, config.status.approval
    found = rollout_timeline(
        pool, board.nodes_of(pool.name), board.log, context.now, begins=approval.at if approval else None
    )
    completed = item.last_transition_time if item.state == "Completed" else None
    is_later = found is not None and completed is not None and found.start > completed
    return None if is_later else found  # a later rollout of the pool is not that of this item


def _checks(context: PageContext, profile: Profile, config: VirtPlatformConfig) -> tuple[CheckResult, ...]:
    """The advisor's own chain, on what the console has cached."""
    now = context.now.replace(microsecond=0)
    observation = context.cache.profiles.observe(config, profile, now)
    return trace(observation, now) if observation else ()


def _can_replan(config: VirtPlatformConfig) -> bool:
    """Whether a new plan is what comes next: the last one failed or is outdated, or the profile is inactive."""
    status = config.status
    is_inactive = status.phase == "Ignored" and bool(status.items)
    return (status.phase in REPLANNABLE or is_inactive) and not config.is_touched


def _card(context: PageContext, profile: Profile, config: VirtPlatformConfig | None) -> ProfileCard:
    phase = config.status.phase if config else None
    condition = _condition(config, phase) if config and phase else None
    badges = tuple(
        Badge(*BADGES[one.type], one.message)
        for one in (config.status.conditions if config else ())
        if one.type in BADGES and one.status == "True"
    )
    options = msgspec.to_builtins(config.options) if config else {}
    required = profile.prerequisites(config.options if config else ProfileOptions())
    may_know = context.scope.sees(VIRT_PLATFORM_CONFIG)  # who may read configs may read what they lack
    missing = context.cache.profiles.missing_prerequisites(config, profile, context.now) if may_know else None
    return ProfileCard(
        profile,
        config,
        Badge(WORDS.get(phase, str(phase)), TONES.get(str(phase), "muted"), condition.message if condition else ""),
        badges,
        tuple(str(one) for one in required) if missing is None else missing,
        missing is not None,
        forms.fields(profile.name, options),
    )


@dataclass(frozen=True, slots=True)
class PlanImpact:
    """The impact of a plan as a whole."""

    nodes: int
    rounds: str
    migrating: int
    immovable: int
    immovable_names: tuple[str, ...]
    rebooting_items: int
    """Items that reboot nodes."""


def impact_of(config: VirtPlatformConfig) -> PlanImpact:
    radii = [item.blast_radius for item in config.status.items if item.blast_radius]
    largest = max(radii, key=lambda one: one.node_count, default=None)
    if largest is None:
        return PlanImpact(0, "", 0, 0, (), 0)
    pools = ", ".join(
        f"{pool.name} in {pool.rounds} round{'' if pool.rounds == 1 else 's'}{', paused' if pool.paused else ''}"
        for pool in largest.pools
    )
    return PlanImpact(
        largest.node_count,
        pools,
        largest.virtual_machines,
        largest.immovable_count,
        largest.immovable,
        sum(one.node_count > 0 for one in radii),
    )


def _condition(config: VirtPlatformConfig, type_: str) -> Condition | None:
    return next((one for one in config.status.conditions if one.type == type_), None)


def _rejection(config: VirtPlatformConfig) -> dict[str, Any] | None:
    if not config.rejected_plan:
        return None
    return {
        "plan": config.rejected_plan,
        "by": config.rejected_by,
        "comment": config.metadata.annotations.get(REJECTION_COMMENT, ""),
        "is_this": config.rejected_plan == config.status.plan_hash,
    }
