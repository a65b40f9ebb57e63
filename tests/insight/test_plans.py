"""What a plan waits for, in words that help."""

from tests.controllers.advisor.builders import NOON, PLAN, a_config, a_status
from virt_steward.apis.meta import Condition
from virt_steward.apis.virtplatformconfig import PlanApprovalRules
from virt_steward.controllers.advisor.conditions import STALE
from virt_steward.insight.plans import waits_for


def test_waits_for_names_approval_unless_plan_is_stale() -> None:
    assert "virt-steward approve" in (waits_for(a_config(a_status())) or "")
    stale = Condition(STALE, "True", "TargetsChanged", "it changed; set action to Ignore first", NOON)
    assert waits_for(a_config(a_status(conditions=(stale,)))) == stale.message


def test_waits_for_counts_approvals() -> None:
    config = a_config(a_status(), approvals=PlanApprovalRules(2))
    assert waits_for(config) == (
        "review and approval (0 of 2 approvals; needs 2 more): virt-steward approve load-aware-rebalancing"
    )


def test_waits_for_names_who_rejected_plan() -> None:
    notes = {"rejected-plan": PLAN, "rejected-generation": "1", "rejected-by": "ann"}
    assert waits_for(a_config(a_status(), notes=notes)) == ("a new plan or an approval: ann rejected this plan")
