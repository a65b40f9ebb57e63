"""Windows are evaluated once per change of their state, and never many at a time."""

import asyncio
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.controllers.approver.builders import (
    NOON,
    V1,
    a_plan,
    a_subscription,
    an_approver,
    an_environment,
    empty_stores,
    seen,
)
from virt_steward.apis.installplanapprover import InstallPlanApproverStatus
from virt_steward.apis.meta import WindowSpec
from virt_steward.controllers.approver.conditions import conditions_of
from virt_steward.controllers.approver.decide import decide
from virt_steward.controllers.approver.observation import Approver
from virt_steward.controllers.approver.prepare import prepare, prepare_decision
from virt_steward.controllers.approver.verdicts import PlanReason, WaitForPlan
from virt_steward.controllers.approver.window_memory import WINDOWS, WindowMemory
from virt_steward.objects.windows import Closed, Open, Window, state

NEVER = WindowSpec("0 0 30 2 *", "1h")
ALWAYS = WindowSpec("* * * * *", "1m")
NIGHTLY = WindowSpec("0 22 * * *", "4h")
MORNINGS = WindowSpec("0 6 * * *", "1h", "Europe/Oslo")
MONDAYS = WindowSpec("*/7 3 * 1,3 MON", "5m")
APPROVERS, EACH = 100, 20


def at(hour: int, day: int = 7) -> datetime:
    return datetime(2030, 1, day, hour, tzinfo=NOON.tzinfo)


def a_crowd() -> list[Approver]:
    """Many approvers, each with windows of its own that never open."""
    schedules = iter(f"{minute} {hour} {day} 2 *" for day in (30, 31) for hour in range(24) for minute in range(60))
    return [
        an_approver(f"ann-{number}", policy={"windows": tuple(WindowSpec(next(schedules), "1h") for _ in range(EACH))})
        for number in range(APPROVERS)
    ]


@pytest.mark.parametrize(
    ("windows", "now", "expected"),
    [
        ((NIGHTLY,), at(23), Open(at(2, 8))),
        ((NIGHTLY,), at(12), Closed(at(22))),
        ((NIGHTLY,), at(2, 8), Closed(at(22, 8))),
        ((NEVER,), NOON, Closed(None)),
        ((NEVER, NIGHTLY, MORNINGS), at(3), Closed(at(5))),
        ((NEVER, NIGHTLY, MORNINGS), at(5), Open(at(6))),
        ((WindowSpec("0 22 * * *", "4h", "Mars/Olympus"), NIGHTLY), at(12), Closed(at(22))),
        ((WindowSpec("bad", "4h"),), NOON, Closed(None)),
    ],
)
def test_memory_says_whether_a_window_is_open(windows: tuple[WindowSpec, ...], now: datetime, expected: object) -> None:
    assert WindowMemory().state(windows, now) == expected


@settings(deadline=None, max_examples=60)
@given(
    st.lists(st.sampled_from([NEVER, ALWAYS, NIGHTLY, MORNINGS, MONDAYS]), min_size=1, max_size=3),
    st.lists(st.integers(min_value=-20_000, max_value=200_000), min_size=1, max_size=6),
)
def test_memory_decides_as_evaluation_does(windows: list[WindowSpec], minutes: list[int]) -> None:
    """Whatever was asked before, and also if the clock is put back."""
    memory = WindowMemory()
    parsed = [Window.parse(one.schedule, one.duration, one.time_zone) for one in windows]
    for now in (NOON + timedelta(minutes=one) for one in minutes):
        expected, found = state(parsed, now), memory.state(windows, now)
        assert type(found) is type(expected)
        assert isinstance(expected, Open) or found == expected


def test_memory_evaluates_window_once_until_its_state_changes() -> None:
    memory = WindowMemory()
    for minute in range(600):
        memory.state((NIGHTLY, NEVER), NOON + timedelta(minutes=minute))
    assert memory.evaluations == 2
    memory.state((NIGHTLY, NEVER), at(22))
    assert memory.evaluations == 3


def test_memory_is_limited() -> None:
    memory = WindowMemory(size=2)
    for window in (NIGHTLY, MORNINGS, NEVER):
        memory.state((window,), NOON)
    assert [memory.knows(one, NOON) for one in (NIGHTLY, MORNINGS, NEVER)] == [False, True, True]


async def test_preparation_evaluates_one_window_per_turn_of_the_loop() -> None:
    memory, turns = WindowMemory(), [0]
    crowd = a_crowd()
    preparing = asyncio.create_task(prepare(crowd, NOON, memory))
    while not preparing.done():
        await asyncio.sleep(0)
        turns.append(memory.evaluations)
    assert memory.evaluations == APPROVERS * EACH
    assert max(after - before for before, after in pairwise(turns)) == 1


async def test_decisions_on_crowd_of_windows_evaluate_none() -> None:
    stores = empty_stores()
    for approver in a_crowd():
        stores.approvers.put(approver)
    await prepare_decision(stores, "shop", NOON)
    before = WINDOWS.evaluations
    for name in ("one", "two", "three"):
        around = seen(a_plan(V1, name=name), a_subscription(pin=V1, current=V1), approvers=tuple(stores.approvers))
        waits = decide(around, NOON + timedelta(hours=1)).waits
        assert len(waits) == APPROVERS
        assert {one.reason for one in waits.values()} == {PlanReason.OUTSIDE_WINDOW}
    assert WINDOWS.evaluations == before


async def test_preparation_skips_approvers_that_cover_other_namespaces() -> None:
    stores = empty_stores()
    stores.approvers.put(an_approver(namespace="garden", policy={"windows": (WindowSpec("1 1 31 11 *", "1h"),)}))
    before = WINDOWS.evaluations
    await prepare_decision(stores, "shop", NOON)
    assert WINDOWS.evaluations == before


def can_open(*windows: WindowSpec, **approver: Any) -> tuple[str, str] | None:
    found = conditions_of(an_approver(policy={"windows": windows}, **approver), an_environment(), NOON)
    return next(((one.reason, one.message) for one in found if one.type == "WindowsCanOpen"), None)


def test_window_that_never_opens_is_a_condition() -> None:
    assert can_open(NIGHTLY) is None
    reason, message = can_open(NIGHTLY, NEVER) or ("", "")
    assert (reason, "no day matches '0 0 30 2 *', so these windows never open" in message) == ("NeverOpens", True)
    assert "so nothing is ever approved: correct the schedule" in (can_open(NEVER) or ("", ""))[1]
    status = InstallPlanApproverStatus(
        conditions=conditions_of(an_approver(policy={"windows": (NEVER,)}), an_environment(), NOON)
    )
    assert can_open(NIGHTLY, status=status) == ("EachHasADay", "")


def test_plan_says_that_no_window_opens() -> None:
    around = seen(a_plan(V1), a_subscription(pin=V1, current=V1), approvers=[an_approver(policy={"windows": (NEVER,)})])
    [wait] = decide(around, NOON).waits.values()
    assert isinstance(wait, WaitForPlan)
    assert (wait.until, "ever opens: correct its schedule" in wait.message) == (None, True)
