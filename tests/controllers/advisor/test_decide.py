"""Every rule of the advisor: an observation, and the step that follows."""

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
from virt_steward.apis.profiles import LoadAwareOptions, ProfileOptions
from virt_steward.apis.virtplatformconfig import PlanApproval
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
def test_ignore_comes_first_in_every_phase(phase: str) -> None:
    config = a_config(a_status(phase), action="Ignore")
    assert decide(an_observation(config, missing=("x",), unsettled="y", hashes=DRIFTED), NOON) == Ignore()


@pytest.mark.parametrize("phase", PHASES)
def test_unread_inputs_settle_in_every_phase(phase: str) -> None:
    assert decide(an_observation(a_config(a_status(phase)), unsettled="MachineConfig starting"), NOON) == Settle(
        "MachineConfig starting"
    )


@pytest.mark.parametrize("phase", PHASES)
def test_missing_prerequisites_stop_every_phase(phase: str) -> None:
    assert decide(an_observation(a_config(a_status(phase)), missing=("it",)), NOON) == LackPrerequisites(("it",))


@pytest.mark.parametrize("phase", [None, "Pending", "Drafting", "PrerequisiteFailed", "Ignored"])
def test_plan_is_drafted_in_starting_phases(phase: str | None) -> None:
    assert isinstance(decide(an_observation(a_config(a_status(phase))), NOON), Redraft)


@pytest.mark.parametrize("phase", PHASES)
@pytest.mark.parametrize("action", ["DryRun", "Apply"])
def test_changed_options_redraft_in_every_phase(phase: str, action: str) -> None:
    """The old one is never executed."""
    config = a_config(a_status(phase), generation=2, action=action, options=FASTER)
    assert isinstance(decide(an_observation(config), NOON), Redraft)


@pytest.mark.parametrize("phase", ["ReviewRequired", "InProgress", "Completed", "Failed", "Drifted"])
def test_rollback_redrafts_in_every_phase(phase: str) -> None:
    assert isinstance(decide(an_observation(a_config(a_status(phase), generation=2, action="Rollback")), NOON), Redraft)


class TestReview:
    def test_review_waits_under_dry_run(self) -> None:
        step = decide(an_observation(a_config(a_status())), NOON)
        assert isinstance(step, AwaitReview)
        assert (step.reason, step.stale) == ("PlanReady", "")

    def test_review_ends_by_action_apply(self) -> None:
        assert decide(reviewed(), NOON) == Begin(PlanApproval(PLAN, NOON))

    def test_review_ends_by_approval_and_keeps_its_author(self) -> None:
        config = a_config(a_status(), generation=2, action="Apply", notes=APPROVED)
        assert decide(an_observation(config), NOON) == Begin(PlanApproval(PLAN, NOON, "ann", "tonight"))

    def test_review_goes_on_if_another_plan_was_approved(self) -> None:
        config = a_config(a_status(), generation=2, action="Apply", notes={**APPROVED, "approved-plan": "b" * 64})
        step = decide(an_observation(config), NOON)
        assert isinstance(step, AwaitReview)
        assert step.reason == "ApprovalVoid"

    def test_review_of_rollback_ends_by_approval_alone(self) -> None:
        status = a_status(plan_action="Rollback")
        step = decide(an_observation(a_config(status, generation=3, action="Rollback")), NOON)
        assert isinstance(step, AwaitReview)
        assert step.reason == "RollbackReady"
        assert isinstance(decide(an_observation(a_config(status, action="Rollback", notes=APPROVED)), NOON), Begin)

    def test_review_reports_changed_target(self) -> None:
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
    def test_review_of_stale_plan_says_how_to_redraft(self, action: str, remedy: str) -> None:
        step = decide(an_observation(a_config(a_status(plan_action=action), action=action), hashes=DRIFTED), NOON)
        assert isinstance(step, AwaitReview)
        assert remedy in step.stale

    def test_review_of_stale_plan_fails_when_approved(self) -> None:
        assert isinstance(decide(replace(reviewed(), hashes=DRIFTED), NOON), FailStale)

    def test_review_of_stale_plan_starts_in_bypass_mode(self) -> None:
        assert isinstance(decide(replace(reviewed(bypass_optimistic_lock=True), hashes=DRIFTED), NOON), Begin)

    def test_review_redrafts_when_inputs_change(self) -> None:
        assert decide(an_observation(a_config(a_status()), inputs=TEN), NOON) == Redraft(
            "parallelMigrationsPerCluster changed from 5 to 10"
        )

    def test_review_redrafts_for_other_version(self) -> None:
        assert isinstance(decide(an_observation(a_config(a_status()), version="v2"), NOON), Redraft)

    @pytest.mark.parametrize("action", ["DryRun", "Apply"])
    def test_review_redrafts_when_all_targets_are_ready(self, action: str) -> None:
        items = (an_item("a", "Completed", hash=PLANNED), an_item("b", "InProgress", hash=PLANNED))
        around = an_observation(a_config(a_status("ReviewRequired", *items, plan_action=action), action=action))
        assert isinstance(decide(replace(around, health={"b": NotReady("2/10")}), NOON), AwaitReview)
        assert isinstance(decide(replace(around, health={"b": Ready("ready")}), NOON), Redraft)
        with_more = replace(around, config=a_config(a_status("ReviewRequired", *items, PENDING)))
        assert isinstance(decide(replace(with_more, health={"b": Ready("ready")}), NOON), AwaitReview)

    def test_review_redrafts_when_dry_run_is_requested_again(self) -> None:
        assert isinstance(decide(an_observation(a_config(a_status(), generation=2)), NOON), Redraft)


