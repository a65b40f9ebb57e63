"""Gates, freezes, windows and approvals in all combinations: each controller names the same one of them."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from itertools import product

import pytest

from tests.controllers.advisor.builders import a_config, a_status, an_observation
from tests.controllers.approver.builders import a_pinned_install, an_approver, verdict
from tests.controllers.autopilot.test_staging import UPDATE, WINDOW, a_pool
from virt_steward.apis.meta import WindowSpec
from virt_steward.controllers.advisor.decide import decide
from virt_steward.controllers.advisor.steps import AwaitReview
from virt_steward.controllers.approver.verdicts import ApprovePlan, WaitForPlan
from virt_steward.controllers.autopilot.rollouts.policy import RolloutMode, RolloutPolicy
from virt_steward.controllers.autopilot.rollouts.staging import RolloutCase, RolloutHolds, StageChange, decide_rollout
from virt_steward.holds.freezes import NOT_FROZEN, FreezeState, Frozen
from virt_steward.holds.gate_settings import GateSettings
from virt_steward.holds.gates import GateState, NotEvaluated
from virt_steward.holds.order import HoldKind, in_order
from virt_steward.objects.windows import Closed, Open

NOW = datetime(2030, 1, 4, 23, tzinfo=UTC)  # a Friday, within WINDOW
CLOSED = NOW + timedelta(hours=4)
GATE = "pools"


@dataclass(frozen=True)
class Holds:
    """Which of the four let a change begin."""

    is_approved: bool
    is_thawed: bool
    is_in_window: bool
    is_gate_open: bool

    @property
    def first(self) -> str:
        named = {
            "approvals": self.is_approved,
            "freeze": self.is_thawed,
            "window": self.is_in_window,
            "gates": self.is_gate_open,
        }
        return next((name for name, holds in named.items() if not holds), "")

    @property
    def freeze(self) -> FreezeState:
        return NOT_FROZEN if self.is_thawed else Frozen("spec.freeze", "the holidays", CLOSED)

    @property
    def gates(self) -> dict[str, GateState]:
        return {GATE: GateState(GATE, self.is_gate_open, "pool worker is updating", NOW)}


def of_advisor(holds: Holds, *, asked: bool = True) -> str:
    phase, action = ("InProgress", "Apply") if holds.is_approved else ("ReviewRequired", "DryRun")
    step = decide(
        an_observation(
            a_config(a_status(phase), action=action),
            freeze=holds.freeze,
            window=Open(None) if holds.is_in_window else Closed(CLOSED),
            gates_wanted=(GATE,),
            gates=holds.gates if asked else {},
        ),
        NOW,
    )
    if isinstance(step, AwaitReview):
        return "approvals"
    names = {"AwaitFreeze": "freeze", "AwaitWindow": "window", "AwaitGates": "gates", "EvaluateGates": "asks"}
    return names.get(type(step).__name__, "" if type(step).__name__ == "ApplyItem" else str(step))


def of_approver(holds: Holds, *, asked: bool = True) -> str:
    window = WindowSpec("0 22 * * FRI", "4h") if holds.is_in_window else WindowSpec("0 22 * * MON", "4h")
    freeze = () if holds.is_thawed else (WindowSpec("0 12 * * FRI", "24h"),)
    policy = {"windows": (window,), "freezes": freeze, "gates": (GATE,)}
    approver = an_approver(policy=policy, auto_approve=holds.is_approved)
    found = verdict(replace(a_pinned_install(approver), gates=holds.gates if asked else {}), NOW)
    if isinstance(found, ApprovePlan):
        return ""
    assert isinstance(found, WaitForPlan)
    names = {"AutoApproveOff": "approvals", "Frozen": "freeze", "OutsideWindow": "window", "GateClosed": "gates"}
    return "asks" if found.gates else names[found.reason]


def of_autopilot(holds: Holds, *, asked: bool = True) -> str:
    mode = RolloutMode.WINDOW if holds.is_approved else RolloutMode.APPROVE
    found = decide_rollout(
        RolloutCase(
            UPDATE,
            RolloutPolicy(mode, WINDOW, gates=(GATE,)),
            (a_pool(),),
            NOW if holds.is_in_window else CLOSED,
            holds=RolloutHolds(holds.freeze, gates=holds.gates if asked else {}),
        )
    )
    if not isinstance(found, StageChange):
        return ""
    if isinstance(found.gates, NotEvaluated):
        return "asks"
    words = {"until a person": "approvals", "frozen": "freeze", "until its window": "window", "gate pools": "gates"}
    return next(name for text, name in words.items() if text in found.message)


ALL = [Holds(*some) for some in product((False, True), repeat=4)]
CONTROLLERS = [of_advisor, of_approver, of_autopilot]


@pytest.mark.parametrize("reason_of", CONTROLLERS)
@pytest.mark.parametrize("holds", ALL, ids=lambda one: one.first or "none")
def test_first_hold_in_order_is_named(holds: Holds, reason_of: Callable[..., str]) -> None:
    assert reason_of(holds) == holds.first


@pytest.mark.parametrize("reason_of", CONTROLLERS)
@pytest.mark.parametrize("holds", ALL, ids=lambda one: one.first or "none")
def test_gates_are_asked_only_if_nothing_else_holds(holds: Holds, reason_of: Callable[..., str]) -> None:
    earlier = replace(holds, is_gate_open=True).first
    assert reason_of(holds, asked=False) == (earlier or "asks")


def test_order_is_that_of_the_documentation() -> None:
    assert in_order({hold: hold.name for hold in reversed(HoldKind)}) == ("APPROVALS", "FREEZE", "WINDOW", "GATES")


def test_required_gates_come_with_those_of_the_object() -> None:
    settings = GateSettings(required={"approver": ("cluster-operators",)})
    observation = replace(a_pinned_install(an_approver(policy={"gates": (GATE,)})), gate_settings=settings)
    found = verdict(observation, NOW)
    assert isinstance(found, WaitForPlan)
    assert found.gates == ("cluster-operators", GATE)


def test_dry_run_evaluates_no_gates() -> None:
    found = verdict(a_pinned_install(an_approver(policy={"gates": (GATE,)}, dry_run=True)), NOW)
    assert isinstance(found, WaitForPlan)
    assert (found.reason, found.gates) == ("DryRun", ())
    assert "gates are not evaluated" in found.message
