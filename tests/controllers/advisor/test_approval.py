"""Under action Apply: which plans begin by themselves, and which are looked at first."""

from dataclasses import replace
from typing import Any

import pytest

from tests.controllers.advisor.builders import FIVE, NOON, PLAN, TEN, a_config, a_status, an_item, an_observation, done
from virt_steward.apis.profiles import LoadAwareOptions, ProfileOptions
from virt_steward.apis.virtplatformconfig import Input
from virt_steward.controllers.advisor.approval import rejected, step_for_new_plan
from virt_steward.controllers.advisor.decide import decide
from virt_steward.controllers.advisor.observation import AdvisorObservation, VersionChange
from virt_steward.controllers.advisor.steps import AwaitReview, Begin, NothingToDo, Redraft, Step

NODE = Input("parallelOutboundMigrationsPerNode", "2")
FASTER = ProfileOptions(load_aware=LoadAwareOptions(descheduling_interval_seconds=90))
APPROVED = {"approved-plan": PLAN, "approved-by": "ann"}
DRIFTED = {"configure-descheduler": "sha256:" + "3" * 64}
SETTLED = ("Completed", "CompletedWithErrors", "CompletedWithUpgrade", "Drifted")
HELD, BEGUN = "PlanChanged", "Begin"


def following(around: AdvisorObservation, plan: str = "c" * 64) -> Step:
    """The step, and if that is a new plan with something to be done, what that leads to."""
    step = decide(around, NOON)
    return step_for_new_plan(around, (an_item(),), plan, NOON) if isinstance(step, Redraft) else step


class TestForcedReview:
    """Inputs are not those of what was carried out last."""

    def forced(self, **config: Any) -> AdvisorObservation:
        status = a_status(inputs=TEN, applied_inputs=FIVE, plan_generation=3, observed_generation=3)
        return an_observation(a_config(status, **{"action": "Apply", "generation": 3, **config}), inputs=TEN)

    def test_forced_review_holds_under_apply(self) -> None:
        step = decide(self.forced(), NOON)
        assert isinstance(step, AwaitReview)
        assert step.reason == "InputChanged"
        assert "from 5 to 10" in step.message

    def test_forced_review_ends_with_later_generation(self) -> None:
        assert isinstance(decide(self.forced(generation=4), NOON), Begin)

    def test_forced_review_ends_with_approval(self) -> None:
        assert isinstance(decide(self.forced(notes=APPROVED), NOON), Begin)

    def test_forced_review_ignores_approval_of_other_plan(self) -> None:
        step = decide(self.forced(generation=4, notes={"approved-plan": "b" * 64}), NOON)
        assert isinstance(step, AwaitReview)

    def test_forced_review_of_rejected_plan_outlasts_later_generation(self) -> None:
        status = a_status(
            inputs=TEN, applied_inputs=FIVE, plan_generation=3, observed_generation=3, plan_action="Apply"
        )
        notes = {"rejected-plan": PLAN, "rejected-by": "ann"}
        step = decide(an_observation(a_config(status, action="Apply", generation=4, notes=notes), inputs=TEN), NOON)
        assert isinstance(step, AwaitReview)
        assert (step.reason, step.message) == ("Rejected", rejected("ann"))

    def test_forced_review_of_rejected_plan_ends_when_action_is_set_again(self) -> None:
        """By an approval, or by action Apply, set since it was made."""
        for notes in ({**APPROVED, "rejected-plan": PLAN}, {"rejected-plan": PLAN}):
            assert isinstance(decide(self.forced(generation=4, notes=notes), NOON), Begin)

    def test_forced_review_ends_when_inputs_are_restored(self) -> None:
        """The new plan then is empty."""
        assert isinstance(decide(replace(self.forced(), inputs=FIVE), NOON), Redraft)
        assert step_for_new_plan(self.forced(), (an_item(state="Completed"),), PLAN, NOON) == NothingToDo()

    @pytest.mark.parametrize(
        ("applied", "now"),
        [
            pytest.param(FIVE, (), id="is-no-longer-one"),
            pytest.param((), TEN, id="has-become-one"),
            pytest.param((*FIVE, NODE), FIVE, id="is-gone-and-the-others-are-the-same"),
        ],
    )
    def test_forced_review_is_not_needed_for_inputs_of_new_options(self, applied: Any, now: Any) -> None:
        status = done(applied_inputs=applied, inputs=applied, plan_action="Apply")
        config = a_config(status, action="Apply", generation=2, options=FASTER)
        assert isinstance(following(an_observation(config, inputs=now)), Begin)

    def test_forced_review_is_needed_for_changed_values(self) -> None:
        status = done(applied_inputs=(*FIVE, NODE), inputs=(*FIVE, NODE), plan_action="Apply")
        step = following(an_observation(a_config(status, action="Apply", generation=2, options=FASTER), inputs=TEN))
        assert isinstance(step, AwaitReview)
        assert (step.reason, step.message.partition(";")[0]) == (
            "InputChanged",
            "parallelMigrationsPerCluster changed from 5 to 10",
        )


