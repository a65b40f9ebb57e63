"""Freezes and gates in the decision whether a change that reboots nodes is written now."""

from dataclasses import replace
from datetime import timedelta

import pytest

from tests.controllers.autopilot.test_staging import (
    DRIFT,
    NOW,
    POLICIES,
    POOLS,
    PREFIX,
    a_case,
    a_change,
    is_written,
)
from virt_steward.controllers.autopilot.rollouts.policy import DeadlineAction, RolloutPolicy, parse_policy
from virt_steward.controllers.autopilot.rollouts.staged import Occasion
from virt_steward.controllers.autopilot.rollouts.staging import RolloutHolds, StageChange, WriteNow, decide_rollout
from virt_steward.holds.freezes import Frozen
from virt_steward.holds.gates import GateState, NotEvaluated

FREEZE = Frozen("ConfigMap steward/virt-steward-freeze", "holidays", NOW + timedelta(days=1))
TOTAL = replace(FREEZE, is_total=True)
NOTE = "ann overrides the freeze: urgent"


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("pools", [name for name in POOLS if name != "no pool"])
@pytest.mark.parametrize("occasion", Occasion)
def test_freeze_holds_whatever_reboots_nodes(policy: str, pools: str, occasion: Occasion) -> None:
    case = replace(a_case(occasion, policy, pools), is_released=True, holds=RolloutHolds(FREEZE))
    assert decide_rollout(case) == StageChange(FREEZE.message, FREEZE.until)
    assert decide_rollout(replace(case, holds=RolloutHolds(FREEZE, override_note=NOTE), overrides_freeze=True)) == (
        WriteNow(NOTE)
    )


@pytest.mark.parametrize("occasion", Occasion)
def test_freeze_lets_drift_be_corrected_where_no_node_reboots(occasion: Occasion) -> None:
    case = a_case(occasion, pools="no pool")
    assert is_written(replace(case, holds=RolloutHolds(FREEZE))) is (occasion is DRIFT)
    assert not is_written(replace(case, holds=RolloutHolds(TOTAL)))


def test_freeze_outlasts_a_deadline_and_still_says_that_it_has_passed() -> None:
    policy = RolloutPolicy(deadline=timedelta(hours=1), action=DeadlineAction.RELEASE)
    case = replace(a_case(), policy=policy, staged=a_change(staged_at=NOW - timedelta(days=1)))
    assert is_written(case)
    held = decide_rollout(replace(case, holds=RolloutHolds(FREEZE)))
    assert held == StageChange(FREEZE.message, FREEZE.until, is_overdue=True)


def test_gates_hold_what_reboots_nodes_until_all_are_open() -> None:
    case = replace(a_case(policy="immediate"), holds=RolloutHolds(required_gates=("etcd",), poll=timedelta(minutes=1)))
    case = replace(case, policy=replace(case.policy, gates=("pools",)))
    asked = decide_rollout(case)
    assert isinstance(asked, StageChange)
    assert asked.gates == NotEvaluated(("etcd", "pools"))
    answers = {"etcd": GateState("etcd", is_open=True), "pools": GateState("pools", False, "worker updates", NOW)}
    closed = decide_rollout(replace(case, holds=replace(case.holds, gates=answers)))
    assert isinstance(closed, StageChange)
    assert closed.message == "gate pools is closed since 2030-01-04T23:00:00Z: worker updates"
    assert closed.until == NOW + timedelta(minutes=1)
    opened = {**answers, "pools": GateState("pools", is_open=True)}
    assert is_written(replace(case, holds=replace(case.holds, gates=opened)))
    assert is_written(replace(case, pools=()))


def test_gates_of_the_object_win_over_those_of_the_platform() -> None:
    hco = {f"{PREFIX}rollout-gates": "pools, etcd,,"}
    assert parse_policy(hco, {}).gates == ("pools", "etcd")
    assert parse_policy(hco, {f"{PREFIX}rollout-gates": ""}).gates == ()