class TestNewPlan:
    @pytest.mark.parametrize(("action", "step"), [("DryRun", AwaitReview), ("Apply", Begin)])
    def test_new_plan_without_changes_waits_for_readiness(self, action: str, step: type) -> None:
        items = (an_item("a", "Completed"), an_item("b", "InProgress"))
        assert isinstance(step_for_new_plan(an_observation(a_config(action=action)), items, PLAN, NOON), step)

    def test_new_plan_without_changes_is_completed(self) -> None:
        for action in ("DryRun", "Apply"):
            assert (
                step_for_new_plan(an_observation(a_config(action=action)), (an_item(state="Completed"),), PLAN, NOON)
                == NothingToDo()
            )

    def test_new_plan_is_reviewed_under_dry_run(self) -> None:
        assert isinstance(step_for_new_plan(an_observation(a_config()), (PENDING,), PLAN, NOON), AwaitReview)

    def test_new_plan_starts_at_once_under_apply(self) -> None:
        assert step_for_new_plan(an_observation(a_config(action="Apply")), (PENDING,), PLAN, NOON) == Begin(
            PlanApproval(PLAN, NOON)
        )

    def test_new_plan_is_reviewed_under_apply_if_inputs_changed(self) -> None:
        config = a_config(done(), action="Apply", generation=9)
        step = step_for_new_plan(an_observation(config, inputs=TEN), (PENDING,), PLAN, NOON)
        assert isinstance(step, AwaitReview)
        assert step.reason == "InputChanged"


