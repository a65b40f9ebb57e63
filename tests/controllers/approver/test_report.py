"""An approver's status: exact counts, a bounded and ordered list of what waits, a history, conditions."""

from datetime import datetime, timedelta

import msgspec
import pytest

from tests.controllers.approver.builders import NOON, V1, V2, a_plan, an_approver, an_environment, fold, waiting
from virt_steward.apis.installplanapprover import (
    COUNTED_PLANS_KEPT,
    HISTORY_KEPT,
    PENDING_SHOWN,
    InstallPlanApproverStatus,
)
from virt_steward.apis.meta import WindowSpec
from virt_steward.controllers.approver.observation import Approver
from virt_steward.controllers.approver.olm import ApprovalStamp, InstallPlan
from virt_steward.controllers.approver.pending import StatusMemory
from virt_steward.controllers.approver.verdicts import PlanReason, WaitForPlan
from virt_steward.objects.wallclock import rfc3339

ANN = an_approver("ann", version=100)
UNPINNED = WaitForPlan(PlanReason.NOT_PINNED, "it is not pinned")


def a_stamped(
    number: int, *, by: Approver = ANN, at: str = "", version: int = 0, because: str = "pinned"
) -> InstallPlan:
    stamp = ApprovalStamp(by.metadata.uid, at or rfc3339(NOON + timedelta(seconds=number)), because)
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
    stamp = ApprovalStamp(ANN.metadata.uid, at, "x" * 5000)
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
    stamped = a_plan(*csvs, name="install-2", approved=True, stamp=ApprovalStamp(ANN.metadata.uid))
    status = fold(ANN, [stamped], [waiting(a_plan(*csvs), WaitForPlan(PlanReason.NOT_PINNED, "m" * 5000))], NOON)
    assert as_the_server_has_it(status) == status
    assert (status.pending_count, status.approved_count) == (1, 1)


def test_what_waits_is_shown_in_order_and_counted_beyond_what_is_shown() -> None:
    names = [f"install-{number:03}" for number in reversed(range(PENDING_SHOWN + 20))]
    status = fold(ANN, [], [waiting(a_plan(V2, name=name), UNPINNED) for name in names], NOON)
    assert status.pending_count == PENDING_SHOWN + 20
    assert [one.plan for one in status.pending] == [f"shop/install-{number:03}" for number in range(PENDING_SHOWN)]


@pytest.mark.parametrize(
    "nobody",
    [
        pytest.param(WaitForPlan(PlanReason.SUPERSEDED, ""), id="is-outdated"),
        pytest.param(WaitForPlan(PlanReason.SUBSCRIPTION_BEHIND, ""), id="waits-for-olm"),
        pytest.param(WaitForPlan(PlanReason.TOO_YOUNG, "", NOON), id="is-too-young"),
        pytest.param(WaitForPlan(PlanReason.OUTSIDE_WINDOW, "", NOON), id="waits-for-a-window"),
    ],
)
def test_what_needs_a_person_is_shown_before_what(nobody: WaitForPlan) -> None:
    crowd = [waiting(a_plan(V1, name=f"a-{number}"), nobody) for number in range(60)]
    unpinned = waiting(a_plan(V1, name="yps"), UNPINNED)
    never = waiting(a_plan(V1, name="zeta"), WaitForPlan(PlanReason.OUTSIDE_WINDOW, "none of the windows ever opens"))
    status = fold(ANN, [], [*crowd, unpinned, never], NOON)
    assert [one.plan for one in status.pending][:3] == ["shop/zeta", "shop/yps", "shop/a-0"]
    assert status.pending_count == 62


def test_a_namespace_that_is_not_looked_at_for_a_while_is_not_counted_again() -> None:
    plan = a_stamped(1, version=5)
    counted = after(ANN, fold(ANN, [plan], [], NOON), version=6)
    elsewhere = a_plan(V1, name="other", version=9)
    narrowed = after(counted, fold(counted, [elsewhere], [], NOON, an_environment(watched=("other",))), version=10)
    widened = fold(
        narrowed, [plan, a_plan(V1, name="other", version=11)], [], NOON, an_environment(watched=("other", "shop"))
    )
    assert widened.approved_count == 1


WATCHED = ("bank", "shop")


class Limited:
    """A process that looks at some namespaces only, and the status that it writes."""

    def __init__(self, approver: Approver = ANN) -> None:
        self.approver = approver
        self._memory = StatusMemory()

    def report(self, *plans: InstallPlan, denied: tuple[str, ...] = (), version: int = 0) -> InstallPlanApproverStatus:
        namespaces = self._memory.namespaces(self.approver, plans)
        status = fold(
            self.approver,
            plans,
            [],
            NOON,
            an_environment(denied=denied, watched=WATCHED, plan_namespaces=namespaces),
        )
        self.approver = after(self.approver, status, version=version)
        return status


def test_a_plan_that_was_seen_to_go_is_forgotten_though_not_all_namespaces_are_looked_at() -> None:
    process = Limited()
    process.report(a_stamped(1), version=1000)
    status = process.report(a_stamped(2, version=1001))
    assert (status.approved_count, status.counted_plans) == (2, (a_stamped(2).metadata.uid,))


@pytest.mark.parametrize(
    ("plans", "denied"),
    [
        pytest.param((), (), id="nothing-of-its-namespace-is-newer"),
        pytest.param((a_plan(V1, name="other", namespace="bank", version=1001),), (), id="another-namespace-is-newer"),
        pytest.param((a_plan(V1, name="other", version=999),), (), id="what-is-there-is-older-than-the-status"),
        pytest.param((a_plan(V1, name="other", version=1001),), ("shop",), id="its-namespace-is-denied-now"),
        pytest.param((a_plan(V1, name="other", version=1001),), ("",), id="all-is-denied-now"),
    ],
)
def test_a_plan_is_not_taken_for_gone_while(plans: tuple[InstallPlan, ...], denied: tuple[str, ...]) -> None:
    process = Limited()
    process.report(a_stamped(1), version=1000)
    assert process.report(*plans, denied=denied).counted_plans == (a_stamped(1).metadata.uid,)
    assert process.report(a_stamped(1, version=2000)).approved_count == 1


