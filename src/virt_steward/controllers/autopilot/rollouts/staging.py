"""Whether a change is written now or staged: the first rule that has an answer decides. Pure.

A write is due: an object does not exist, differs from what is wanted, or was written by another instance. RULES look at
why (`Occasion`), at the policy, and at the MachineConfigPools whose nodes would reboot. What no rule lets through is
staged. A change that reboots no node is staged only where another instance has managed the cluster.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from virt_steward.controllers.autopilot.annotation_keys import TAKEOVER
from virt_steward.controllers.autopilot.rollouts.policy import DeadlineAction, RolloutMode, Takeover
from virt_steward.controllers.autopilot.rollouts.staged import Occasion
from virt_steward.objects.wallclock import rfc3339
from virt_steward.objects.windows import Open, state_of

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from virt_steward.controllers.autopilot.rollouts.policy import RolloutPolicy
    from virt_steward.controllers.autopilot.rollouts.staged import StagedChange
    from virt_steward.platform.pools import Pool


@dataclass(frozen=True, slots=True)
class RolloutCase:
    """All that bears on one change."""

    occasion: Occasion
    policy: RolloutPolicy
    pools: tuple[Pool, ...] | None
    """Those whose nodes would reboot; None: they cannot be read."""
    now: datetime
    staged: StagedChange | None = None
    """As recorded; None if it is not staged yet."""
    is_released: bool = False
    """A person has released this very change."""
    started: frozenset[str] = frozenset()
    """Pools whose rollout another write of ours has just started; their status does not show it yet."""
    held_pools: frozenset[str] = frozenset()
    """Pools with other changes that nobody has reviewed: staged at first contact, or not compared yet."""
    reboots: bool = True
    """Whether the kind of the object is one whose changes reboot nodes."""


@dataclass(frozen=True, slots=True)
class WriteNow:
    """The change may be written."""

    reason: str
    """Why it is released, if it was staged before."""


@dataclass(frozen=True, slots=True)
class StageChange:
    """The change waits."""

    message: str
    """What for."""
    until: datetime | None = None
    """When to look again without any event."""
    is_overdue: bool = False
    """Its deadline has passed, and the policy is to warn."""


StagingVerdict = WriteNow | StageChange


def not_staged_at_all(case: RolloutCase) -> StagingVerdict | None:
    if case.policy.mode is RolloutMode.IMMEDIATE:
        return WriteNow("the rollout policy is immediate")
    return WriteNow("the object bypasses staging") if case.policy.is_bypassed else None


def released_by_a_person(case: RolloutCase) -> StagingVerdict | None:
    return WriteNow("a person has released it") if case.is_released else None


def reviewed_at_takeover(case: RolloutCase) -> StagingVerdict | None:
    """What reboots no node waits for nothing but the review of what another instance left."""
    if case.reboots:
        return None
    if case.occasion.wants_review and case.policy.takeover is Takeover.REVIEW:
        how = f"until a person releases it, or sets {TAKEOVER}: {Takeover.ACCEPT.value} on the HyperConverged"
        return StageChange(f"another instance of the autopilot has managed this cluster, so it waits {how}")
    return WriteNow("no node reboots")


def pools_are_known(case: RolloutCase) -> StagingVerdict | None:
    """What cannot be read may be a pool with nodes that run guests."""
    if case.pools is None:
        return StageChange("which MachineConfigPools select it is unknown: they cannot be read")
    return WriteNow("no MachineConfigPool selects it, so no node reboots") if not case.pools else None


def deadline_has_passed(case: RolloutCase) -> StagingVerdict | None:
    is_due = (due := _due(case)) is not None and due <= case.now
    return WriteNow("its deadline has passed") if is_due and case.policy.action is DeadlineAction.RELEASE else None


def coalesced(case: RolloutCase) -> StagingVerdict | None:
    if case.policy.mode is not RolloutMode.COALESCE or case.pools is None:
        return None
    for pool in case.pools:
        if reason := _rolling(pool, case):
            return WriteNow(reason)
    if case.occasion is Occasion.CREATE and not case.held_pools & {pool.name for pool in case.pools}:
        return WriteNow("it is new")
    return None


def inside_window(case: RolloutCase) -> StagingVerdict | None:
    """A paused pool takes nothing up: the nodes would reboot whenever it is resumed, outside of any window."""
    window = case.policy.window
    if case.policy.mode is not RolloutMode.WINDOW or window is None or not case.pools:
        return None
    if all(pool.spec.paused for pool in case.pools):
        return None
    return WriteNow("its window is open") if isinstance(state_of(window, case.now), Open) else None


RULES: tuple[Callable[[RolloutCase], StagingVerdict | None], ...] = (
    not_staged_at_all,
    released_by_a_person,
    reviewed_at_takeover,
    pools_are_known,
    deadline_has_passed,
    coalesced,
    inside_window,
)


def decide_rollout(case: RolloutCase) -> StagingVerdict:
    """Decide on one change."""
    for rule in RULES:
        if verdict := rule(case):
            return verdict
    due = _due(case)
    is_overdue = due is not None and due <= case.now
    opening = _opening(case)
    times = [moment for moment in (due, opening) if moment is not None and moment > case.now]
    return StageChange(_waiting_for(case, opening), min(times, default=None), is_overdue)


def _rolling(pool: Pool, case: RolloutCase) -> str:
    """Why nodes of the pool reboot anyway; empty if they do not."""
    if pool.is_updating:
        passed = pool.status.updated_machine_count
        again = f"; {passed} of its {pool.status.machine_count} nodes were updated before and reboot again"
        return f"pool {pool.name} is updating{again if passed else ''}"
    if pool.is_render_degraded:
        return f"pool {pool.name} is RenderDegraded"
    return f"another change starts a rollout of pool {pool.name}" if pool.name in case.started else ""


def _due(case: RolloutCase) -> datetime | None:
    if case.policy.deadline is None or case.staged is None:
        return None
    return case.staged.staged_at + case.policy.deadline


def _opening(case: RolloutCase) -> datetime | None:
    window = case.policy.window
    return None if window is None else state_of(window, case.now).until


def _waiting_for(case: RolloutCase, opening: datetime | None) -> str:
    pools = case.pools or ()
    names = ", ".join(pool.name for pool in pools)
    if paused := ", ".join(pool.name for pool in pools if pool.spec.paused):
        names += f" (paused: {paused})"
    match case.policy.mode:
        case RolloutMode.APPROVE:
            waits = "until a person releases it"
        case RolloutMode.WINDOW if opening is not None and not all(pool.spec.paused for pool in pools):
            waits = f"until its window opens at {rfc3339(opening)}"
        case RolloutMode.WINDOW if case.policy.window is not None and pools:
            waits = "until its window is open and a pool is not paused"
        case RolloutMode.WINDOW:
            waits = "until a person releases it, for its window is invalid"
        case _:
            waits = "until nodes of that pool reboot anyway"
    return f"nodes of pool {names} would reboot, so it waits {waits}"