class TestExecution:
    def test_execution_applies_first_pending_item(self) -> None:
        items = (an_item("first", "Completed"), an_item("second"), an_item("third"))
        assert decide(executing(*items), NOON) == ApplyItem(items[1])

    def test_execution_waits_until_item_is_ready(self) -> None:
        around = replace(executing(RUNNING, an_item("next")), health={RUNNING.name: NotReady("2/10")})
        assert decide(around, NOON) == AwaitItem(RUNNING, "2/10", None)

    def test_execution_waits_for_items_of_earlier_plan_in_order(self) -> None:
        first, waits = an_item("first"), an_item("second", "InProgress", hash=PLANNED, last_transition_time=None)
        assert decide(executing(first, waits), NOON) == ApplyItem(first)
        around = replace(executing(waits, an_item("third"), wait_timeout="1h"), health={"second": NotReady("2/10")})
        assert decide(around, NOON) == AwaitItem(waits, "2/10", NOON + timedelta(hours=1))

    def test_execution_completes_ready_item(self) -> None:
        around = replace(executing(RUNNING), health={RUNNING.name: Ready("ready")})
        assert decide(around, NOON) == CompleteItem(RUNNING, "ready")

    def test_execution_does_not_repeat_write_after_restart(self) -> None:
        around = replace(
            executing(PENDING),
            written=frozenset({PENDING.name}),
            health={PENDING.name: NotReady("0/3")},
            hashes=DRIFTED,
        )
        assert decide(around, NOON) == AwaitItem(PENDING, "0/3", None)

    def test_execution_fails_when_target_has_changed(self) -> None:
        assert isinstance(decide(replace(executing(PENDING), hashes=DRIFTED), NOON), FailStale)

    def test_execution_ignores_changed_target_in_bypass_mode(self) -> None:
        around = replace(executing(PENDING, bypass_optimistic_lock=True), hashes=DRIFTED)
        assert decide(around, NOON) == ApplyItem(PENDING)

    def test_execution_ends_by_dry_run(self) -> None:
        assert isinstance(decide(executing(RUNNING, action="DryRun"), NOON), Redraft)

    def test_execution_goes_on_with_longer_timeout(self) -> None:
        config = a_config(a_status("InProgress", RUNNING), generation=5, action="Apply", wait_timeout="2h")
        assert decide(an_observation(config, health={RUNNING.name: NotReady("2/10")}), NOON) == AwaitItem(
            RUNNING, "2/10", EARLIER + timedelta(hours=2)
        )

    @pytest.mark.parametrize(("policy", "step"), [("Abort", Abort), ("Continue", FailItem)])
    def test_execution_follows_failure_policy_on_timeout(self, policy: str, step: type) -> None:
        around = replace(
            executing(RUNNING, failure_policy=policy, wait_timeout="1h"), health={RUNNING.name: NotReady("2/10")}
        )
        assert isinstance(decide(around, NOON), step)
        assert isinstance(decide(around, NOON - timedelta(seconds=1)), AwaitItem)

    def test_execution_finishes_when_all_items_are_done(self) -> None:
        assert decide(executing(an_item(state="Completed")), NOON) == Finish()

    def test_execution_finishes_with_errors(self) -> None:
        assert decide(executing(an_item("a", "Failed"), an_item("b", "Completed")), NOON) == Finish(("a",))


class TestWindow:
    def test_closed_window_holds_item_back_until_it_opens(self) -> None:
        until = NOON + timedelta(hours=10)
        step = decide(replace(executing(PENDING), window=Closed(until)), NOON)
        assert isinstance(step, AwaitWindow)
        assert step.until == until
        assert "2026-03-01T22:00:00Z" in step.message

    def test_closed_window_does_not_interrupt_started_item(self) -> None:
        around = replace(executing(RUNNING), window=Closed(NOON), health={RUNNING.name: Ready("ready")})
        assert decide(around, NOON) == CompleteItem(RUNNING, "ready")

    @pytest.mark.parametrize("window", [InvalidWindow("no such zone"), Closed(None)])
    def test_window_that_never_opens_holds_items_back(self, window: Any) -> None:
        step = decide(replace(executing(PENDING), window=window), NOON)
        assert isinstance(step, AwaitWindow)
        assert step.until is None


