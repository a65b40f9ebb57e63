"""Whether a status is ours, by the record, and what follows if it is not."""

from dataclasses import replace
from typing import Any

import msgspec
import pytest

from tests.controllers.advisor.builders import BEFORE, NOON, PLAN, a_config, a_status, an_item, an_observation, done
from virt_steward.apis.meta import Condition
from virt_steward.apis.virtplatformconfig import (
    Execution,
    Input,
    PlanApproval,
    PlanItem,
    TakenField,
    VirtPlatformConfigStatus,
)
from virt_steward.controllers.advisor.decide import decide
from virt_steward.controllers.advisor.integrity import (
    FIELDS_NAMED,
    INTACT,
    Altered,
    Behind,
    Integrity,
    PlanRecord,
    Unrecorded,
    authenticated,
    is_same_execution,
    may_stand,
    next_record,
)
from virt_steward.controllers.advisor.observation import VirtPlatformConfig
from virt_steward.controllers.advisor.report import next_status
from virt_steward.controllers.advisor.steps import (
    AwaitReview,
    Begin,
    FailTampered,
    Ignore,
    Redraft,
    RestoreStatus,
    Step,
)
from virt_steward.plans.fingerprint import plan_hash

APPROVED = {"approved-plan": PLAN, "approved-by": "ann"}


def record_of(status: VirtPlatformConfigStatus, before: VirtPlatformConfigStatus | None = None) -> PlanRecord:
    record = next_record(a_config(before), None, status, NOON)
    assert record
    return record


def changed(status: VirtPlatformConfigStatus, **changes: Any) -> VirtPlatformConfigStatus:
    return msgspec.structs.replace(status, **changes)


def of_item(**changes: Any) -> dict[str, Any]:
    return {"items": (msgspec.structs.replace(an_item(), **changes),)}


