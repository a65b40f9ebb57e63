"""An approver's status: exact counts, a bounded and ordered list of what waits, a history, conditions."""

from datetime import timedelta

import msgspec
import pytest

from tests.controllers.approver.builders import NOON, V1, V2, a_plan, an_approver
from virt_steward.apis.installplanapprover import (
    COUNTED_PLANS_KEPT,
    HISTORY_KEPT,
    PENDING_SHOWN,
    InstallPlanApproverStatus,
)
from virt_steward.apis.meta import Window
from virt_steward.controllers.approver.conditions import Abilities
from virt_steward.controllers.approver.olm import Plan, Stamp
from virt_steward.controllers.approver.report import fold
from virt_steward.controllers.approver.seen import Approver
from virt_steward.controllers.approver.verdicts import Reason, Wait
from virt_steward.objects.wallclock import rfc3339

ANN = an_approver("ann", version=100)
UNPINNED = Wait(Reason.NOT_PINNED, "it is not pinned")


def a_stamped(number: int, *, by: Approver = ANN, at: str = "", version: int = 0, because: str = "pinned") -> Plan:
    stamp = Stamp(by.metadata.uid, at or rfc3339(NOON + timedelta(seconds=number)), because)
    return a_plan(V1, name=f"install-{number}", approved=True, stamp=stamp, version=version or number)


def after(approver: Approver, status: InstallPlanApproverStatus, *, version: int = 0) -> Approver:
    """The approver as it is once that status is written."""
    metadata = msgspec.structs.replace(approver.metadata, resource_version=str(version or 1000))
    return msgspec.structs.replace(approver, metadata=metadata, status=status)


def test_each_stamp_of_ours_is_counted_and_no_other() -> None:
    bob = an_approver("bob")
    plans = [a_stamped(1), a_stamped(2), a_stamped(3, by=bob), a_plan(V1, name="install-4")]
    status = fold(ANN, plans, [], NOON)
    assert status.approved_count == 2
    assert status.last_approved_plan == "shop/install-2"
    assert status.last_approved_time == NOON + timedelta(seconds=2)
    assert [one.plan for one in status.history] == ["shop/install-2", "shop/install-1"]
    assert set(status.counted_plans) == {plan.metadata.uid for plan in plans[:2]}


def test_what_is_counted_is_not_counted_again() -> None:
    first = fold(ANN, [a_stamped(1)], [], NOON)
    ann = after(ANN, first)
    assert fold(ann, [a_stamped(1)], [], NOON + timedelta(hours=1)) == first
    assert fold(ann, [a_stamped(1), a_stamped(2)], [], NOON).approved_count == 2


def test_a_count_outlives_its_plans() -> None:
    ann = after(ANN, fold(ANN, [a_stamped(1)], [], NOON), version=1000)
    status = fold(ann, [], [], NOON)
    assert (status.approved_count, status.last_approved_plan) == (1, "shop/install-1")


def test_a_plan_is_forgotten_only_by_what_is_newer_than_the_status_that_counts_it() -> None:
    ann = after(ANN, fold(ANN, [a_stamped(1)], [], NOON), version=1000)
    behind = fold(ann, [a_stamped(2, version=999)], [], NOON)
    assert behind.approved_count == 2
    assert len(behind.counted_plans) == 2
    assert fold(after(ann, behind, version=1001), [a_stamped(1), a_stamped(2)], [], NOON).approved_count == 2
    ahead = fold(ann, [a_stamped(2, version=1001)], [], NOON)
    assert ahead.counted_plans == (a_stamped(2).metadata.uid,)


def test_a_stamp_that_is_taken_off_and_put_back_counts_once() -> None:
    ann = after(ANN, fold(ANN, [a_stamped(1)], [], NOON), version=1000)
    bare = fold(ann, [a_plan(V1, name="install-1", approved=True, version=1001)], [], NOON)
    assert fold(after(ann, bare, version=1002), [a_stamped(1, version=1003)], [], NOON).approved_count == 1


def test_more_plans_than_can_be_remembered_are_not_counted_rather_than_twice() -> None:
    plans = [a_stamped(number) for number in range(1, COUNTED_PLANS_KEPT + 6)]
    status = fold(ANN, plans, [], NOON)
    assert status.approved_count == len(status.counted_plans) == COUNTED_PLANS_KEPT
    assert fold(after(ANN, status, version=10**6), plans, [], NOON).approved_count == COUNTED_PLANS_KEPT


def test_the_history_keeps_the_last_ten_newest_first() -> None:
    first = fold(ANN, [a_stamped(number) for number in range(1, 9)], [], NOON)
    status = fold(after(ANN, first), [a_stamped(number) for number in range(1, 15)], [], NOON)
    assert [one.plan for one in status.history] == [f"shop/install-{number}" for number in range(14, 4, -1)]
    assert len(status.history) == HISTORY_KEPT
    assert status.approved_count == 14


