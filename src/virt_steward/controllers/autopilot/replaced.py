"""Deletes obsolete objects that an asset replaces: after the asset, so that what they do is never undone before.

If nodes reboot without the object, or another instance has created it, its deletion is a change like any other: it is
staged by the rules of `rollouts`, in the name of the asset, and both are released together. For example, a
KubeletConfig of an earlier release is replaced by a MachineConfig. Both changes are staged; once a person releases the
asset, the MachineConfig is created and the KubeletConfig is deleted in one go, and nodes reboot once.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from virt_steward.controllers.autopilot.rollouts.policy import REBOOTING, parse_policy
from virt_steward.controllers.autopilot.rollouts.staged import Occasion
from virt_steward.controllers.autopilot.rollouts.stager import LiveFacts, R, RolloutContext
from virt_steward.controllers.autopilot.rollouts.staging import StageChange
from virt_steward.controllers.autopilot.tombstones import (
    EXISTS,
    Obsolete,
    check_tombstone,
    delete_obsolete,
    needs_review,
)
from virt_steward.controllers.autopilot.verdicts import AssetFailed, AssetPending, AssetSkipped, AssetStaged
from virt_steward.holds.freezes import Frozen

if TYPE_CHECKING:
    from datetime import datetime

    from virt_steward.controllers.autopilot.converge import Toolkit
    from virt_steward.controllers.autopilot.observation import AutopilotObservation
    from virt_steward.controllers.autopilot.observe import AutopilotClusterView
    from virt_steward.controllers.autopilot.reporter import AutopilotReporter
    from virt_steward.controllers.autopilot.rollouts.stager import Stager, Staging
    from virt_steward.controllers.autopilot.verdicts import Verdict
    from virt_steward.holds.gates import GateStates


@dataclass(frozen=True, slots=True)
class Replacement:
    """An asset, and what has just become of it."""

    asset: str
    verdict: Verdict

    @property
    def is_settled(self) -> bool:
        """Whether the asset is in place, or not wanted: then what it replaces may go."""
        match self.verdict:
            case AssetSkipped(reason):
                return not reason.is_unknown
            case AssetStaged() | AssetPending() | AssetFailed():
                return False
        return True


@dataclass(frozen=True, slots=True)
class ReplacedResult:
    """What has become of the objects that one asset replaces."""

    until: datetime | None = None
    """When to look again without any event."""
    starts_rollout: bool = False
    """Nodes reboot because one was deleted."""


class ReplacedObjects:
    """Deletes or stages, asset by asset."""

    def __init__(self, tools: Toolkit, view: AutopilotClusterView, reporter: AutopilotReporter) -> None:
        self._tools = tools
        self._view = view
        self._reporter = reporter
        self._ledger = tools.stager.ledger

    async def settle(self, observation: AutopilotObservation, replacement: Replacement) -> ReplacedResult:
        """Delete what the asset replaces, or stage that."""
        results = []
        is_frozen = isinstance(self._view.freeze(self._tools.clock.utc()), Frozen)
        for stone in self._view.catalog.replaced_by(replacement.asset):
            match check_tombstone(stone, self._view, observation):
                case Obsolete() as obsolete if needs_review(obsolete, self._view, observation):
                    results.append(await self._stage_or_delete(observation, replacement, obsolete))
                case Obsolete() as obsolete if replacement.is_settled and not is_frozen:
                    await self._ledger.drop(observation.hco, (stone.ref,))
                    await delete_obsolete(self._tools.client, self._reporter, obsolete, observation.hco)
                case Obsolete():
                    self._reporter.report_tombstone(observation.hco, stone.ref, EXISTS)
                case status:
                    await self._ledger.drop(observation.hco, (stone.ref,))
                    self._reporter.report_tombstone(observation.hco, stone.ref, status.value, status.message)
            self._ledger.note_compared(stone.ref)
        until = min((one.until for one in results if one.until), default=None)
        return ReplacedResult(until, any(one.starts_rollout for one in results))

    async def _stage_or_delete(
        self, observation: AutopilotObservation, replacement: Replacement, obsolete: Obsolete
    ) -> ReplacedResult:
        ref, hco = obsolete.stone.ref, observation.hco
        tools = self._tools
        now = tools.clock.utc()
        staging = judge_deletion(tools.stager, self._view, observation, obsolete, now)
        if staging.gates:
            gates = await tools.gates.evaluate(staging.gates)
            staging = judge_deletion(tools.stager, self._view, observation, obsolete, now, gates)
        if not staging.is_held and not replacement.is_settled:
            staging = replace(
                staging, verdict=StageChange(f"asset {replacement.asset}, which replaces it, is applied first")
            )
        if isinstance(staging.verdict, StageChange):
            await self._ledger.stage(hco, ref, staging.change)
            self._reporter.report_staged_deletion(hco, ref, staging.change, staging.verdict)
            return ReplacedResult(staging.verdict.until)
        was_staged = self._ledger.find(ref) is not None
        if not await delete_obsolete(self._tools.client, self._reporter, obsolete, hco):
            return ReplacedResult()
        self._ledger.note_rollout(staging.pools)
        await self._ledger.drop(hco, (ref,))
        if was_staged:
            self._reporter.report_released_deletion(hco, ref, staging.verdict.reason, obsolete.live.metadata.uid)
        return ReplacedResult(starts_rollout=ref.kind in REBOOTING)


def judge_deletion(  # noqa: PLR0913, PLR0917 - all that the decision depends on
    stager: Stager[R],
    view: AutopilotClusterView,
    observation: AutopilotObservation,
    obsolete: Obsolete,
    now: datetime,
    gates: GateStates | None = None,
) -> Staging:
    """Decide whether an obsolete object whose deletion may have to wait is deleted now, or staged."""
    stone, live = obsolete.stone, obsolete.live
    part = view.obsolete_part(stone, live)
    annotations = observation.context.hco.annotations
    policy = parse_policy(annotations, live.annotations)
    pools = view.pools() if part.tells_pools else None
    holds = replace(view.rollout_holds(annotations, now), gates=gates or {})
    context = replace(RolloutContext.of(stone.replaced_by, observation, policy, pools), holds=holds)
    facts = LiveFacts(Occasion.DELETE, live.digest.hex()[:16], live.labels)
    return stager.judge(context, part.object, facts, now)
