"""Every rule of the advisor, as a table: what is seen, and the step that follows."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import msgspec
import pytest

from tests.controllers.advisor.builders import (
    BEFORE,
    EARLIER,
    NOON,
    PLAN,
    PLANNED,
    TEN,
    a_config,
    a_status,
    an_item,
    an_observation,
    done,
)
from virt_steward.apis.virtplatformconfig import LoadAwareOptions, PlanApproval, ProfileOptions
from virt_steward.controllers.advisor.approval import step_for_new_plan
from virt_steward.controllers.advisor.decide import decide
from virt_steward.controllers.advisor.observation import AdvisorObservation, InvalidWindow, VersionChange
from virt_steward.controllers.advisor.phases import PHASES
from virt_steward.controllers.advisor.steps import (
    Abort,
    AdoptVersion,
    ApplyItem,
    AwaitItem,
    AwaitReview,
    AwaitWindow,
    Begin,
    CompleteItem,
    Enforce,
    FailItem,
    FailStale,
    Finish,
    Ignore,
    LackPrerequisites,
    MarkDrifted,
    NothingToDo,
    OfferUpgrade,
    Recover,
    Redraft,
    Settle,
    Stay,
)
from virt_steward.objects.windows import Closed
from virt_steward.platform.health import NotReady, Ready

OTHER = "sha256:" + "3" * 64
PENDING, RUNNING = an_item(), an_item(state="InProgress")
FASTER = ProfileOptions(load_aware=LoadAwareOptions(descheduling_interval_seconds=90))
APPROVED = {"approved-plan": PLAN, "approved-by": "ann", "approval-comment": "tonight"}
DRIFTED = {"configure-descheduler": OTHER}
SETTLED = ("Completed", "CompletedWithErrors", "CompletedWithUpgrade", "Drifted")


def reviewed(**spec: Any) -> AdvisorObservation:
    """A plan in review, and what the admin says to it in the next generation."""
    return an_observation(a_config(a_status(), generation=2, **{"action": "Apply", **spec}))


def executing(*items: Any, **spec: Any) -> AdvisorObservation:
    return an_observation(a_config(a_status("InProgress", *items), **{"action": "Apply", **spec}))


def completed(**spec: Any) -> AdvisorObservation:
    return an_observation(a_config(done(), **{"action": "Apply", **spec}))


@pytest.mark.parametrize("phase", PHASES)
def test_ignore_comes_before_everything_in(phase: str) -> None:
    config = a_config(a_status(phase), action="Ignore")
    assert decide(an_observation(config, missing=("x",), unsettled="y", hashes=DRIFTED), NOON) == Ignore()


@pytest.mark.parametrize("phase", PHASES)
def test_nothing_is_decided_on_what_was_not_seen_in(phase: str) -> None:
    assert decide(an_observation(a_config(a_status(phase)), unsettled="MachineConfig starting"), NOON) == Settle(
        "MachineConfig starting"
    )


@pytest.mark.parametrize("phase", PHASES)
def test_prerequisites_are_asked_for_in(phase: str) -> None:
    assert decide(an_observation(a_config(a_status(phase)), missing=("it",)), NOON) == LackPrerequisites(("it",))


@pytest.mark.parametrize("phase", [None, "Pending", "Drafting", "PrerequisiteFailed", "Ignored"])
def test_a_plan_is_made_in(phase: str | None) -> None:
    assert isinstance(decide(an_observation(a_config(a_status(phase))), NOON), Redraft)


@pytest.mark.parametrize("phase", PHASES)
@pytest.mark.parametrize("action", ["DryRun", "Apply"])
def test_changed_options_lead_to_a_new_plan_in(phase: str, action: str) -> None:
    """The old one is never executed."""
    config = a_config(a_status(phase), generation=2, action=action, options=FASTER)
    assert isinstance(decide(an_observation(config), NOON), Redraft)


@pytest.mark.parametrize("phase", ["ReviewRequired", "InProgress", "Completed", "Failed", "Drifted"])
def test_rollback_needs_a_plan_of_its_own_in(phase: str) -> None:
    assert isinstance(decide(an_observation(a_config(a_status(phase), generation=2, action="Rollback")), NOON), Redraft)


class TestReview:
    def test_waits_under_dry_run(self) -> None:
        step = decide(an_observation(a_config(a_status())), NOON)
        assert isinstance(step, AwaitReview)
        assert (step.reason, step.stale) == ("PlanReady", "")

    def test_ends_by_action_apply(self) -> None:
        assert decide(reviewed(), NOON) == Begin(PlanApproval(PLAN, NOON))

    def test_ends_by_an_approval_of_this_plan_which_is_told(self) -> None:
        config = a_config(a_status(), generation=2, action="Apply", notes=APPROVED)
        assert decide(an_observation(config), NOON) == Begin(PlanApproval(PLAN, NOON, "ann", "tonight"))

    def test_goes_on_if_another_plan_was_approved(self) -> None:
        config = a_config(a_status(), generation=2, action="Apply", notes={**APPROVED, "approved-plan": "b" * 64})
        step = decide(an_observation(config), NOON)
        assert isinstance(step, AwaitReview)
        assert step.reason == "ApprovalVoid"

    def test_of_a_way_back_ends_by_approval_alone(self) -> None:
        status = a_status(plan_action="Rollback")
        step = decide(an_observation(a_config(status, generation=3, action="Rollback")), NOON)
        assert isinstance(step, AwaitReview)
        assert step.reason == "RollbackReady"
        assert isinstance(decide(an_observation(a_config(status, action="Rollback", notes=APPROVED)), NOON), Begin)

    def test_says_that_a_target_has_changed(self) -> None:
        step = decide(an_observation(a_config(a_status()), hashes=DRIFTED), NOON)
        assert isinstance(step, AwaitReview)
        assert "KubeDescheduler configure-descheduler changed" in step.stale

    @pytest.mark.parametrize(
        ("action", "remedy"),
        [
            ("DryRun", "set action to Ignore, and then to DryRun again"),
            ("Rollback", "set action to Ignore, and then to Rollback again"),
        ],
    )
    def test_names_a_way_out_that_is_one_under(self, action: str, remedy: str) -> None:
        step = decide(an_observation(a_config(a_status(plan_action=action), action=action), hashes=DRIFTED), NOON)
        assert isinstance(step, AwaitReview)
        assert remedy in step.stale

    def test_of_a_plan_that_no_longer_fits_ends_in_failure(self) -> None:
        assert isinstance(decide(replace(reviewed(), hashes=DRIFTED), NOON), FailStale)

    def test_is_bypassed_on_request(self) -> None:
        assert isinstance(decide(replace(reviewed(bypass_optimistic_lock=True), hashes=DRIFTED), NOON), Begin)

    def test_begins_anew_when_inputs_change(self) -> None:
        assert decide(an_observation(a_config(a_status()), inputs=TEN), NOON) == Redraft(
            "parallelMigrationsPerCluster changed from 5 to 10"
        )

    def test_begins_anew_when_another_version_looks_at_it(self) -> None:
        assert isinstance(decide(an_observation(a_config(a_status()), version="v2"), NOON), Redraft)

    @pytest.mark.parametrize("action", ["DryRun", "Apply"])
    def test_is_over_when_nothing_is_left_to_do_but_to_wait_and_all_works(self, action: str) -> None:
        items = (an_item("a", "Completed", hash=PLANNED), an_item("b", "InProgress", hash=PLANNED))
        around = an_observation(a_config(a_status("ReviewRequired", *items, plan_action=action), action=action))
        assert isinstance(decide(replace(around, health={"b": NotReady("2/10")}), NOON), AwaitReview)
        assert isinstance(decide(replace(around, health={"b": Ready("ready")}), NOON), Redraft)
        with_more = replace(around, config=a_config(a_status("ReviewRequired", *items, PENDING)))
        assert isinstance(decide(replace(with_more, health={"b": Ready("ready")}), NOON), AwaitReview)

    def test_begins_anew_when_dry_run_is_asked_for_again(self) -> None:
        assert isinstance(decide(an_observation(a_config(a_status(), generation=2)), NOON), Redraft)


class TestNewPlan:
    @pytest.mark.parametrize(("action", "step"), [("DryRun", AwaitReview), ("Apply", Begin)])
    def test_that_changes_nothing_is_not_completed_while_something_does_not_work(self, action: str, step: type) -> None:
        items = (an_item("a", "Completed"), an_item("b", "InProgress"))
        assert isinstance(step_for_new_plan(an_observation(a_config(action=action)), items, PLAN, NOON), step)

    def test_without_changes_is_completed_whatever_the_action(self) -> None:
        for action in ("DryRun", "Apply"):
            assert (
                step_for_new_plan(an_observation(a_config(action=action)), (an_item(state="Completed"),), PLAN, NOON)
                == NothingToDo()
            )

    def test_is_reviewed_under_dry_run(self) -> None:
        assert isinstance(step_for_new_plan(an_observation(a_config()), (PENDING,), PLAN, NOON), AwaitReview)

    def test_begins_at_once_under_apply(self) -> None:
        assert step_for_new_plan(an_observation(a_config(action="Apply")), (PENDING,), PLAN, NOON) == Begin(
            PlanApproval(PLAN, NOON)
        )

    def test_is_reviewed_under_apply_if_inputs_changed(self) -> None:
        config = a_config(done(), action="Apply", generation=9)
        step = step_for_new_plan(an_observation(config, inputs=TEN), (PENDING,), PLAN, NOON)
        assert isinstance(step, AwaitReview)
        assert step.reason == "InputChanged"


class TestExecution:
    def test_applies_the_first_item_that_is_not_done(self) -> None:
        items = (an_item("first", "Completed"), an_item("second"), an_item("third"))
        assert decide(executing(*items), NOON) == ApplyItem(items[1])

    def test_holds_the_next_item_back_while_one_does_not_work_yet(self) -> None:
        around = replace(executing(RUNNING, an_item("next")), health={RUNNING.name: NotReady("2/10")})
        assert decide(around, NOON) == AwaitItem(RUNNING, "2/10", None)

    def test_waits_for_what_an_earlier_plan_has_written_in_its_turn_and_from_then_on(self) -> None:
        first, waits = an_item("first"), an_item("second", "InProgress", hash=PLANNED, last_transition_time=None)
        assert decide(executing(first, waits), NOON) == ApplyItem(first)
        around = replace(executing(waits, an_item("third"), wait_timeout="1h"), health={"second": NotReady("2/10")})
        assert decide(around, NOON) == AwaitItem(waits, "2/10", NOON + timedelta(hours=1))

    def test_completes_an_item_that_works(self) -> None:
        around = replace(executing(RUNNING), health={RUNNING.name: Ready("ready")})
        assert decide(around, NOON) == CompleteItem(RUNNING, "ready")

    def test_does_not_apply_again_what_was_written_before_a_restart(self) -> None:
        around = replace(
            executing(PENDING),
            written=frozenset({PENDING.name}),
            health={PENDING.name: NotReady("0/3")},
            hashes=DRIFTED,
        )
        assert decide(around, NOON) == AwaitItem(PENDING, "0/3", None)

    def test_ends_when_a_target_has_changed(self) -> None:
        assert isinstance(decide(replace(executing(PENDING), hashes=DRIFTED), NOON), FailStale)

    def test_goes_on_over_changes_in_bypass_mode(self) -> None:
        around = replace(executing(PENDING, bypass_optimistic_lock=True), hashes=DRIFTED)
        assert decide(around, NOON) == ApplyItem(PENDING)

    def test_is_ended_by_dry_run(self) -> None:
        assert isinstance(decide(executing(RUNNING, action="DryRun"), NOON), Redraft)

    def test_is_not_begun_anew_by_a_longer_timeout(self) -> None:
        config = a_config(a_status("InProgress", RUNNING), generation=5, action="Apply", wait_timeout="2h")
        assert decide(an_observation(config, health={RUNNING.name: NotReady("2/10")}), NOON) == AwaitItem(
            RUNNING, "2/10", EARLIER + timedelta(hours=2)
        )

    @pytest.mark.parametrize(("policy", "step"), [("Abort", Abort), ("Continue", FailItem)])
    def test_of_an_item_times_out_and_the_policy_says_what_follows(self, policy: str, step: type) -> None:
        around = replace(
            executing(RUNNING, failure_policy=policy, wait_timeout="1h"), health={RUNNING.name: NotReady("2/10")}
        )
        assert isinstance(decide(around, NOON), step)
        assert isinstance(decide(around, NOON - timedelta(seconds=1)), AwaitItem)

    def test_ends_when_all_items_are_done(self) -> None:
        assert decide(executing(an_item(state="Completed")), NOON) == Finish()

    def test_ends_with_errors_when_one_has_failed(self) -> None:
        assert decide(executing(an_item("a", "Failed"), an_item("b", "Completed")), NOON) == Finish(("a",))


class TestWindow:
    def test_holds_an_item_back_and_says_until_when(self) -> None:
        until = NOON + timedelta(hours=10)
        step = decide(replace(executing(PENDING), window=Closed(until)), NOON)
        assert isinstance(step, AwaitWindow)
        assert step.until == until
        assert "2026-03-01T22:00:00Z" in step.message

    def test_does_not_cut_off_an_item_that_has_begun(self) -> None:
        around = replace(executing(RUNNING), window=Closed(NOON), health={RUNNING.name: Ready("ready")})
        assert decide(around, NOON) == CompleteItem(RUNNING, "ready")

    @pytest.mark.parametrize("window", [InvalidWindow("no such zone"), Closed(None)])
    def test_that_never_opens_holds_everything_back(self, window: Any) -> None:
        step = decide(replace(executing(PENDING), window=window), NOON)
        assert isinstance(step, AwaitWindow)
        assert step.until is None


class TestWatch:
    def test_stays_while_all_is_as_planned(self) -> None:
        assert decide(completed(), NOON) == Stay()

    @pytest.mark.parametrize("action", ["DryRun", "Apply"])
    def test_marks_drift_and_does_not_fight(self, action: str) -> None:
        around = replace(completed(action=action), hashes=DRIFTED)
        assert decide(around, NOON) == MarkDrifted(around.config.status.items)

    def test_marks_drift_under_apply_also_of_what_was_in_place_before(self) -> None:
        config = a_config(done(governed=()), action="Apply")
        assert isinstance(decide(an_observation(config, hashes=DRIFTED), NOON), MarkDrifted)

    def test_plans_anew_under_dry_run_if_nothing_was_ever_applied(self) -> None:
        config = a_config(done(governed=()))
        assert isinstance(decide(an_observation(config, hashes=DRIFTED), NOON), Redraft)

    def test_sees_drift_repaired_by_hand(self) -> None:
        config = a_config(done(phase="Drifted"), action="Apply")
        assert decide(an_observation(config), NOON) == Recover(with_errors=False)

    def test_remembers_errors_when_drift_is_repaired(self) -> None:
        items = (an_item("a", "Failed"), an_item("b", "Completed"))
        config = a_config(done(*items, phase="Drifted"), action="Apply")
        assert decide(an_observation(config), NOON) == Recover(with_errors=True)

    def test_does_not_watch_items_that_have_failed(self) -> None:
        config = a_config(done(an_item("a", "Failed"), phase="CompletedWithErrors"), action="Apply")
        assert decide(an_observation(config, hashes={"a": OTHER}), NOON) == Stay()

    def test_enforces_in_bypass_mode(self) -> None:
        around = replace(completed(bypass_optimistic_lock=True), hashes=DRIFTED)
        assert decide(around, NOON) == Enforce(around.config.status.items)

    def test_does_not_enforce_under_dry_run(self) -> None:
        around = replace(completed(bypass_optimistic_lock=True, action="DryRun"), hashes=DRIFTED)
        assert isinstance(decide(around, NOON), MarkDrifted)

    @pytest.mark.parametrize("phase", SETTLED)
    @pytest.mark.parametrize("action", ["DryRun", "Apply"])
    def test_plans_anew_for_another_action_in(self, phase: str, action: str) -> None:
        before = "Apply" if action == "DryRun" else "DryRun"
        config = a_config(done(phase=phase, plan_action=before), generation=2, action=action)
        assert isinstance(decide(an_observation(config), NOON), Redraft)

    def test_plans_anew_when_inputs_change(self) -> None:
        assert decide(replace(completed(), inputs=TEN), NOON) == Redraft(
            "parallelMigrationsPerCluster changed from 5 to 10"
        )

    def test_leaves_alone_what_was_undone(self) -> None:
        config = a_config(done(plan_action="Rollback"), action="Rollback")
        assert decide(an_observation(config, hashes=DRIFTED), NOON) == Stay()

    def test_keeps_a_failure_until_the_spec_changes(self) -> None:
        assert decide(an_observation(a_config(a_status("Failed"), action="Apply"), hashes=DRIFTED), NOON) == Stay()
        assert isinstance(decide(an_observation(a_config(a_status("Failed"), generation=2)), NOON), Redraft)


class TestUpgrade:
    def test_without_new_logic_is_silent(self) -> None:
        around = replace(completed(), version="v2", logic=VersionChange())
        assert decide(around, NOON) == AdoptVersion("NoLogicChange", around.config.status.items)

    def test_with_new_logic_is_offered(self) -> None:
        around = replace(completed(), version="v2", logic=VersionChange(("configure-descheduler",)))
        assert decide(around, NOON) == OfferUpgrade(("configure-descheduler",))

    def test_is_over_when_the_cluster_has_what_it_wants(self) -> None:
        aligned = (msgspec.structs.replace(PENDING, hash=PLANNED),)
        config = a_config(done(phase="CompletedWithUpgrade"), action="Apply")
        around = an_observation(
            config, version="v2", hashes=DRIFTED, logic=VersionChange(("configure-descheduler",), aligned)
        )
        assert decide(around, NOON) == AdoptVersion("ManuallyAligned", aligned)

    @pytest.mark.parametrize("phase", SETTLED)
    @pytest.mark.parametrize("logic", [VersionChange(), VersionChange(("configure-descheduler",))])
    @pytest.mark.parametrize(("bypass", "step"), [(False, MarkDrifted), (True, Enforce)])
    def test_does_not_hide_drift_in(self, phase: str, logic: VersionChange, *, bypass: bool, step: type) -> None:
        config = a_config(done(phase=phase), action="Apply", bypass_optimistic_lock=bypass)
        around = an_observation(config, version="v2", logic=logic, hashes=DRIFTED)
        assert decide(around, NOON) == step(around.config.status.items)

    def test_that_was_withdrawn_is_no_longer_offered(self) -> None:
        config = a_config(done(phase="CompletedWithUpgrade"), action="Apply")
        assert decide(an_observation(config), NOON) == AdoptVersion("NoLogicChange", config.status.items)

    def test_does_not_touch_a_plan_that_is_being_carried_out(self) -> None:
        around = replace(executing(PENDING), version="v2", hashes={PENDING.name: BEFORE})
        assert decide(around, NOON) == ApplyItem(PENDING)
