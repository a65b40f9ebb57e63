"""What is staged of an asset: why it waits, what it would change, and which nodes reboot."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from virt_steward.controllers.autopilot.decide import Wanted
from virt_steward.controllers.autopilot.rollouts.staging import RolloutCase, StageChange, decide_rollout
from virt_steward.insight.assets.survey import target_state
from virt_steward.objects.wallclock import rfc3339
from virt_steward.plans.blast_radius import radius_of, take_census

if TYPE_CHECKING:
    from datetime import datetime

    from virt_steward.catalog.asset import Asset
    from virt_steward.controllers.autopilot.decide import AssetDecision
    from virt_steward.controllers.autopilot.observe import AutopilotClusterView
    from virt_steward.controllers.autopilot.rollouts.staged import StagedChange
    from virt_steward.insight.assets.survey import Survey
    from virt_steward.kube.client import Reader


@dataclass(frozen=True, slots=True)
class StagedAsset:
    """A staged change, for a person who decides about it."""

    asset: str
    id: str
    object: str
    occasion: str
    since: str
    pools: tuple[str, ...]
    message: str
    differences: str
    """In words; empty if the object does not exist."""
    impact: str


@dataclass(frozen=True, slots=True)
class StagedWait:
    """A staged change, and why it waits."""

    change: StagedChange
    message: str

    def __str__(self) -> str:
        return f"a change is staged since {rfc3339(self.change.staged_at)}: {self.message}"


def staged_wait(view: AutopilotClusterView, asset: Asset, decision: AssetDecision, now: datetime) -> StagedWait | None:
    """Return the staged change by the rules of the controller; None if there is none, or it is not wanted any more."""
    change = view.staged(asset)
    if change is None or not isinstance(decision.outcome, Wanted) or decision.outcome.rollout is None:
        return None
    known = view.pools()
    pools = None if known is None else tuple(pool for pool in known if pool.name in change.matching_pools)
    match decide_rollout(RolloutCase(change.occasion, decision.outcome.rollout, pools, now, change)):
        case StageChange(message, _, is_overdue):
            return StagedWait(change, f"{message}{' (its deadline has passed)' if is_overdue else ''}")
        case write:
            return StagedWait(change, f"the autopilot is about to write it: {write.reason}")


async def review_staged(reader: Reader, survey: Survey, asset: Asset) -> StagedAsset | None:
    """Return the staged change of an asset for its review; None if there is none, or it is not wanted any more."""
    wait = staged_wait(survey.view, asset, survey.decision(asset), survey.now)
    if wait is None:
        return None
    change, pools = wait.change, survey.view.pools() or ()
    affected = tuple(pool for pool in pools if pool.name in change.matching_pools)
    return StagedAsset(
        asset=asset.name,
        id=change.id,
        object=str(survey.view.ref(asset)),
        occasion=change.occasion.value,
        since=rfc3339(change.staged_at),
        pools=change.matching_pools,
        message=wait.message,
        differences=target_state(survey, asset).message,
        impact=radius_of(affected, pools, await take_census(reader)).message,
    )
