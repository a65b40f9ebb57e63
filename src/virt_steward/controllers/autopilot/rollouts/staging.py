"""Whether a change is written now or staged: the first rule that has an answer decides. Pure.

A write is due: an object does not exist, differs from what is wanted, or was written by another instance. RULES look at
why (`Occasion`), at the policy, and at the MachineConfigPools whose nodes would reboot. What no rule lets through is
staged. A change that reboots no node is staged only where another instance has managed the cluster.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING

from virt_steward.controllers.autopilot.annotation_keys import TAKEOVER
from virt_steward.controllers.autopilot.rollouts.policy import DeadlineAction, RolloutMode, Takeover
from virt_steward.controllers.autopilot.rollouts.staged import Occasion
from virt_steward.holds.freezes import NOT_FROZEN, Frozen
from virt_steward.holds.gates import closed_gates
from virt_steward.holds.order import HoldKind, in_order
from virt_steward.objects.wallclock import rfc3339
from virt_steward.objects.windows import Open, state_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from datetime import datetime

    from virt_steward.controllers.autopilot.rollouts.policy import RolloutPolicy
    from virt_steward.controllers.autopilot.rollouts.staged import StagedChange
    from virt_steward.holds.freezes import FreezeState
    from virt_steward.holds.gates import ClosedGates, GateState, NotEvaluated
    from virt_steward.platform.pools import Pool


@dataclass(frozen=True, slots=True)
class RolloutHolds:
    """What holds changes of the whole platform back."""

    freeze: FreezeState = NOT_FROZEN
    overrides: frozenset[str] = frozenset()
    """Ids of changes that people have released in spite of a freeze."""
    override_note: str = "the freeze is overridden"
    """Who did so, and why."""
    gates: Mapping[str, GateState] = field(default_factory=dict)
    """What gates answered, by name; empty until somebody has asked."""
    required_gates: tuple[str, ...] = ()
    """Gates of the installation, besides those of the policy."""
    poll: timedelta = timedelta(seconds=30)
    """When closed gates are evaluated again."""


NO_HOLDS = RolloutHolds()


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
    holds: RolloutHolds = NO_HOLDS
    overrides_freeze: bool = False
    """A person has released this very change in spite of a freeze."""


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
    gates: ClosedGates | NotEvaluated | None = None
    """The gates that hold it back, or that have to be asked first; None if something else does."""


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
        return StageChange(
            f"another instance or an earlier release of the autopilot has managed this cluster, so it waits {how}"
        )
    return WriteNow("no node reboots")


def pools_are_known(case: RolloutCase) -> StagingVerdict | None:
    """What cannot be read may be a pool with nodes that run guests."""
    if case.pools is None:
        return StageChange("which MachineConfigPools select it is unknown: they cannot be read")
    return WriteNow("no MachineConfigPool selects it, so no node reboots") if not case.pools else None


def deadline_has_passed(case: RolloutCase) -> StagingVerdict | None:
    is_released = _is_overdue(case) and case.policy.action is DeadlineAction.RELEASE
    return WriteNow("its deadline has passed") if is_released else None


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


def lacks_release(case: RolloutCase, verdict: StagingVerdict) -> StageChange | None:
    """Nothing but a person lets it through."""
    is_closed = case.policy.mode is RolloutMode.WINDOW and case.policy.window is None
    needs_person = case.policy.mode is RolloutMode.APPROVE or is_closed
    return verdict if needs_person and isinstance(verdict, StageChange) else None


def is_frozen(case: RolloutCase, _: StagingVerdict) -> StageChange | None:
    """Where no node reboots, drift is still corrected, unless the freeze says otherwise."""
    freeze = case.holds.freeze
    if not isinstance(freeze, Frozen) or case.overrides_freeze:
        return None
    if case.pools == () and case.occasion is Occasion.DRIFT and not freeze.is_total:
        return None
    return StageChange(freeze.message, freeze.until, is_overdue=_is_overdue(case))


def waits_for_its_time(_: RolloutCase, verdict: StagingVerdict) -> StageChange | None:
    """Its window is closed, or no node reboots anyway."""
    return verdict if isinstance(verdict, StageChange) else None


def gates_are_closed(case: RolloutCase, _: StagingVerdict) -> StageChange | None:
    closed = closed_gates((*case.holds.required_gates, *case.policy.gates), case.holds.gates)
    if closed is None or case.pools == ():
        return None
    return StageChange(closed.message, case.now + case.holds.poll, _is_overdue(case), closed)


HOLDS = in_order(
    {
        HoldKind.APPROVALS: lacks_release,
        HoldKind.FREEZE: is_frozen,
        HoldKind.WINDOW: waits_for_its_time,
        HoldKind.GATES: gates_are_closed,
    }
)
"""What holds a change back, of which the first is named."""


def decide_rollout(case: RolloutCase) -> StagingVerdict:
    """Decide on one change."""
    verdict = _decide_by_policy(case)
    held = next((held for hold in HOLDS if (held := hold(case, verdict))), None)
    if held or not (isinstance(case.holds.freeze, Frozen) and case.overrides_freeze):
        return held or verdict
    return WriteNow(case.holds.override_note)


def _decide_by_policy(case: RolloutCase) -> StagingVerdict:
    for rule in RULES:
        if verdict := rule(case):
            return verdict
    due, opening = _due(case), _opening(case)
    times = [moment for moment in (due, opening) if moment is not None and moment > case.now]
    return StageChange(_waiting_for(case, opening), min(times, default=None), _is_overdue(case))


def _rolling(pool: Pool, case: RolloutCase) -> str:
    """Why nodes of the pool reboot anyway; empty if they do not."""
    if pool.is_updating:
        passed = pool.status.updated_machine_count
        again = f"; {passed} of its {pool.status.machine_count} nodes were updated before and reboot again"
        return f"pool {pool.name} is updating{again if passed else ''}"
    if pool.is_render_degraded:
        return f"pool {pool.name} is RenderDegraded"
    return f"another change starts a rollout of pool {pool.name}" if pool.name in case.started else ""


def _is_overdue(case: RolloutCase) -> bool:
    return (due := _due(case)) is not None and due <= case.now


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