class TestWatch:
    def test_settled_plan_stays_without_changes(self) -> None:
        assert decide(completed(), NOON) == Stay()

    @pytest.mark.parametrize("action", ["DryRun", "Apply"])
    def test_drift_is_marked_and_not_corrected(self, action: str) -> None:
        around = replace(completed(action=action), hashes=DRIFTED)
        assert decide(around, NOON) == MarkDrifted(around.config.status.items)

    def test_drift_of_unchanged_item_is_marked_under_apply(self) -> None:
        config = a_config(done(governed=()), action="Apply")
        assert isinstance(decide(an_observation(config, hashes=DRIFTED), NOON), MarkDrifted)

    def test_drift_redrafts_under_dry_run_if_nothing_was_applied(self) -> None:
        config = a_config(done(governed=()))
        assert isinstance(decide(an_observation(config, hashes=DRIFTED), NOON), Redraft)

    def test_drift_ends_when_repaired_manually(self) -> None:
        config = a_config(done(phase="Drifted"), action="Apply")
        assert decide(an_observation(config), NOON) == Recover(with_errors=False)

    def test_end_of_drift_keeps_errors(self) -> None:
        items = (an_item("a", "Failed"), an_item("b", "Completed"))
        config = a_config(done(*items, phase="Drifted"), action="Apply")
        assert decide(an_observation(config), NOON) == Recover(with_errors=True)

    def test_drift_ignores_failed_items(self) -> None:
        config = a_config(done(an_item("a", "Failed"), phase="CompletedWithErrors"), action="Apply")
        assert decide(an_observation(config, hashes={"a": OTHER}), NOON) == Stay()

    def test_drift_is_enforced_in_bypass_mode(self) -> None:
        around = replace(completed(bypass_optimistic_lock=True), hashes=DRIFTED)
        assert decide(around, NOON) == Enforce(around.config.status.items)

    def test_drift_is_not_enforced_under_dry_run(self) -> None:
        around = replace(completed(bypass_optimistic_lock=True, action="DryRun"), hashes=DRIFTED)
        assert isinstance(decide(around, NOON), MarkDrifted)

    @pytest.mark.parametrize("phase", SETTLED)
    @pytest.mark.parametrize("action", ["DryRun", "Apply"])
    def test_settled_plan_redrafts_for_another_action(self, phase: str, action: str) -> None:
        before = "Apply" if action == "DryRun" else "DryRun"
        config = a_config(done(phase=phase, plan_action=before), generation=2, action=action)
        assert isinstance(decide(an_observation(config), NOON), Redraft)

    def test_settled_plan_redrafts_when_inputs_change(self) -> None:
        assert decide(replace(completed(), inputs=TEN), NOON) == Redraft(
            "parallelMigrationsPerCluster changed from 5 to 10"
        )

    def test_rolled_back_profile_is_not_watched(self) -> None:
        config = a_config(done(plan_action="Rollback"), action="Rollback")
        assert decide(an_observation(config, hashes=DRIFTED), NOON) == Stay()

    def test_failure_stays_until_spec_changes(self) -> None:
        assert decide(an_observation(a_config(a_status("Failed"), action="Apply"), hashes=DRIFTED), NOON) == Stay()
        assert isinstance(decide(an_observation(a_config(a_status("Failed"), generation=2)), NOON), Redraft)


class TestUpgrade:
    def test_upgrade_without_new_logic_is_adopted(self) -> None:
        around = replace(completed(), version="v2", logic=VersionChange())
        assert decide(around, NOON) == AdoptVersion("NoLogicChange", around.config.status.items)

    def test_upgrade_with_new_logic_is_offered(self) -> None:
        around = replace(completed(), version="v2", logic=VersionChange(("configure-descheduler",)))
        assert decide(around, NOON) == OfferUpgrade(("configure-descheduler",))

    def test_upgrade_ends_when_cluster_is_aligned_manually(self) -> None:
        aligned = (msgspec.structs.replace(PENDING, hash=PLANNED),)
        config = a_config(done(phase="CompletedWithUpgrade"), action="Apply")
        around = an_observation(
            config, version="v2", hashes=DRIFTED, logic=VersionChange(("configure-descheduler",), aligned)
        )
        assert decide(around, NOON) == AdoptVersion("ManuallyAligned", aligned)

    @pytest.mark.parametrize("phase", SETTLED)
    @pytest.mark.parametrize("logic", [VersionChange(), VersionChange(("configure-descheduler",))])
    @pytest.mark.parametrize(("bypass", "step"), [(False, MarkDrifted), (True, Enforce)])
    def test_upgrade_does_not_hide_drift(self, phase: str, logic: VersionChange, *, bypass: bool, step: type) -> None:
        config = a_config(done(phase=phase), action="Apply", bypass_optimistic_lock=bypass)
        around = an_observation(config, version="v2", logic=logic, hashes=DRIFTED)
        assert decide(around, NOON) == step(around.config.status.items)

    def test_upgrade_offer_ends_with_downgrade(self) -> None:
        config = a_config(done(phase="CompletedWithUpgrade"), action="Apply")
        assert decide(an_observation(config), NOON) == AdoptVersion("NoLogicChange", config.status.items)

    def test_upgrade_does_not_affect_execution(self) -> None:
        around = replace(executing(PENDING), version="v2", hashes={PENDING.name: BEFORE})
        assert decide(around, NOON) == ApplyItem(PENDING)
