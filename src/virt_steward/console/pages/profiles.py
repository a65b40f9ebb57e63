"""Profiles: what each does and needs; and the plan of one, with what it costs, what it changes, and the decision."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import msgspec

from virt_steward.apis.virtplatformconfig import VIRT_PLATFORM_CONFIG, ProfileOptions
from virt_steward.console import diffs, forms
from virt_steward.console.actions import action_after_rejection, is_undoing
from virt_steward.console.drift import drift_of
from virt_steward.console.page_context import PageContent, holds, not_there
from virt_steward.console.rollouts import recounted, rollouts
from virt_steward.controllers.advisor.annotation_keys import REJECTION_COMMENT
from virt_steward.controllers.advisor.conditions import INPUT_DRIFT, STALE, UPGRADE, WINDOW
from virt_steward.controllers.advisor.options import AdvisorOptions
from virt_steward.controllers.advisor.phases import SETTLED
from virt_steward.controllers.advisor.profiles import profiles as known_profiles
from virt_steward.objects.corekinds import NODE
from virt_steward.objects.identity import Key, Ref
from virt_steward.platform.machineconfigs import MACHINE_CONFIG_POOL

if TYPE_CHECKING:
    from virt_steward.apis.meta import Condition
    from virt_steward.apis.virtplatformconfig import PlanItem
    from virt_steward.console.drift import ItemDrift
    from virt_steward.console.hub import Topic
    from virt_steward.console.page_context import PageContext
    from virt_steward.console.rollouts import Rollout
    from virt_steward.controllers.advisor.observation import VirtPlatformConfig
    from virt_steward.controllers.advisor.profiles.profile import Profile


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
    None: "Not offered yet",
    "Ignored": "Off",
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
    WINDOW: ("Waits for its window", "info"),
}
TO_PLAN_ANEW = ("Failed", "CompletedWithErrors", "CompletedWithUpgrade", "Drifted")
"""Phases that only a new plan leads out of."""
IMPACT_TONES = {"High": "bad", "Medium": "warn", "Low": "ok"}


@dataclass(frozen=True, slots=True)
class Badge:
    word: str
    tone: str
    why: str


@dataclass(frozen=True, slots=True)
class Card:
    """A profile, whether or not the cluster has its object."""

    profile: Profile
    config: VirtPlatformConfig | None
    phase: Badge
    badges: tuple[Badge, ...]
    needs: tuple[str, ...]
    fields: tuple[forms.FormField, ...]

    @property
    def is_on(self) -> bool:
        return self.config is not None and self.config.spec.action != "Ignore"


@dataclass(frozen=True, slots=True)
class ItemView:
    item: PlanItem
    lines: tuple[diffs.DiffLine, ...]
    tone: str
    rollouts: tuple[Rollout, ...]
    drift: ItemDrift | None
    recounted: str
    """What it costs by now; empty if that is what the plan says."""


async def page(visit: PageContext) -> PageContent:
    configs = {config.metadata.name: config for config in visit.configs}
    offered = [
        one
        for one in known_profiles(AdvisorOptions(example_profile=True))
        if one.about.is_advertised or one.name in configs
    ]
    cards = [card_of(profile, configs.get(profile.name)) for profile in offered]
    shown = [card for card in cards if holds(f"{card.profile.name} {card.profile.about.description}", visit.words)]
    values = {"cards": shown, "may_change": await visit.may("patch", VIRT_PLATFORM_CONFIG)}
    return PageContent("profiles.html", "Profiles", values, TOPICS, missing=(VIRT_PLATFORM_CONFIG,))


async def plan(visit: PageContext) -> PageContent:
    name = visit.match["name"]
    profile = next((one for one in known_profiles(AdvisorOptions(example_profile=True)) if one.name == name), None)
    config = next((one for one in visit.configs if one.metadata.name == name), None)
    if profile is None or config is None:
        return not_there(f"VirtPlatformConfig {name}", VIRT_PLATFORM_CONFIG)
    card, status = card_of(profile, config), config.status
    nodes = list(visit.cache.nodes) if visit.sight.sees(NODE) else []
    has_begun = status.phase not in (None, "ReviewRequired", "Ignored")
    items = [
        ItemView(
            item,
            diffs.lines(item.diff),
            IMPACT_TONES[item.impact_severity],
            rollouts(item, visit.pools, nodes) if has_begun else (),
            await drift_of(visit, item) if status.phase == "Drifted" else None,
            recounted(item, visit.pools, nodes) if status.phase == "ReviewRequired" else "",
        )
        for item in status.items
    ]
    values = {
        "card": card,
        "config": config,
        "status": status,
        "said": _condition(config, status.phase or ""),
        "items": items,
        "cost": cost_of(config),
        "impact_tones": IMPACT_TONES,
        "rejection": _rejection(config),
        "is_stale": config.is_true(STALE),
        "can_decide": status.phase == "ReviewRequired" and bool(status.plan_hash) and not config.is_touched,
        "is_undoing": is_undoing(config),
        "outlives_rejection": action_after_rejection(config) != "Ignore",
        "can_plan_anew": _can_plan_anew(config),
        "can_undo": status.phase in (*SETTLED, "Ignored")
        and bool(status.governed)
        and config.spec.action != "Rollback",
        "may_change": await visit.may("patch", VIRT_PLATFORM_CONFIG),
        "told": visit.told_of(str(Ref(VIRT_PLATFORM_CONFIG, Key("", name))))[:20],
    }
    return PageContent("plan.html", name, values, TOPICS, missing=(MACHINE_CONFIG_POOL, NODE) if has_begun else ())


def _can_plan_anew(config: VirtPlatformConfig) -> bool:
    """Whether there is nothing else to decide: a plan ended badly or no longer counts, or the profile was put aside."""
    status = config.status
    was_put_aside = status.phase == "Ignored" and bool(status.items)
    return (status.phase in TO_PLAN_ANEW or was_put_aside) and not config.is_touched


def card_of(profile: Profile, config: VirtPlatformConfig | None) -> Card:
    phase = config.status.phase if config else None
    said = _condition(config, phase) if config and phase else None
    badges = tuple(
        Badge(*BADGES[one.type], one.message)
        for one in (config.status.conditions if config else ())
        if one.type in BADGES and one.status == "True"
    )
    options = msgspec.to_builtins(config.options) if config else {}
    return Card(
        profile,
        config,
        Badge(WORDS.get(phase, str(phase)), TONES.get(str(phase), "muted"), said.message if said else ""),
        badges,
        tuple(str(one) for one in profile.prerequisites(config.options if config else ProfileOptions())),
        forms.fields(profile.name, options),
    )


@dataclass(frozen=True, slots=True)
class Cost:
    """What a plan costs as a whole."""

    nodes: int
    rounds: str
    move: int
    immovable: int
    named: tuple[str, ...]
    rebooting: int
    """Items that reboot nodes."""


def cost_of(config: VirtPlatformConfig) -> Cost:
    radii = [item.blast_radius for item in config.status.items if item.blast_radius]
    heaviest = max(radii, key=lambda one: one.node_count, default=None)
    if heaviest is None:
        return Cost(0, "", 0, 0, (), 0)
    pools = ", ".join(
        f"{pool.name} in {pool.rounds} round{'' if pool.rounds == 1 else 's'}{', paused' if pool.paused else ''}"
        for pool in heaviest.pools
    )
    return Cost(
        heaviest.node_count,
        pools,
        heaviest.virtual_machines,
        heaviest.immovable_count,
        heaviest.immovable,
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
