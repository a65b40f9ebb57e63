"""More of the state space of the advisor than `make test` has time for."""

from tests.exploration.test_advisor import explored


def test_every_plan_after_five_events_is_executed_only_as_agreed() -> None:
    found = explored(edits=5)
    print(f"\nadvisor, 5 events: {found.states} states, {found.steps} steps, at rest after {found.longest_rest}")
    assert found.is_complete
