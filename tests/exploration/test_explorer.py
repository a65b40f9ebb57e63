import pytest

from tests.exploration.explorer import Model, explore


def counting(limit: int, *, forget: bool = False) -> Model[int]:
    """A controller that counts down to zero, in an environment that sets the counter."""

    def step(state: int) -> int:
        return 3 if forget and state == 1 else max(state - 1, 0)

    def check(before: int, after: int) -> None:
        assert after >= 0
        assert before != limit, "the limit was reached"

    return Model(0, lambda state: [("add two", state + 2)] if state < 8 else [], step, check)


def test_exploration_visits_every_state() -> None:
    found = explore(counting(limit=100), most_states=100)
    assert (found.states, found.longest_rest, found.is_complete) == (10, 9, True)


def test_exploration_says_how_a_failure_is_reached() -> None:
    with pytest.raises(AssertionError, match=r"(?s)limit was reached.*after add two → the controller's step → add two"):
        explore(counting(limit=3), most_states=100)


def test_exploration_finds_a_controller_that_never_rests() -> None:
    with pytest.raises(AssertionError, match=r"never rests: a circle of 3 steps after add two"):
        explore(counting(limit=100, forget=True), most_states=100)


def test_exploration_stops_at_its_bound() -> None:
    found = explore(counting(limit=100), most_states=5)
    assert (found.states, found.is_complete) == (5, False)