@pytest.mark.parametrize(
    ("change", "fields"),
    [
        ({"phase": "InProgress"}, "phase"),
        ({"plan_hash": "b" * 64}, "planHash"),
        ({"plan_action": "Rollback"}, "planAction"),
        ({"plan_generation": 3}, "planGeneration"),
        ({"executions": 7}, "executions"),
        ({"pre_image": "another"}, "preImage"),
        ({"approval": PlanApproval(PLAN, NOON, "ann")}, "approval"),
        ({"history": (Execution(PLAN, NOON, "Completed"),)}, "history"),
        ({"governed": done().governed}, "governed"),
        ({"applied_inputs": (Input("a", "1"),)}, "appliedInputs"),
        ({"items": ()}, "items[configure-descheduler].name"),
        (of_item(desired_state={"spec": {"planted": 1}}), "items[configure-descheduler].desiredState"),
        (of_item(diff="harmless"), "items[configure-descheduler].diff"),
        (of_item(hash="sha256:3"), "items[configure-descheduler].hash"),
        (of_item(state="Completed"), "items[configure-descheduler].state"),
        (of_item(takes=(TakenField("ann", ".spec"),)), "items[configure-descheduler].takes"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_altered_status_is_replaced_by_recorded_one(change: dict[str, Any], fields: str) -> None:
    ours = a_status()
    found = authenticated(a_config(changed(ours, **change)), record_of(ours))
    assert isinstance(found.integrity, Altered)
    assert found.integrity.fields[0] == fields
    assert found.config.status == ours


@pytest.mark.parametrize(
    "change",
    [
        {"observed_generation": 9},
        {"conditions": (Condition("Completed", "True", "Because", "", NOON),)},
        of_item(message="2/3", last_transition_time=NOON),
    ],
    ids=["generation", "conditions", "progress"],
)
def test_status_is_intact_if_only_what_is_shown_differs(change: dict[str, Any]) -> None:
    read = a_config(changed(a_status(), **change))
    found = authenticated(read, record_of(a_status()))
    assert (found.config, found.integrity) == (read, INTACT)
    assert next_record(read, record_of(a_status()), read.status, NOON) is None


def test_altered_order_of_items_is_named() -> None:
    one, other = an_item("a"), an_item("b")
    found = authenticated(a_config(a_status("ReviewRequired", other, one)), record_of(a_status("Drifted", one, other)))
    assert found.integrity == Altered(("phase", "the order of items"), is_started=False)


def test_altered_fields_are_named_up_to_a_limit() -> None:
    named = str(Altered(tuple("abcdefgh"), is_started=False))
    assert named == f"a, b, c, d, e and {8 - FIELDS_NAMED} more"


def test_status_before_record_is_behind() -> None:
    before, after = a_status(), a_status("InProgress")
    found = authenticated(a_config(before), record_of(after, before))
    assert (found.config.status, found.integrity) == (after, Behind())


def test_record_of_another_config_keeps_only_its_count() -> None:
    earlier = msgspec.structs.replace(record_of(a_status(executions=4)), uid="another")
    found = authenticated(a_config(), earlier)
    assert (found.config.status, found.integrity) == (VirtPlatformConfigStatus(executions=4), Unrecorded())
    assert next_record(found.config, earlier, earlier.status, NOON) is not None


@pytest.mark.parametrize(
    ("status", "notes", "executions"),
    [
        pytest.param(None, {}, 0, id="none"),
        pytest.param(a_status(), {}, 0, id="drafted by version 0.1"),
        pytest.param(a_status(), {"approved-plan": PLAN}, 1, id="approved under version 0.1"),
        pytest.param(a_status(pre_image="p-1"), {}, 1, id="after an execution by version 0.1"),
        pytest.param(a_status("Failed"), {}, 1, id="failed under version 0.1"),
        pytest.param(a_status(executions=3), {}, 3, id="whose record was deleted"),
    ],
)
def test_unrecorded_plan_is_not_the_first(
    status: VirtPlatformConfigStatus | None, notes: dict[str, str], executions: int
) -> None:
    """So that no approval of an earlier plan starts it. A rejection of a plan that was only drafted still counts."""
    assert authenticated(a_config(status, notes=notes), None).config.status.executions == executions


TAMPERED = Altered(("items",), is_started=False)


def step_for(status: VirtPlatformConfigStatus, integrity: Integrity, **config: Any) -> Step:
    return decide(replace(an_observation(a_config(status, **config)), integrity=integrity), NOON)


@pytest.mark.parametrize(
    ("status", "integrity", "config", "step"),
    [
        (a_status(), TAMPERED, {}, RestoreStatus),
        (a_status(), TAMPERED, {"action": "Ignore"}, Ignore),
        (a_status(), TAMPERED, {"action": "Apply", "generation": 2}, FailTampered),
        (a_status(), TAMPERED, {"action": "Apply", "notes": APPROVED}, FailTampered),
        (a_status(), Behind(), {"action": "Apply", "notes": APPROVED}, RestoreStatus),
        (a_status(), Altered(("phase",), is_started=True), {}, FailTampered),
        (a_status("InProgress"), TAMPERED, {"action": "Apply"}, FailTampered),
        (a_status("InProgress"), Behind(), {"action": "Apply"}, RestoreStatus),
        (done(), TAMPERED, {"action": "Apply"}, RestoreStatus),
        (done(), Altered(("phase",), is_started=True), {"action": "Apply"}, FailTampered),
        (done(phase="Drifted"), TAMPERED, {"action": "Apply", "bypass_optimistic_lock": True}, RestoreStatus),
        (a_status("Failed"), TAMPERED, {}, RestoreStatus),
    ],
)
def test_altered_status_is_restored_or_fails_plan(
    status: VirtPlatformConfigStatus, integrity: Integrity, config: dict[str, Any], step: type[Step]
) -> None:
    assert isinstance(step_for(status, integrity, **config), step)


@pytest.mark.parametrize(
    ("status", "is_drafted"),
    [
        (a_status(), True),
        (a_status("InProgress", plan_action="Apply"), True),
        (done(plan_action="Apply"), True),
        (done(phase="Drifted", plan_action="Apply"), True),
        (a_status("Failed", plan_action="Apply"), False),
        (done(plan_action="Rollback"), False),
    ],
)
def test_unrecorded_plan_is_drafted_again(status: VirtPlatformConfigStatus, is_drafted: bool) -> None:
    action = status.plan_action or "DryRun"
    assert isinstance(step_for(status, Unrecorded(), action=action), Redraft) == is_drafted


def test_tampered_execution_ends_in_history_and_next_plan_is_reviewed() -> None:
    ours = a_status("InProgress", approval=PlanApproval(PLAN, NOON, "ann"), executions=1, plan_action="Apply")
    around = an_observation(a_config(ours, action="Apply"))
    status = next_status(around, ours, FailTampered("phase"), NOON)
    assert (status.phase, status.items) == ("Failed", ours.items)
    assert [(one.outcome, one.by) for one in status.history] == [("Failed", "ann")]
    assert next_status(around, a_status(), FailTampered("phase"), NOON).history == ()
    assert plan_hash("p", ours.items, executions=1) != plan_hash("p", ours.items)


def test_restored_status_is_written_as_recorded() -> None:
    ours = a_status(observed_generation=1)
    around = an_observation(a_config(ours, generation=2))
    assert next_status(around, ours, RestoreStatus("it was changed"), NOON) == ours


def test_start_of_plan_is_counted() -> None:
    around = an_observation(a_config(a_status(executions=2), action="Apply"))
    assert next_status(around, around.config.status, Begin(PlanApproval(PLAN, NOON)), NOON).executions == 3
    assert next_status(around, around.config.status, AwaitReview("PlanReady", ""), NOON).executions == 2


class TestSameExecution:
    """An execution of version 0.1, after the upgrade."""

    def running(self, **config: Any) -> VirtPlatformConfig:
        items = (an_item("a", "InProgress"), an_item("b"))
        return a_config(a_status("InProgress", *items, plan_action="Apply"), **{"action": "Apply", **config})

    def test_same_execution_goes_on(self) -> None:
        drafted = (an_item("a", "Completed", hash="sha256:3"), an_item("b"))
        assert is_same_execution(self.running(), drafted)
        assert is_same_execution(self.running(notes=APPROVED), drafted)

    @pytest.mark.parametrize(
        "drafted",
        [
            (an_item("a"),),
            (an_item("b"), an_item("a")),
            (an_item("a", desired_state={"spec": {}}), an_item("b")),
            (an_item("a"), an_item("b", desired_state={"spec": {}})),
            (an_item("a"), an_item("b", takes=(TakenField("ann", ".spec"),))),
            (an_item("a"), an_item("b", planned_hash=BEFORE)),
            (an_item("a"), an_item("b", managed_fields=("spec",))),
        ],
        ids=["fewer", "order", "written", "content", "takes", "planned", "fields"],
    )
    def test_other_execution_is_reviewed(self, drafted: Any) -> None:
        assert not is_same_execution(self.running(), drafted)

    @pytest.mark.parametrize(
        "config", [{"notes": {"approved-plan": "b" * 64}}, {"action": "DryRun"}, {"action": "Rollback"}]
    )
    def test_execution_that_nobody_requested_is_reviewed(self, config: dict[str, Any]) -> None:
        assert not is_same_execution(self.running(**config), (an_item("a"), an_item("b")))

    def test_rollback_needs_its_approval(self) -> None:
        status = a_status("InProgress", plan_action="Rollback")
        unapproved, approved = (a_config(status, action="Rollback", notes=notes) for notes in ({}, APPROVED))
        assert not is_same_execution(unapproved, status.items)
        assert is_same_execution(approved, status.items)


@pytest.mark.parametrize(
    ("phase", "drafted", "expected"),
    [
        ("Completed", an_item("a", "Completed", hash="sha256:3"), True),
        ("Drifted", an_item("a"), True),
        ("CompletedWithErrors", an_item("a"), True),
        ("Completed", an_item("a", desired_state={"spec": {}}), False),
        ("ReviewRequired", an_item("a"), False),
    ],
)
def test_settled_status_of_earlier_version_stands_if_planned_equally(
    phase: Any, drafted: PlanItem, expected: bool
) -> None:
    assert may_stand(a_config(a_status(phase, an_item("a", "Completed"))), (drafted,)) is expected
