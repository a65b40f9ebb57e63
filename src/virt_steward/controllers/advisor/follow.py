"""Follows an approved plan until it is carried out, or has failed."""

from __future__ import annotations

from contextlib import aclosing
from dataclasses import dataclass
from typing import TYPE_CHECKING

from virt_steward.apis.virtplatformconfig import VIRT_PLATFORM_CONFIG
from virt_steward.controllers.advisor.conditions import WINDOW
from virt_steward.controllers.advisor.observation import VirtPlatformConfig
from virt_steward.kube.client import Selection
from virt_steward.kube.watch import snapshots
from virt_steward.objects.identity import Key

if TYPE_CHECKING:
    from collections.abc import Callable

    from virt_steward.kube.client import Reader


@dataclass(frozen=True, slots=True)
class PlanCompleted:
    """All items are applied and work."""


@dataclass(frozen=True, slots=True)
class PlanFailed:
    """It ended otherwise."""

    why: str


@dataclass(frozen=True, slots=True)
class PlanInProgress:
    """Not over yet."""

    lines: tuple[str, ...]
    """How far it has got: one for each item that has begun."""


def progress(  # noqa: PLR0911 - a table by phase
    config: VirtPlatformConfig | None, plan_hash: str
) -> PlanCompleted | PlanFailed | PlanInProgress:
    """How far an approved plan has got."""
    if config is None:
        return PlanFailed("the VirtPlatformConfig has been deleted")
    status = config.status
    if status.phase in ("ReviewRequired", "InProgress") and status.plan_hash != plan_hash:
        return PlanFailed(f"another plan has taken its place: {status.plan_hash}")
    match status.phase:
        case "ReviewRequired" if config.spec.action == "DryRun":
            return PlanFailed("somebody has set action to DryRun")
        case "ReviewRequired":
            return PlanInProgress(("approved; the advisor has not taken it up yet",))
        case "InProgress":
            return PlanInProgress(_lines(config))
        case "Completed":
            return PlanCompleted()
        case phase:
            said = next((one.message for one in status.conditions if one.type == phase), "")
            return PlanFailed(f"it is in phase {phase}" + (f": {said}" if said else ""))


def _lines(config: VirtPlatformConfig) -> tuple[str, ...]:
    items = config.status.items
    begun = tuple(
        f"[{number}/{len(items)}] {item.name} {item.state}: {item.message}"
        for number, item in enumerate(items, 1)
        if item.state != "Pending"
    )
    waiting = next((one.message for one in config.status.conditions if one.type == WINDOW and one.status == "True"), "")
    return (*begun, waiting) if waiting else begun


async def follow(
    reader: Reader, profile: str, plan_hash: str, say: Callable[[str], None]
) -> PlanCompleted | PlanFailed:
    """Watch until it is over, and say each change on the way. Outages are waited out; who may not look is told."""
    said: set[str] = set()
    key = Key("", profile)
    configs = snapshots(reader, VIRT_PLATFORM_CONFIG, VirtPlatformConfig, Selection.one(key))
    async with aclosing(configs) as changes:
        async for known in changes:
            reached = progress(known.get(key), plan_hash)
            if not isinstance(reached, PlanInProgress):
                return reached
            for line in reached.lines:
                if line not in said:
                    said.add(line)
                    say(line)
    raise AssertionError(profile)  # a watch ends only by an error
