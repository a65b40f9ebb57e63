"""What is staged of an asset: why it waits, what it would change, and which nodes reboot."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from virt_steward.controllers.autopilot.decide import Wanted
from virt_steward.controllers.autopilot.rollouts.policy import parse_policy
from virt_steward.controllers.autopilot.rollouts.staged import Occasion
from virt_steward.controllers.autopilot.rollouts.staging import RolloutCase, StageChange, decide_rollout
from virt_steward.insight.assets.survey import target_state
from virt_steward.objects.wallclock import rfc3339
from virt_steward.plans.blast_radius import radius_of, take_census

if TYPE_CHECKING:
    from datetime import datetime

    from virt_steward.catalog.asset import Asset
    from virt_steward.controllers.autopilot.decide import AssetDecision
    from virt_steward.controllers.autopilot.observe import AutopilotClusterView
    from virt_steward.controllers.autopilot.rollouts.policy import RolloutPolicy
    from virt_steward.controllers.autopilot.rollouts.staged import StagedChange
    from virt_steward.insight.assets.survey import Survey
    from virt_steward.kube.client import Reader
    from virt_steward.objects.identity import Ref


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
    """In words; empty if it does nothing but create the object."""
    impact: str


@dataclass(frozen=True, slots=True)
class StagedWait:
    """The staged changes of an asset, which are released together, and why they wait."""

    changes: tuple[StagedChange, ...]
    """Of its object first, then the deletions of what it replaces."""
    message: str
    deleted: tuple[Ref, ...] = ()

    @property
    def id(self) -> str:
        """What a person releases: the ids of all changes."""
        return ",".join(change.id for change in self.changes)

    @property
    def matching_pools(self) -> tuple[str, ...]:
        return tuple(sorted({pool for change in self.changes for pool in change.matching_pools}))

    @property
    def staged_at(self) -> datetime:
        return min(change.staged_at for change in self.changes)

    def __str__(self) -> str:
        return f"a change is staged since {rfc3339(self.staged_at)}: {self.message}"


def staged_wait(view: AutopilotClusterView, asset: Asset, decision: AssetDecision, now: datetime) -> StagedWait | None:
    """Return what is staged by the rules of the controller; None if there is nothing, or it is not wanted any more."""
    changes, messages, deleted = [], [], []
    policy = decision.outcome.rollout if isinstance(decision.outcome, Wanted) else None
    if policy and (change := view.staged(view.ref(asset))):
        changes.append(change)
        messages.append(_why(view, change, policy, now))
    for stone in view.catalog.replaced_by(asset.name):
        live, change = view.tombstoned(stone.ref), view.staged(stone.ref)
        if live and change and (seen := view.seen()):
            changes.append(change)
            deleted.append(stone.ref)
            policy = parse_policy(seen.context.hco.annotations, live.annotations)
            messages.append(f"{stone.ref} is obsolete and will be deleted: {_why(view, change, policy, now)}")
    return StagedWait(tuple(changes), "; ".join(messages), tuple(deleted)) if changes else None


def _why(view: AutopilotClusterView, change: StagedChange, policy: RolloutPolicy, now: datetime) -> str:
    known = view.pools()
    pools = None if known is None else tuple(pool for pool in known if pool.name in change.matching_pools)
    match decide_rollout(RolloutCase(change.occasion, policy, pools, now, change)):
        case StageChange(message, _, is_overdue):
            return f"{message}{' (its deadline has passed)' if is_overdue else ''}"
        case write:
            return f"the autopilot is about to write it: {write.reason}"


async def review_staged(reader: Reader, survey: Survey, asset: Asset) -> StagedAsset | None:
    """Return the staged change of an asset for its review; None if there is none, or it is not wanted any more."""
    wait = staged_wait(survey.view, asset, survey.decision(asset), survey.now)
    if wait is None:
        return None
    change, pools = wait.changes[0], survey.view.pools() or ()
    affected = tuple(pool for pool in pools if pool.name in wait.matching_pools)
    differences = [target_state(survey, asset).message, *(f"{ref} is deleted" for ref in wait.deleted)]
    if wait.deleted and change.occasion is Occasion.CREATE:
        differences[0] = "the object is created"
    return StagedAsset(
        asset=asset.name,
        id=wait.id,
        object=str(survey.view.ref(asset)),
        occasion=change.occasion.value,
        since=rfc3339(wait.staged_at),
        pools=wait.matching_pools,
        message=wait.message,
        differences="; ".join(filter(None, differences)),
        impact=radius_of(affected, pools, await take_census(reader)).message,
    )
