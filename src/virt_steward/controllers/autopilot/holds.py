"""How freezes and gates hold a write back: a step of `converge`, and how gates are asked for a staged change."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from virt_steward.controllers.autopilot.rollouts.staging import StageChange
from virt_steward.controllers.autopilot.verdicts import AssetInSync, AssetPending, AssetStaged, PendingReason
from virt_steward.holds.freezes import Frozen
from virt_steward.objects.identity import ref_of
from virt_steward.ssa.preview import Creates, Reowns

if TYPE_CHECKING:
    from virt_steward.controllers.autopilot.converge import Task, Toolkit
    from virt_steward.controllers.autopilot.rollouts.stager import LiveFacts, RolloutContext, Staging
    from virt_steward.controllers.autopilot.verdicts import Verdict
    from virt_steward.ssa.locks import Object


async def hold_during_freeze(tools: Toolkit, task: Task) -> Task | Verdict:
    """Correct drift during a freeze, unless it is total, and begin nothing else. What reboots nodes is staged."""
    if not isinstance(task.freeze, Frozen) or task.rollout:
        return task
    if isinstance(task.outcome, Reowns):  # every value is as desired
        return AssetInSync()
    if not task.freeze.is_total and _is_correction(tools, task):
        return task
    until = task.freeze.until
    retry_in = max((until - tools.clock.utc()).total_seconds(), 0.1) if until else None
    return AssetPending(PendingReason.FROZEN, task.freeze.message, retry_in)


def _is_correction(tools: Toolkit, task: Task) -> bool:
    """Whether a write only undoes what others have changed; an object that they have deleted is created again."""
    if isinstance(task.outcome, Creates):
        return tools.stager.ledger.was_in_sync(ref_of(task.intent))
    return bool(task.drifts) and not task.own_changes


async def recall_staged(tools: Toolkit, task: Task, rollout: RolloutContext) -> Staging | None:
    """Decide again on what is staged, with the answers of its gates if nothing else holds it back, and record them."""
    labels = task.summary.labels if task.summary else {}
    wanted, ledger = task.wanted.intent, tools.stager.ledger
    staging = tools.stager.recall(rollout, wanted, labels, tools.clock.utc())
    if staging and staging.gates:
        rollout = await _with_gates(tools, rollout, staging)
        staging = tools.stager.recall(rollout, wanted, labels, tools.clock.utc())
    if staging:
        await ledger.stage(rollout.hco, ref_of(wanted), staging.change)
    return staging


async def judge_staging(tools: Toolkit, wanted: Object, rollout: RolloutContext, live: LiveFacts) -> Staging:
    """Decide on a change that was compared just now, with the answers of its gates if nothing else holds it back."""
    staging = tools.stager.judge(rollout, wanted, live, tools.clock.utc())
    if not staging.gates:
        return staging
    return tools.stager.judge(await _with_gates(tools, rollout, staging), wanted, live, tools.clock.utc())


async def _with_gates(tools: Toolkit, rollout: RolloutContext, staging: Staging) -> RolloutContext:
    return replace(rollout, holds=replace(rollout.holds, gates=await tools.gates.evaluate(staging.gates)))


def staged_verdict(tools: Toolkit, staging: Staging, changes: tuple[str, ...] = ()) -> AssetStaged:
    verdict = staging.verdict
    assert isinstance(verdict, StageChange)  # noqa: S101 - the callers have asked
    retry_in = max((verdict.until - tools.clock.utc()).total_seconds(), 0.1) if verdict.until else None
    return AssetStaged(verdict.message, staging.change, changes, verdict.is_overdue, retry_in)
