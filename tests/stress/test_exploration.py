"""More of the state space of advisor and approver than `make test` has time for."""

import pytest

from tests.controllers.approver.builders import V1, V2, V3
from tests.exploration.test_advisor import STARTS
from tests.exploration.test_advisor import explored as explored_plans
from tests.exploration.test_approver import explored as explored_approvals


@pytest.mark.parametrize("start", STARTS)
def test_every_plan_after_another_event_is_executed_only_as_agreed(start: str) -> None:
    found = explored_plans(start, more=1)
    assert found.is_complete
    assert start != "nothing is planned" or any(one.written == 2 for one in found.parents), "no plan was completed"


def test_every_plan_of_three_versions_is_approved_by_the_rules_only() -> None:
    assert explored_approvals(V1, V2, V3).is_complete
