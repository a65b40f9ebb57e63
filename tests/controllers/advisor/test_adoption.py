"""What becomes of a status that another implementation of the advisor has left, as pure decisions."""

from datetime import datetime, timedelta
from typing import Any

import msgspec
import pytest

from tests.controllers.advisor.builders import (
    EARLIER,
    FIVE,
    NOON,
    PLAN,
    VERSION,
    a_config,
    a_status,
    an_item,
    an_observation,
    done,
    true,
)
from virt_steward.apis.virtplatformconfig import GovernedTarget, PlanItem, TargetRef, VirtPlatformConfigStatus
from virt_steward.controllers.advisor.adoption import (
    Adopted,
    has_offer,
    is_of_another_advisor,
    started_items,
    with_adoption,
)
from virt_steward.controllers.advisor.approval import step_for_new_plan
from virt_steward.controllers.advisor.conditions import ADOPTED
from virt_steward.controllers.advisor.decide import decide
from virt_steward.controllers.advisor.integrity import (
    Altered,
    Intact,
    Unrecorded,
    authenticated,
    next_record,
    unauthenticated,
)
from virt_steward.controllers.advisor.observation import AdvisorObservation, VirtPlatformConfig
from virt_steward.controllers.advisor.phases import PHASES
from virt_steward.controllers.advisor.report import next_status, with_plan
from virt_steward.controllers.advisor.steps import (
    ApplyItem,
    AwaitItem,
    AwaitReview,
    Begin,
    Enforce,
    Ignore,
    KeepFailed,
    MarkDrifted,
    NothingToDo,
    OfferPlan,
    Redraft,
    Stay,
)
from virt_steward.controllers.advisor.steps.base import StatusStep
from virt_steward.plans.fingerprint import fields_hash, plan_hash
from virt_steward.plans.intent import Impacts, Intent, ref_to
from virt_steward.platform.health import NotReady

TARGET = TargetRef("operator.openshift.io/v1", "KubeDescheduler", "cluster", "somewhere")
META = {"name": "cluster", "namespace": "somewhere"}
FIELDS = ("spec.interval", "spec.custom")
LATER = NOON + timedelta(seconds=1)


def a_target(**spec: Any) -> dict[str, Any]:
    return {"apiVersion": TARGET.api_version, "kind": TARGET.kind, "metadata": META, "spec": spec}


def their_item(state: str = "Completed", name: str = "enable-load-aware-descheduling") -> PlanItem:
    desired = a_target(interval=60, custom={"soft": True})
    item = PlanItem(name, TARGET, "Medium", managed_fields=FIELDS, desired_state=desired, last_transition_time=EARLIER)
    return msgspec.structs.replace(item, state=state)


def left(phase: str = "Completed", **changes: Any) -> VirtPlatformConfigStatus:
    """As the Go advisor leaves it."""
    status = VirtPlatformConfigStatus(
        phase=phase,
        impact_severity="Medium",
        observed_generation=1,
        operator_version="v0.1.31",
        source_snapshot_hash="8" * 64,
        items=(their_item(),),
        conditions=true(phase),
    )
    return msgspec.structs.replace(status, **changes)


def adopted(status: VirtPlatformConfigStatus, *items: PlanItem, **spec: Any) -> AdvisorObservation:
    found = authenticated(a_config(status, **{"action": "Apply", **spec}), None)
    config = found.config
    if items:
        config = msgspec.structs.replace(config, status=msgspec.structs.replace(config.status, items=items))
    return an_observation(config, integrity=found.integrity)


def drafted(observation: AdvisorObservation, *items: PlanItem, live: Any = None) -> StatusStep:
    """What a plan with these items leads to."""
    observation = with_adoption(observation, items, {ref_to(TARGET): live})
    status = observation.config.status
    digest = plan_hash(observation.config.metadata.name, items, executions=status.executions)
    return step_for_new_plan(observation, items, digest, NOON)


@pytest.mark.parametrize(
    "change",
    [
        {"plan_hash": PLAN},
        {"plan_action": "Apply"},
        {"inputs": FIVE},
        {"executions": 1},
        {"governed": done().governed},
        {"pre_image": "a-record"},
        {"items": (an_item(),)},
        {"phase": None},
    ],
    ids=lambda change: next(iter(change)),
)
def test_status_with_anything_of_ours_is_not_adopted(change: dict[str, Any]) -> None:
    status = left(**change)
    assert is_of_another_advisor(left())
    assert not is_of_another_advisor(status)
    assert authenticated(a_config(status), None).integrity == Unrecorded()