@pytest.mark.parametrize("at", ["", "yesterday", "2030-01-07T12:00:00", "2030-01-07", "9" * 300])
def test_an_edited_stamp_keeps_no_status_from_being_written(at: str) -> None:
    stamp = Stamp(ANN.metadata.uid, at, "x" * 5000)
    status = fold(ANN, [a_plan(V1, approved=True, stamp=stamp)], [], NOON)
    assert status.approved_count == 1
    assert (status.last_approved_time, len(status.history[0].reason)) == (NOON, 1024)
    assert as_the_server_has_it(status) == status


def as_the_server_has_it(status: InstallPlanApproverStatus) -> InstallPlanApproverStatus:
    """Read back by its own schema, which the server enforces too."""
    return msgspec.json.decode(msgspec.json.encode(status), type=InstallPlanApproverStatus)


@pytest.mark.parametrize(
    "csvs",
    [
        pytest.param((), id="nothing"),
        pytest.param(("", V1), id="what-has-no-name"),
        pytest.param(("x" * 300,), id="a-name-too-long"),
        pytest.param(tuple(f"op-{number}.v1" for number in range(150)), id="too-many"),
    ],
)
def test_a_status_can_be_written_though_a_plan_installs(csvs: tuple[str, ...]) -> None:
    stamped = a_plan(*csvs, name="install-2", approved=True, stamp=Stamp(ANN.metadata.uid))
    status = fold(ANN, [stamped], [(a_plan(*csvs), Wait(Reason.NOT_PINNED, "m" * 5000))], NOON)
    assert as_the_server_has_it(status) == status
    assert (status.pending_count, status.approved_count) == (1, 1)


def test_what_waits_is_shown_in_order_and_counted_beyond_what_is_shown() -> None:
    waiting = [(a_plan(V2, name=f"install-{number:03}"), UNPINNED) for number in reversed(range(PENDING_SHOWN + 20))]
    status = fold(ANN, [], waiting, NOON)
    assert status.pending_count == PENDING_SHOWN + 20
    assert [one.plan for one in status.pending] == [f"shop/install-{number:03}" for number in range(PENDING_SHOWN)]


def test_what_needs_a_person_is_shown_before_what_needs_nobody() -> None:
    outdated = [(a_plan(V1, name=f"a-{number}"), Wait(Reason.SUPERSEDED, "")) for number in range(60)]
    blocked = (a_plan(V1, name="zeta"), Wait(Reason.RIDES_ALONG, ""))
    status = fold(ANN, [], [*outdated, blocked], NOON)
    assert status.pending[0].reason == Reason.RIDES_ALONG
    assert status.pending_count == 61


def test_a_namespace_that_is_not_looked_at_for_a_while_is_not_counted_again() -> None:
    plan = a_stamped(1, version=5)
    counted = after(ANN, fold(ANN, [plan], [], NOON), version=6)
    elsewhere = a_plan(V1, name="other", version=9)
    narrowed = after(counted, fold(counted, [elsewhere], [], NOON, Abilities(watched=("other",))), version=10)
    widened = fold(
        narrowed, [plan, a_plan(V1, name="other", version=11)], [], NOON, Abilities(watched=("other", "shop"))
    )
    assert widened.approved_count == 1


def test_a_plan_waits_since_its_reason_came_up() -> None:
    later, last = NOON + timedelta(hours=1), NOON + timedelta(hours=2)
    plan = a_plan(V2)
    first = fold(ANN, [], [(plan, UNPINNED)], NOON)
    again = fold(after(ANN, first), [], [(plan, Wait(Reason.NOT_PINNED, "in other words"))], later)
    assert (again.pending[0].since, again.pending[0].message) == (NOON, "in other words")
    other = fold(after(ANN, again), [], [(plan, Wait(Reason.OUTSIDE_WINDOW, "not now", last))], later)
    assert (other.pending[0].since, other.pending[0].until) == (later, last)


def test_a_bad_policy_is_a_condition_whose_time_moves_only_with_its_status() -> None:
    later = NOON + timedelta(hours=1)
    bad = an_approver(policy={"windows": (Window("0 22 * * *", "1h", "Mars/Olympus"),)}, generation=2)
    first = fold(bad, [], [], NOON)
    assert [(one.type, one.status, one.reason) for one in first.conditions] == [("PolicyValid", "False", "BadPolicy")]
    assert "Mars/Olympus" in first.conditions[0].message
    assert first.observed_generation == first.conditions[0].observed_generation == 2
    assert fold(after(bad, first), [], [], later).conditions == first.conditions
    good = fold(after(an_approver(generation=3), first), [], [], later)
    assert [(one.status, one.last_transition_time) for one in good.conditions] == [("True", later)]
