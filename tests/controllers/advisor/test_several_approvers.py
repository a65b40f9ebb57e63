"""spec.approvals: how many people must approve a plan, and whose approval counts."""

from typing import Any

import pytest

from tests.controllers.advisor.builders import NOON, PLAN, a_config, a_status, an_item, an_observation
from virt_steward.apis.virtplatformconfig import PlanApprovalRules
from virt_steward.controllers.advisor.approval import step_for_new_plan
from virt_steward.controllers.advisor.decide import decide
from virt_steward.controllers.advisor.integrity import is_same_execution
from virt_steward.controllers.advisor.steps import AwaitReview, Begin

TWO = PlanApprovalRules(2)
NOT_BOB = PlanApprovalRules(1, exclude_requester=True)
OTHER = "c" * 64


def by(*users: str, plan: str = PLAN) -> dict[str, str]:
    return {"approvals": "\n".join(f"{plan} 2030-01-07T11:00:00Z fine {user}" for user in users)}


def reason(notes: dict[str, str], rules: PlanApprovalRules | None = TWO, action: str = "Apply", **spec: Any) -> str:
    config = a_config(a_status(plan_action=spec.pop("planned", "DryRun")), action=action, notes=notes, approvals=rules)
    step = decide(an_observation(config), NOON)
    assert isinstance(step, AwaitReview | Begin)
    return step.reason if isinstance(step, AwaitReview) else "Begin"


@pytest.mark.parametrize(
    ("notes", "rules", "action", "expected"),
    [
        pytest.param({}, None, "Apply", "Begin", id="without the rule Apply approves"),
        pytest.param({}, PlanApprovalRules(1), "Apply", "WaitingForApprovals", id="with it Apply approves nothing"),
        pytest.param(
            {"approved-plan": PLAN, "approved-by": "ann"},
            PlanApprovalRules(1),
            "Apply",
            "WaitingForApprovals",
            id="nor does a single approval",
        ),
        pytest.param(by("ann"), PlanApprovalRules(1), "Apply", "Begin", id="one of one"),
        pytest.param(by("ann"), TWO, "Apply", "WaitingForApprovals", id="one of two"),
        pytest.param(by("ann", "ann"), TWO, "Apply", "WaitingForApprovals", id="the same person twice"),
        pytest.param(by("ann", "bob"), TWO, "Apply", "Begin", id="two of two"),
        pytest.param(by("ann", "bob"), TWO, "DryRun", "PlanReady", id="action DryRun starts nothing"),
        pytest.param(by("ann", "bob", plan=OTHER), TWO, "Apply", "WaitingForApprovals", id="of another plan"),
        pytest.param(by("bob") | {"requested-by": "bob"}, NOT_BOB, "Apply", "WaitingForApprovals", id="the requester"),
        pytest.param(by("ann") | {"requested-by": "bob"}, NOT_BOB, "Apply", "Begin", id="not the requester"),
        pytest.param(by("ann"), NOT_BOB, "Apply", "WaitingForApprovals", id="a requester that is not known"),
        pytest.param({"rejected-plan": PLAN}, TWO, "Apply", "Rejected", id="rejected"),
        pytest.param(by("ann") | {"rejected-plan": PLAN}, TWO, "Apply", "WaitingForApprovals", id="approved after all"),
    ],
)
def test_plan_begins_when_enough_people_approved(
    notes: dict[str, str], rules: PlanApprovalRules | None, action: str, expected: str
) -> None:
    assert reason(notes, rules, action) == expected


@pytest.mark.parametrize(("users", "expected"), [(("ann",), "WaitingForApprovals"), (("ann", "bob"), "Begin")])
def test_rollback_needs_the_same_approvals(users: tuple[str, ...], expected: str) -> None:
    assert reason(by(*users), action="Rollback", planned="Rollback") == expected


def test_new_plan_voids_approvals_and_equal_one_keeps_them() -> None:
    config = a_config(a_status(), action="Apply", notes=by("ann", "bob"), approvals=TWO)
    around = an_observation(config)
    changed = step_for_new_plan(around, (an_item(),), OTHER, NOON)
    assert isinstance(changed, AwaitReview)
    assert changed.message == "0 of 2 approvals; needs 2 more"
    assert isinstance(step_for_new_plan(around, (an_item(),), PLAN, NOON), Begin)


def test_approval_records_each_person() -> None:
    step = decide(an_observation(a_config(a_status(), action="Apply", notes=by("ann", "bob"), approvals=TWO)), NOON)
    assert isinstance(step, Begin)
    assert (step.approval.by, step.approval.comment) == ("ann, bob", "ann: fine; bob: fine")
    assert [(one.by, one.comment) for one in step.approval.approvers] == [("ann", "fine"), ("bob", "fine")]


def test_unrecorded_execution_goes_on_only_with_approvals() -> None:
    status = a_status("InProgress", an_item(), plan_action="Apply")
    for users, expected in ((("ann",), False), (("ann", "bob"), True)):
        config = a_config(status, action="Apply", notes=by(*users), approvals=TWO)
        assert is_same_execution(config, (an_item(),)) is expected