@pytest.mark.parametrize(
    ("ran_at", "status", "integrity"),
    [
        pytest.param(None, left(), Altered, id="feigned: no other advisor has run"),
        pytest.param(EARLIER, left(), Altered, id="feigned: another advisor ran before ours"),
        pytest.param(NOON, left(), Altered, id="feigned: in the same moment"),
        pytest.param(LATER, left(), Adopted, id="another advisor ran since"),
        pytest.param(LATER, left("InProgress"), Adopted, id="another advisor was executing"),
        pytest.param(LATER, left(executions=9), Altered, id="feigned: with a field of ours"),
        pytest.param(LATER, left(items=(an_item(),)), Altered, id="feigned: with an item of ours"),
        pytest.param(LATER, done(executions=3), Intact, id="another advisor ran and wrote nothing"),
    ],
)
def test_recorded_status_is_adopted_only_after_another_advisor_ran(
    ran_at: datetime | None, status: VirtPlatformConfigStatus, integrity: type
) -> None:
    record = next_record(a_config(), None, done(executions=3), NOON)
    assert record
    found = authenticated(a_config(status), record, ran_at)
    assert type(found.integrity) is integrity
    assert found.config.status.executions == 3, "an approval that was used does not count again"
    assert (found.config.status.items == record.status.items) is (integrity is not Adopted)


def test_record_without_its_time_is_never_outlived() -> None:
    record = next_record(a_config(), None, done(), NOON)
    assert record
    of_earlier_version = msgspec.structs.replace(record, saved_at=None)
    assert isinstance(authenticated(a_config(left()), of_earlier_version, LATER).integrity, Altered)


def test_adopted_status_keeps_nothing_but_the_phase() -> None:
    status = authenticated(a_config(left(), action="Apply", generation=3), None).config.status
    assert (status.phase, status.plan_action, status.plan_generation) == ("Completed", "Apply", 3)
    assert (status.items, status.conditions, status.source_snapshot_hash) == ((), (), "")


@pytest.mark.parametrize("phase", ["Completed", "CompletedWithUpgrade"])
def test_completed_plan_stays_completed_and_ours_is_offered(phase: str) -> None:
    observation = adopted(left(phase))
    assert isinstance(decide(observation, NOON), Redraft)
    live = a_target(interval=60, custom={"added": 1})  # what the server dropped of a plan is no drift
    assert drafted(observation, an_item(state="Completed"), live=live) == NothingToDo()
    assert drafted(observation, an_item(), live=live) == OfferPlan()


@pytest.mark.parametrize(
    ("live", "drifts"),
    [
        pytest.param(a_target(interval=300, custom={"soft": True}), True, id="changed"),
        pytest.param(None, True, id="deleted"),
        pytest.param(a_target(interval=60, custom={"soft": True, "added": 1}), False, id="repaired"),
        pytest.param({**a_target(interval=300), "apiVersion": "operator.openshift.io/v2"}, False, id="other-version"),
    ],
)
def test_drifted_plan_stays_drifted_until_drift_is_gone(live: Any, drifts: bool) -> None:
    step = drafted(adopted(left("Drifted")), an_item(), live=live)
    assert isinstance(step, MarkDrifted if drifts else OfferPlan)
    assert drafted(adopted(left("Drifted")), an_item(state="Completed"), live=live) == NothingToDo()


def test_drift_names_field_and_values() -> None:
    step = drafted(adopted(left("Drifted")), an_item(), live=a_target(interval=300, custom={"soft": True}))
    assert isinstance(step, MarkDrifted)
    assert step.details == (
        "KubeDescheduler cluster: /spec/interval is 300, planned 60 (managedFields names no other manager)",
    )


@pytest.mark.parametrize("action", ["DryRun", "Apply"])
@pytest.mark.parametrize("phase", [phase for phase in PHASES if phase != "Ignored"])
def test_adoption_never_executes(phase: str, action: str) -> None:
    """Neither at once nor when the same is looked at again, whatever was approved before."""
    observation = adopted(left(phase), action=action)
    step = decide(observation, NOON)
    assert isinstance(step, KeepFailed) if phase == "Failed" else isinstance(step, Redraft)
    config = observation.config
    for executions in (0, 1):
        used = plan_hash(config.metadata.name, (an_item(),), executions=executions)
        notes = {"advisor.kubevirt.io/approved-plan": used}
        metadata = msgspec.structs.replace(config.metadata, annotations=notes)
        approved = msgspec.structs.replace(config, metadata=metadata)
        again = an_observation(approved, integrity=observation.integrity)
        assert not isinstance(drafted(again, an_item()), Begin)
    first = drafted(observation, an_item())
    assert not isinstance(first, Begin)
    status = next_status(observation, with_plan(observation, (an_item(),), PLAN), first, NOON)
    later = an_observation(msgspec.structs.replace(config, status=status))
    assert not isinstance(decide(later, NOON), Begin | Enforce | ApplyItem)


