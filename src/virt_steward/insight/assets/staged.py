"""What is staged of an asset: why it waits, what it would change, and which nodes reboot."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from virt_steward.controllers.autopilot.decide import Wanted
from virt_steward.controllers.autopilot.rollouts.policy import REBOOTING, parse_policy
from virt_steward.controllers.autopilot.rollouts.stager import RolloutContext, Stager
from virt_steward.controllers.autopilot.rollouts.staging import StageChange
from virt_steward.holds.gates import NotEvaluated
from virt_steward.insight.assets.changes import PreviewRecords
from virt_steward.insight.assets.impact import impact_on
from virt_steward.objects.document import JsonDocument
from virt_steward.objects.field_changes import FieldChange
from virt_steward.objects.wallclock import rfc3339

if TYPE_CHECKING:
    from datetime import datetime

    from virt_steward.catalog.asset import Asset
    from virt_steward.controllers.autopilot.decide import AssetDecision
    from virt_steward.controllers.autopilot.observe import AutopilotClusterView
    from virt_steward.controllers.autopilot.rollouts.staged import StagedChange
    from virt_steward.objects.identity import Ref
    from virt_steward.plans.blast_radius import Census

NO_REBOOT = "no node reboots"
UNKNOWN = "which nodes reboot is unknown: nodes or MachineConfigPools cannot be read"


class StagedAsset(JsonDocument, frozen=True):
    """A staged change, for a person who decides about it: what `explain`, `release` and the console show."""

    asset: str
    id: str
    object: str
    occasion: str
    since: str
    pools: tuple[str, ...]
    message: str
    """What it waits for."""
    creates: bool
    """The object does not exist."""
    fields: tuple[FieldChange, ...]
    more_fields: int
    deleted: tuple[str, ...]
    """Obsolete objects that go with it."""
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

    @property
    def summary(self) -> str:
        """What would change, in a sentence."""
        return self.changes[0].summary

    def __str__(self) -> str:
        return f"a change is staged since {rfc3339(self.staged_at)}: {self.message}"


def staged_wait(view: AutopilotClusterView, asset: Asset, decision: AssetDecision, now: datetime) -> StagedWait | None:
    """Return what is staged by the rules of the controller; None if there is nothing, or it is not wanted any more."""
    observation = view.seen()
    if observation is None:
        return None
    changes, messages, deleted = [], [], []
    pools, holds = view.pools(), view.rollout_holds(observation.context.hco.annotations, now)
    if isinstance(decision.outcome, Wanted) and (change := view.staged(view.ref(asset))):
        context = replace(RolloutContext.of(asset.name, observation, decision.outcome.rollout, pools), holds=holds)
        changes.append(change)
        messages.append(_why(view, context, view.ref(asset), change, now))
    for stone in view.catalog.replaced_by(asset.name):
        live, change = view.tombstoned(stone.ref), view.staged(stone.ref)
        if live and change:
            changes.append(change)
            deleted.append(stone.ref)
            policy = parse_policy(observation.context.hco.annotations, live.annotations)
            context = replace(RolloutContext.of(asset.name, observation, policy, pools), holds=holds)
            why = _why(view, context, stone.ref, change, now)
            messages.append(f"{stone.ref} is obsolete and will be deleted: {why}")
    return StagedWait(tuple(changes), "; ".join(messages), tuple(deleted)) if changes else None


def _why(view: AutopilotClusterView, context: RolloutContext, ref: Ref, change: StagedChange, now: datetime) -> str:
    known = context.pools
    pools = None if known is None else tuple(pool for pool in known if pool.name in change.matching_pools)
    match Stager(PreviewRecords(view.all_staged())).decide(context, ref, change, pools, now).verdict:
        case StageChange(gates=NotEvaluated()) if change.closed_gates:
            return change.closed_gates  # as the controller has recorded it
        case StageChange(message, _, is_overdue):
            return f"{message}{' (its deadline has passed)' if is_overdue else ''}"
        case write:
            return f"the autopilot is about to write it: {write.reason}"


def review_staged(
    view: AutopilotClusterView, asset: Asset, decision: AssetDecision, now: datetime, census: Census | None
) -> StagedAsset | None:
    """Return the staged change of an asset for its review; None if there is none, or it is not wanted any more.

    Without a census, it is unknown which nodes reboot.
    """
    wait = staged_wait(view, asset, decision, now)
    if wait is None:
        return None
    change, pools = wait.changes[0], view.pools()
    affected = tuple(pool for pool in pools or () if pool.name in wait.matching_pools)
    refs = (view.ref(asset), *wait.deleted)
    if not any(ref.kind in REBOOTING for ref in refs):
        impact = NO_REBOOT
    elif pools is None or census is None:
        impact = UNKNOWN
    else:
        impact = impact_on(affected, pools, census).message
    return StagedAsset(
        asset=asset.name,
        id=wait.id,
        object=str(view.ref(asset)),
        occasion=change.occasion.value,
        since=rfc3339(wait.staged_at),
        pools=wait.matching_pools,
        message=wait.message,
        creates=not change.live_hash,
        fields=change.fields,
        more_fields=change.more_fields,
        deleted=tuple(map(str, wait.deleted)),
        impact=impact,
    )
