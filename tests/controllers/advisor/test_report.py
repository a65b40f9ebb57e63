"""The status after a step: phases, items, times, history."""

from datetime import timedelta
from typing import Any

import msgspec
import pytest

from tests.controllers.advisor.builders import (
    EARLIER,
    FIVE,
    NOON,
    PLAN,
    PLANNED,
    TEN,
    a_config,
    a_status,
    an_item,
    an_observation,
    done,
    true,
)
from virt_steward.apis.drift import DriftEntry
from virt_steward.apis.virtplatformconfig import HISTORY_KEPT, Execution, PlanApproval, VirtPlatformConfigStatus
from virt_steward.controllers.advisor.conditions import unknown_endpoint
from virt_steward.controllers.advisor.observation import VersionChange
from virt_steward.controllers.advisor.report import next_status, with_plan
from virt_steward.controllers.advisor.steps import (
    Abort,
    AwaitItem,
    AwaitReview,
    Begin,
    CompleteItem,
    Enforce,
    FailStale,
    Finish,
    Ignore,
    LackPrerequisites,
    MarkDrifted,
    NothingToDo,
    Recover,
    RedraftLater,
    RejectPlan,
    Settle,
    StatusStep,
    Stay,
)
from virt_steward.controllers.advisor.steps.settled import DRIFTED, REPAIRED

LATER = NOON + timedelta(minutes=5)
RUNNING = an_item(state="InProgress")
BY_ANN = PlanApproval(PLAN, EARLIER, "ann", "tonight")


def after(
    status: VirtPlatformConfigStatus, step: StatusStep, now: Any = NOON, **config: Any
) -> VirtPlatformConfigStatus:
    return next_status(an_observation(a_config(status, **config)), status, step, now)


def since(status: VirtPlatformConfigStatus, type_: str) -> Any:
    return next(one.last_transition_time for one in status.conditions if one.type == type_)


def condition(status: VirtPlatformConfigStatus, type_: str) -> tuple[str, str]:
    found = next(one for one in status.conditions if one.type == type_)
    return found.status, found.reason


def test_transition_time_changes_with_status_only() -> None:
    first = after(a_status("InProgress", RUNNING), AwaitItem(RUNNING, "1/3", None))
    second = after(first, AwaitItem(first.items[0], "2/3", None), LATER)
    assert second.items[0].message == "2/3"
    assert since(second, "InProgress") == since(second, "Completed") == NOON
    assert second.items[0].last_transition_time == EARLIER
    third = after(second, CompleteItem(second.items[0], "ready"), LATER)
    assert third.items[0].last_transition_time == LATER
    assert since(third, "InProgress") == NOON


def test_written_item_is_governed() -> None:
    status = after(a_status("InProgress"), AwaitItem(an_item(), "0/3", None))
    assert [(one.target_ref, one.hash) for one in status.governed] == [(an_item().target_ref, PLANNED)]
    back = a_status("InProgress", plan_action="Rollback", governed=status.governed)
    assert after(back, CompleteItem(an_item(), "undone"), action="Rollback").governed == ()


def test_pre_image_is_of_last_plan_that_wrote() -> None:
    earlier = "load-aware-rebalancing-of-an-earlier-plan"
    status = a_status("InProgress", pre_image=earlier)
    assert after(status, Abort(an_item(), "refused")).pre_image == earlier
    assert after(status, FailStale("too late")).pre_image == earlier
    record = f"load-aware-rebalancing-{PLAN[:16]}"
    assert after(status, AwaitItem(an_item(), "0/3", None)).pre_image == record
    assert after(status, CompleteItem(an_item(), "found written, after a restart")).pre_image == record


@pytest.mark.parametrize("step", [AwaitItem(RUNNING, "2/10", None), CompleteItem(RUNNING, "ready")])
def test_awaited_item_of_earlier_plan_is_not_claimed(step: StatusStep) -> None:
    status = after(a_status("InProgress", RUNNING, pre_image="that of the earlier plan"), step)
    assert (status.pre_image, status.governed) == ("that of the earlier plan", ())