class TestApplyAsksForOnePlan:
    """Under Apply, what somebody asked for begins; what came about otherwise is looked at first."""

    def outcome(self, phase: str | None, *, asked: str | None, around: dict[str, Any], **config: Any) -> str:
        """Of a spec in its second generation, where the plan before was for action `asked`."""
        status = done(phase=phase or "", plan_action=asked) if phase else None
        match following(an_observation(a_config(status, **{"action": "Apply", "generation": 2, **config}), **around)):
            case AwaitReview(reason):
                return reason
            case step:
                return type(step).__name__

    @pytest.mark.parametrize("phase", ["Failed", "CompletedWithErrors", "PrerequisiteFailed", "Pending", "Drafting"])
    def test_apply_is_not_renewed_by_other_edits(self, phase: str) -> None:
        assert self.outcome(phase, asked="Apply", around={}, wait_timeout="2h") == HELD

    @pytest.mark.parametrize(
        ("phase", "around", "step"),
        [
            ("Completed", {}, "Stay"),
            (
                "CompletedWithUpgrade",
                {"version": "v2", "logic": VersionChange(("configure-descheduler",))},
                "OfferUpgrade",
            ),
            ("Drifted", {"hashes": DRIFTED}, "MarkDrifted"),
        ],
    )
    def test_apply_keeps_drift_and_upgrades_on_view(self, phase: str, around: dict[str, Any], step: str) -> None:
        assert self.outcome(phase, asked="Apply", around=around, notify="ops") == step

    @pytest.mark.parametrize("phase", ["PrerequisiteFailed", "Pending", "Drafting"])
    def test_apply_is_not_renewed_when_prerequisites_return(self, phase: str) -> None:
        """The phase before may have been Drifted, CompletedWithUpgrade or Failed."""
        assert self.outcome(phase, asked="Apply", around={}, generation=1) == HELD

    @pytest.mark.parametrize("phase", [None, "PrerequisiteFailed", "Pending", "Drafting", "Ignored"])
    def test_apply_requests_first_plan(self, phase: str | None) -> None:
        assert self.outcome(phase, asked=None, around={}) == BEGUN

    @pytest.mark.parametrize("phase", [*SETTLED, "Failed", "PrerequisiteFailed", "InProgress"])
    @pytest.mark.parametrize("before", ["DryRun", "Rollback"])
    def test_apply_requests_plan_when_set_again(self, phase: str, before: str) -> None:
        expected = "Finish" if (phase, before) == ("InProgress", "DryRun") else BEGUN  # that is the plan asked for
        assert self.outcome(phase, asked=before, around={}) == expected

    @pytest.mark.parametrize("phase", [*SETTLED, "Failed", "PrerequisiteFailed", "InProgress", "ReviewRequired"])
    def test_apply_requests_plan_when_options_change(self, phase: str) -> None:
        assert self.outcome(phase, asked="Apply", around={}, options=FASTER) == BEGUN

    @pytest.mark.parametrize(
        ("plan", "around", "outcome"),
        [
            pytest.param(PLAN, {}, BEGUN, id="the-one-in-review"),
            pytest.param(PLAN, {"version": "v2"}, BEGUN, id="one-that-is-the-same"),
            pytest.param("b" * 64, {"version": "v2"}, HELD, id="not-that-of-another-version"),
            pytest.param("b" * 64, {"inputs": TEN}, HELD, id="not-that-of-other-inputs"),
        ],
    )
    def test_apply_in_review_requests_reviewed_plan(self, plan: str, around: dict[str, Any], outcome: str) -> None:
        config = a_config(a_status(), generation=2, action="Apply")
        step = following(an_observation(config, **around), plan)
        assert getattr(step, "reason", type(step).__name__) == outcome

    def test_apply_keeps_holding_plan_back(self) -> None:
        for generation in (1, 2):
            config = a_config(a_status(plan_action="Apply"), action="Apply", generation=generation)
            step = decide(an_observation(config), NOON)
            assert isinstance(step, AwaitReview)
            assert step.reason == HELD

    def test_approval_releases_plan_that_is_held_back(self) -> None:
        config = a_config(a_status(plan_action="Apply"), action="Apply", notes=APPROVED)
        assert isinstance(decide(an_observation(config), NOON), Begin)
