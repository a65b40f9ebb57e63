"""Follows a plan until it is completed or has failed."""

from __future__ import annotations

from contextlib import aclosing
from dataclasses import dataclass
from typing import TYPE_CHECKING

from virt_steward.apis.virtplatformconfig import VIRT_PLATFORM_CONFIG
from virt_steward.controllers.advisor.conditions import is_holding
from virt_steward.controllers.advisor.observation import VirtPlatformConfig
from virt_steward.kube.client import Selection
from virt_steward.kube.watch import snapshots
from virt_steward.objects.identity import Key

if TYPE_CHECKING:
    from collections.abc import Callable

    from virt_steward.kube.client import Reader


@dataclass(frozen=True, slots=True)
class PlanCompleted:
    """All items are applied and ready."""


@dataclass(frozen=True, slots=True)
class PlanFailed:
    """It ended without being completed."""

    why: str


@dataclass(frozen=True, slots=True)
class PlanInProgress:
    """It has not ended yet."""

    lines: tuple[str, ...]
    """One line for each item that has started."""


Progress = PlanCompleted | PlanFailed | PlanInProgress


def progress_of_any(config: VirtPlatformConfig | None) -> Progress:
    """The progress of whatever plan there is: also before it is drafted and while it is in review."""
    if config is None:
        return progress(None, "")
    status = config.status
    if status.phase in (None, "Pending", "Drafting"):
        return PlanInProgress(("the plan is being drafted",))
    if status.phase == "ReviewRequired" and config.spec.action == "DryRun":
        return PlanInProgress((f"plan {status.plan_hash} waits for a review",))
    return progress(config, status.plan_hash)


def progress(  # noqa: PLR0911 - a table by phase
    config: VirtPlatformConfig | None, plan_hash: str
) -> Progress:
    """The progress of an approved plan."""
    if config is None:
        return PlanFailed("the VirtPlatformConfig has been deleted")
    status = config.status
    if status.phase in ("ReviewRequired", "InProgress") and status.plan_hash != plan_hash:
        return PlanFailed(f"it was replaced by plan {status.plan_hash}")
    match status.phase:
        case "ReviewRequired" if config.spec.action == "DryRun":
            return PlanFailed("action was set to DryRun")
        case "ReviewRequired":
            return PlanInProgress(("approved; the advisor has not started it yet",))
        case "InProgress":
            return PlanInProgress(_lines(config))
        case "Completed":
            return PlanCompleted()
        case phase:
            message = next((one.message for one in status.conditions if one.type == phase), "")
            return PlanFailed(f"it is in phase {phase}" + (f": {message}" if message else ""))


def _lines(config: VirtPlatformConfig) -> tuple[str, ...]:
    items = config.status.items
    begun = tuple(
        f"[{number}/{len(items)}] {item.name} {item.state}: {item.message}"
        for number, item in enumerate(items, 1)
        if item.state != "Pending"
    )
    waiting = next((one.message for one in config.status.conditions if is_holding(one)), "")
    return (*begun, waiting) if waiting else begun


async def follow(
    reader: Reader,
    profile: str,
    judge: Callable[[VirtPlatformConfig | None], Progress],
    report: Callable[[str], None],
) -> PlanCompleted | PlanFailed:
    """Watch until the plan has ended, and report each change. Outages are waited out; a missing right is an error."""
    reported: set[str] = set()
    key = Key("", profile)
    configs = snapshots(reader, VIRT_PLATFORM_CONFIG, VirtPlatformConfig, Selection.one(key))
    async with aclosing(configs) as changes:
        async for known in changes:
            reached = judge(known.get(key))
            if not isinstance(reached, PlanInProgress):
                return reached
            for line in reached.lines:
                if line not in reported:
                    reported.add(line)
                    report(line)
    raise AssertionError(profile)  # a watch ends only by an error