@pytest.mark.parametrize(
    ("step", "action", "stands_for"),
    [
        pytest.param(Begin(BY_ANN), "Apply", "Apply", id="begins"),
        pytest.param(FailStale("changed"), "Apply", "Apply", id="cannot-begin"),
        pytest.param(AwaitReview("ApprovalVoid", ""), "Apply", "DryRun", id="waits"),
        pytest.param(Ignore(), "Ignore", None, id="is-ignored"),
    ],
)
def test_plan_action_is_kept(step: StatusStep, action: str, stands_for: str | None) -> None:
    assert after(a_status("ReviewRequired", plan_action="DryRun"), step, action=action).plan_action == stands_for


def test_drift_keeps_upgrade_condition() -> None:
    logic = VersionChange(("configure-descheduler",))
    config = a_config(done(phase="CompletedWithUpgrade"), action="Apply")
    drifted = next_status(
        an_observation(config, version="v2", logic=logic), config.status, MarkDrifted(config.status.items), NOON
    )
    assert condition(drifted, "UpgradeAvailable") == ("True", "LogicChanged")
    enforced = msgspec.structs.replace(drifted, phase="InProgress")
    ended = next_status(an_observation(a_config(enforced, action="Apply"), version="v2"), enforced, Finish(), NOON)
    assert condition(ended, "UpgradeAvailable") == ("True", "LogicChanged")
    adopted = msgspec.structs.replace(enforced, operator_version="v2")
    ended = next_status(an_observation(a_config(adopted, action="Apply"), version="v2"), adopted, Finish(), NOON)
    assert condition(ended, "UpgradeAvailable") == ("False", "Applied")


@pytest.mark.parametrize("step", [NothingToDo(), Finish()])
def test_rollback_ends_governance_of_deleted_objects(step: StatusStep) -> None:
    gone = an_item(state="Completed")
    back = done(gone, phase="InProgress", plan_action="Rollback", pre_image="it")
    status = after(back, step, action="Rollback")
    assert (status.governed, status.pre_image, status.applied_inputs) == ((), "", ())
    assert condition(status, "Completed") == ("True", "RolledBack")


def test_partly_failed_rollback_keeps_pre_image() -> None:
    failed, gone = an_item("a", state="Failed"), an_item("b", state="Completed")
    back = done(failed, gone, phase="InProgress", plan_action="Rollback", pre_image="it")
    status = after(back, Finish(("a",)), action="Rollback")
    assert (status.phase, status.pre_image) == ("CompletedWithErrors", "it")
    assert [one.target_ref for one in status.governed] == [failed.target_ref]


def test_history_keeps_last_ten_with_approver() -> None:
    before = (Execution("b" * 64, EARLIER, "Failed"),) * HISTORY_KEPT
    status = after(a_status("InProgress", an_item(state="Completed"), approval=BY_ANN, history=before), Finish())
    assert status.history[0] == Execution(PLAN, NOON, "Completed", "ann", "tonight", "v1")
    assert len(status.history) == HISTORY_KEPT
    assert status.applied_inputs == FIVE


def test_history_replaces_repeated_enforcement() -> None:
    older = Execution("b" * 64, EARLIER, "Completed")
    once = after(a_status("InProgress", an_item(state="Completed"), history=(older,)), Finish())
    again = after(msgspec.structs.replace(once, phase="InProgress"), Finish(), LATER)
    assert [(one.plan_hash, one.at) for one in again.history] == [(PLAN, LATER), ("b" * 64, EARLIER)]


def interrupted(before: VirtPlatformConfigStatus, step: StatusStep, *, plan: str = PLAN, **config: Any) -> Any:
    """The history after a step that may come with another plan."""
    around = an_observation(a_config(before, **config))
    status = with_plan(around, (an_item(),), plan) if plan != PLAN else before
    return next_status(around, status, step, NOON).history


