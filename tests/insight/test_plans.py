"""What a plan waits for, in words that help."""

from tests.controllers.advisor.builders import NOON, a_config, a_status
from virt_steward.apis.meta import Condition
from virt_steward.controllers.advisor.conditions import REPAIR_ROLLING, STALE
from virt_steward.insight.plans import waits_for


def test_a_plan_in_review_waits_for_an_approval_unless_it_is_stale() -> None:
    assert "virt-steward approve" in (waits_for(a_config(a_status())) or "")
    stale = Condition(STALE, "True", "TargetsChanged", "it changed; set action to Ignore first", NOON)
    assert waits_for(a_config(a_status(conditions=(stale,)))) == stale.message


def test_drift_waits_for_a_person_and_its_repair_for_the_pools() -> None:
    assert "a person" in (waits_for(a_config(a_status("Drifted"))) or "")
    rolling = Condition("Drifted", "True", REPAIR_ROLLING, "1 of 3 nodes run with it", NOON)
    assert waits_for(a_config(a_status("Drifted", conditions=(rolling,)))) == rolling.message