def test_plans_that_were_never_seen_here_give_way_to_new_ones_the_oldest_first_and_a_condition_says_so() -> None:
    unknown = tuple(f"uid-{number}" for number in range(COUNTED_PLANS_KEPT))
    full = InstallPlanApproverStatus(approved_count=COUNTED_PLANS_KEPT, counted_plans=unknown)
    process = Limited(after(ANN, full))
    for _ in range(2):
        status = process.report(a_stamped(1), a_stamped(2))
        assert status.approved_count == COUNTED_PLANS_KEPT + 2
        new = (a_stamped(1).metadata.uid, a_stamped(2).metadata.uid)
        assert status.counted_plans == (*unknown[2:], *new)
    assert said(status, "CountExact") == ("False", "OldestForgotten")


def test_a_count_that_has_to_stop_says_so_and_says_when_it_goes_on() -> None:
    plans = [a_stamped(number) for number in range(1, COUNTED_PLANS_KEPT + 2)]
    full = fold(ANN, plans, [], NOON)
    assert said(full, "CountExact") == ("False", "TooManyPlans")
    fewer = fold(after(ANN, full, version=1), plans[:5], [], NOON)
    assert said(fewer, "CountExact") == ("True", "AllRemembered")
    assert [one.type for one in fold(ANN, plans[:5], [], NOON).conditions] == ["PolicyValid"]


def said(status: InstallPlanApproverStatus, type_: str) -> tuple[str, str]:
    return next((one.status, one.reason) for one in status.conditions if one.type == type_)


def reported(
    approver: Approver, memory: StatusMemory, waits: list[tuple[InstallPlan, WaitForPlan]], now: datetime
) -> Approver:
    """The approver after a report of what waits."""
    return after(approver, fold(approver, [], memory.with_times(approver, waits, now), now))


def test_a_plan_waits_since_its_reason_came_up() -> None:
    later, last = NOON + timedelta(hours=1), NOON + timedelta(hours=2)
    plan = a_plan(V2)
    first = reported(ANN, StatusMemory(), [(plan, UNPINNED)], NOON)
    again = reported(first, StatusMemory(), [(plan, WaitForPlan(PlanReason.NOT_PINNED, "in other words"))], later)
    assert (again.status.pending[0].since, again.status.pending[0].message) == (NOON, "in other words")
    other = reported(again, StatusMemory(), [(plan, WaitForPlan(PlanReason.OUTSIDE_WINDOW, "not now", last))], later)
    assert (other.status.pending[0].since, other.status.pending[0].until) == (later, last)


BEFORE = NOON - timedelta(hours=6)


def a_crowd_and_one() -> list[tuple[InstallPlan, WaitForPlan]]:
    """More than a status shows; the last is out of sight."""
    names = [*(f"a-{number:02}" for number in range(PENDING_SHOWN)), "zeta"]
    return [(a_plan(V2, name=name, created=BEFORE), UNPINNED) for name in names]


def test_a_plan_that_comes_into_view_has_waited_before() -> None:
    memory, waits = StatusMemory(), a_crowd_and_one()
    crowded = reported(ANN, memory, waits, NOON)
    assert "shop/zeta" not in {one.plan for one in crowded.status.pending}
    alone = reported(crowded, memory, waits[-1:], NOON + timedelta(hours=1))
    assert [(one.plan, one.since) for one in alone.status.pending] == [("shop/zeta", NOON)]


def test_a_restart_does_not_make_a_plan_out_of_sight_wait_anew() -> None:
    waits, later = a_crowd_and_one(), NOON + timedelta(hours=1)
    crowded = reported(ANN, StatusMemory(), waits, NOON)
    *shown, hidden = StatusMemory().with_times(crowded, waits, later)
    assert {one.since for one in shown} == {NOON}
    assert hidden.since == BEFORE
    young = an_approver("ann", created=NOON, status=crowded.status)
    assert StatusMemory().with_times(young, waits, later)[-1].since == NOON


def test_a_plan_that_begins_to_wait_waits_since_now_however_old_it_is() -> None:
    memory, waits, later = StatusMemory(), a_crowd_and_one(), NOON + timedelta(hours=1)
    assert {one.since for one in StatusMemory().with_times(ANN, waits, NOON)} == {NOON}
    crowded = reported(ANN, memory, waits, NOON)
    newcomer = (a_plan(V2, name="zz", created=BEFORE), UNPINNED)
    assert memory.with_times(crowded, [*waits, newcomer], later)[-1].since == later


def test_a_bad_policy_is_a_condition_whose_time_moves_only_with_its_status() -> None:
    later = NOON + timedelta(hours=1)
    bad = an_approver(policy={"windows": (WindowSpec("0 22 * * *", "1h", "Mars/Olympus"),)}, generation=2)
    first = fold(bad, [], [], NOON)
    assert [(one.type, one.status, one.reason) for one in first.conditions] == [("PolicyValid", "False", "BadPolicy")]
    assert "Mars/Olympus" in first.conditions[0].message
    assert first.observed_generation == first.conditions[0].observed_generation == 2
    assert fold(after(bad, first), [], [], later).conditions == first.conditions
    good = fold(after(an_approver(generation=3), first), [], [], later)
    assert [(one.status, one.last_transition_time) for one in good.conditions] == [("True", later)]