@pytest.mark.parametrize(
    ("step", "plan", "action"),
    [
        pytest.param(AwaitReview("PlanReady", ""), "b" * 64, "DryRun", id="dry-run"),
        pytest.param(AwaitReview("PlanReady", ""), PLAN, "DryRun", id="dry-run-of-an-equal-plan"),
        pytest.param(AwaitReview("RollbackReady", ""), "b" * 64, "Rollback", id="the-way-back"),
        pytest.param(Begin(PlanApproval("b" * 64, NOON)), "b" * 64, "Apply", id="other-options"),
        pytest.param(NothingToDo(), "b" * 64, "Apply", id="options-that-leave-nothing-to-do"),
        pytest.param(RejectPlan("it", "forbidden"), "", "Apply", id="options-that-the-server-rejects"),
        pytest.param(RedraftLater("it moves"), PLAN, "DryRun", id="a-draft-that-takes-its-time"),
        pytest.param(Ignore(), PLAN, "Ignore", id="ignore"),
        pytest.param(LackPrerequisites(("it",)), PLAN, "Apply", id="a-missing-prerequisite"),
    ],
)
def test_history_records_interruption(step: StatusStep, plan: str, action: str) -> None:
    older = Execution("c" * 64, EARLIER, "Completed", "ben")
    before = a_status("InProgress", RUNNING, approval=BY_ANN, history=(older,))
    expected = (Execution(PLAN, NOON, "Interrupted", "ann", "tonight", "v1"), older)
    assert interrupted(before, step, plan=plan, action=action) == expected


@pytest.mark.parametrize(
    "step",
    [AwaitItem(RUNNING, "1/3", None), CompleteItem(RUNNING, "ready"), Begin(BY_ANN)],
    ids=["waits", "works", "begins"],
)
def test_history_records_no_interruption_while_executing(step: StatusStep) -> None:
    assert interrupted(a_status("InProgress", RUNNING, approval=BY_ANN), step, action="Apply") == ()


def test_history_records_no_interruption_before_start() -> None:
    assert interrupted(a_status(approval=BY_ANN), AwaitReview("PlanReady", ""), plan="b" * 64) == ()


def test_history_keeps_both_approvers_of_one_plan() -> None:
    once = after(a_status("InProgress", RUNNING, approval=BY_ANN), Ignore(), action="Ignore")
    by_ben = PlanApproval(PLAN, NOON, "ben", "at last")
    again = msgspec.structs.replace(once, phase="InProgress", approval=by_ben)
    assert [one.by for one in after(again, Ignore(), LATER, action="Ignore").history] == ["ben", "ann"]


def test_abort_changes_only_failed_item() -> None:
    items = (an_item("a", "Completed"), an_item("b", "InProgress"), an_item("c"))
    status = after(a_status("InProgress", *items), Abort(items[1], "too late"))
    assert [item.state for item in status.items] == ["Completed", "Failed", "Pending"]
    assert (status.phase, condition(status, "Failed")) == ("Failed", ("True", "ItemFailed"))
    assert status.history[0].outcome == "Failed"


def test_stale_plan_in_review_is_no_execution() -> None:
    status = after(a_status("ReviewRequired"), FailStale("changed"))
    assert status.history == ()
    assert condition(status, "PlanStale") == ("True", "TargetsChanged")


def test_drift_is_noted_on_items_until_repaired() -> None:
    items = (an_item("a", "Completed", message="ready"), an_item("b", "Completed", message="ready"))
    entry = DriftEntry("/spec/mode", "Automatic", "Predictive", "kubectl-edit", NOON)
    config = a_config(done(*items), action="Apply")
    seen = an_observation(config, drift={"a": (entry,)})
    drifted = next_status(seen, config.status, MarkDrifted(items[:1]), NOON)
    assert [(item.message, item.drift) for item in drifted.items] == [(DRIFTED, (entry,)), ("ready", ())]
    assert condition(drifted, "ProfileActive") == ("False", "ConfigurationDrifted")
    repaired = after(drifted, Recover(with_errors=False))
    assert [(item.message, item.drift) for item in repaired.items] == [(REPAIRED, ()), ("ready", ())]
    enforced = after(drifted, Enforce(drifted.items[:1]), action="Apply", bypass_optimistic_lock=True)
    assert [item.drift for item in enforced.items] == [(), ()]