@pytest.mark.parametrize("phase", ["ReviewRequired", "PrerequisiteFailed", "Pending", "CompletedWithErrors"])
def test_plan_that_another_advisor_did_not_complete_is_reviewed(phase: str) -> None:
    asked = drafted(adopted(left(phase)), an_item())
    shown = drafted(adopted(left(phase), action="DryRun"), an_item())
    assert isinstance(asked, AwaitReview)
    assert isinstance(shown, AwaitReview)
    assert (asked.reason, shown.reason) == ("OtherAdvisor", "PlanReady")


def test_started_items_are_waited_for_under_our_names() -> None:
    intent = Intent("configure-descheduler", a_target(interval=30), ("spec.interval",), Impacts("Low", "Low"), "")
    items = (their_item("InProgress"), their_item("Pending", "another"))
    (item,) = started_items(items[:1], (intent,))
    assert (item.name, item.state, item.desired_state) == ("configure-descheduler", "InProgress", {})
    assert started_items(items[1:], (intent,)) == ()
    observation = adopted(left("InProgress"), item)
    waiting = an_observation(observation.config, health={item.name: NotReady("1/3")}, integrity=observation.integrity)
    step = decide(waiting, NOON)
    assert isinstance(step, AwaitItem)
    after = next_status(waiting, waiting.config.status, step, NOON)
    assert (after.phase, after.plan_hash, [one.name for one in after.items]) == ("InProgress", "", [item.name])
    over = msgspec.structs.replace(after, items=(msgspec.structs.replace(item, state="Completed"),))
    found = an_observation(a_config(over, action="Apply"))
    assert decide(found, NOON) == Redraft("what another version of the advisor has applied is ready")
    reviewed = drafted(found, an_item())
    assert next_status(found, with_plan(found, (an_item(),), PLAN), reviewed, NOON).history == ()


def test_ignored_status_loses_what_another_advisor_left() -> None:
    observation = adopted(left("Ignored"), action="Ignore")
    step = decide(observation, NOON)
    assert step == Ignore()
    after = next_status(observation, observation.config.status, Ignore(), NOON)
    assert (after.items, after.source_snapshot_hash, after.plan_action) == ((), "", None)


def an_offer(phase: str = "CompletedWithUpgrade", **changes: Any) -> VirtPlatformConfigStatus:
    """After the adoption of a completed plan."""
    governed = (GovernedTarget(TARGET, FIELDS, fields_hash(a_target(interval=60), FIELDS)),)
    status = a_status(phase, an_item(), plan_action="Apply", governed=governed, conditions=true(ADOPTED))
    return msgspec.structs.replace(status, **changes)


def looked_at(status: VirtPlatformConfigStatus, config: VirtPlatformConfig | None = None, **around: Any) -> Any:
    return decide(an_observation(config or a_config(status, action="Apply"), **around), NOON)


def test_offered_plan_is_kept_up_to_date() -> None:
    status = an_offer()
    assert has_offer(status)
    assert looked_at(status) == Stay()
    assert isinstance(looked_at(status, hashes={}), Redraft)
    assert isinstance(looked_at(status, version="v2"), Redraft)
    assert looked_at(status, changed_since_adoption=("it",)) == MarkDrifted((), ("it",))
    drifted = an_offer("Drifted")
    assert looked_at(drifted, changed_since_adoption=("it",)) == Stay()
    assert looked_at(drifted) == OfferPlan()
    enforced = a_config(drifted, action="Apply", bypass_optimistic_lock=True)
    assert looked_at(drifted, enforced, changed_since_adoption=("it",)) == Stay()


def test_offered_plan_is_reviewed_by_dry_run_and_started_by_apply() -> None:
    touched = a_config(an_offer(), action="DryRun", generation=2)
    assert looked_at(touched.status, touched) == Redraft("the spec has changed")
    shown = step_for_new_plan(an_observation(touched), (an_item(),), PLAN, NOON)
    assert isinstance(shown, AwaitReview)
    reviewed = msgspec.structs.replace(an_offer("ReviewRequired"), plan_action="DryRun", plan_generation=2)
    step = looked_at(reviewed, a_config(reviewed, action="Apply", generation=3))
    assert isinstance(step, Begin)
    observation = an_observation(a_config(reviewed, action="Apply", generation=3))
    after = next_status(observation, reviewed, step, NOON)
    assert [(one.status, one.reason) for one in after.conditions if one.type == ADOPTED] == [("False", "PlanStarted")]


def test_explanation_knows_no_records() -> None:
    assert isinstance(unauthenticated(a_config(left())).integrity, Adopted)
    for status in (left("Ignored"), a_status(), VirtPlatformConfigStatus()):
        config = a_config(status)
        assert unauthenticated(config).config == config


def test_version_is_named() -> None:
    assert VERSION not in str(Adopted(left()))
    assert str(Adopted(left())) == "another version of the advisor (v0.1.31)"