def test_enforced_item_is_pending() -> None:
    status = after(done(), Enforce(done().items), action="Apply", bypass_optimistic_lock=True)
    assert (status.phase, status.items[0].state) == ("InProgress", "Pending")


def test_impact_is_of_profile_while_ignored() -> None:
    status = after(a_status("ReviewRequired", an_item(impact_severity="High")), Ignore(), action="Ignore")
    assert (status.impact_severity, status.applied_inputs) == ("Medium", ())
    assert status.items  # what was planned or applied stays to be seen
    assert after(status, AwaitReview("PlanReady", "")).impact_severity == "High"


def test_new_plan_keeps_only_its_own_approval() -> None:
    around = an_observation(a_config(a_status(approval=BY_ANN), generation=4), inputs=TEN)
    same = with_plan(around, (an_item(),), PLAN)
    assert (same.approval, same.plan_generation, same.inputs) == (BY_ANN, 4, TEN)
    assert with_plan(around, (an_item(),), "b" * 64).approval is None


def test_input_drift_is_acknowledged_or_resolved() -> None:
    forced = a_status(applied_inputs=FIVE, inputs=TEN, conditions=true("InputDependencyDrift"))
    around = an_observation(a_config(forced, action="Apply"), inputs=TEN)
    waiting = next_status(around, forced, AwaitReview("InputChanged", "…"), NOON)
    assert condition(waiting, "InputDependencyDrift") == ("True", "InputChanged")
    assert condition(next_status(around, forced, Begin(BY_ANN), NOON), "InputDependencyDrift") == (
        "False",
        "Acknowledged",
    )
    assert condition(next_status(around, forced, NothingToDo(), NOON), "InputDependencyDrift") == (
        "False",
        "DriftResolved",
    )


def test_stay_changes_only_observed_generation() -> None:
    status = done()
    assert after(status, Stay(), generation=3) == msgspec.structs.replace(status, observed_generation=3)


def test_unknown_endpoint_is_reported_until_known_or_unset() -> None:
    unknown = next_status(
        an_observation(a_config(done(), notify="ops", action="Apply"), endpoints=("b", "a")),
        done(),
        NothingToDo(),
        NOON,
    )
    assert condition(unknown, "Notifying") == ("False", "UnknownEndpoint")
    (message,) = (one.message for one in unknown.conditions if one.type == "Notifying")
    assert message == unknown_endpoint("ops", "a, b")

    def stays(*endpoints: str, **config: Any) -> VirtPlatformConfigStatus:
        return next_status(an_observation(a_config(unknown, **config), endpoints=endpoints), unknown, Stay(), LATER)

    assert stays("a", "b", notify="ops", action="Apply") == unknown
    assert condition(stays("ops", notify="ops"), "Notifying") == ("True", "EndpointKnown")
    assert since(stays("ops", notify="ops"), "Notifying") == LATER
    assert "Notifying" not in [one.type for one in stays("ops").conditions]
    assert "Notifying" not in [one.type for one in stays("ops", notify="ops", action="Ignore").conditions]


def test_missing_prerequisites_have_reason() -> None:
    status = after(a_status(None), LackPrerequisites(("it: install it",)))
    assert condition(status, "PrerequisitesMet") == ("False", "MissingDependency")


def test_settle_reports_only_pending() -> None:
    status = after(VirtPlatformConfigStatus(), Settle("MachineConfig starting"))
    assert (status.phase, condition(status, "Pending")) == ("Pending", ("True", "NotReady"))
    assert "ProfileActive" not in [one.type for one in status.conditions]
