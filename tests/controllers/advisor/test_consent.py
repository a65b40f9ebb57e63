"""Under action Apply: which plans begin by themselves, and which are looked at first."""

from dataclasses import replace
from typing import Any

import pytest

from tests.controllers.advisor.builders import FIVE, NOON, PLAN, TEN, a_config, a_status, an_item, an_observation, done
from virt_steward.apis.virtplatformconfig import Input, LoadAwareOptions, ProfileOptions
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

    def test_holds_even_under_apply(self) -> None:
        step = decide(self.forced(), NOON)
        assert isinstance(step, AwaitReview)
        assert step.reason == "InputChanged"
        assert "from 5 to 10" in step.message

    def test_is_acknowledged_by_a_later_generation(self) -> None:
        assert isinstance(decide(self.forced(generation=4), NOON), Begin)

    def test_is_acknowledged_by_an_approval_of_the_plan(self) -> None:
        assert isinstance(decide(self.forced(notes=APPROVED), NOON), Begin)

    def test_is_not_acknowledged_by_an_approval_of_another_plan(self) -> None:
        step = decide(self.forced(generation=4, notes={"approved-plan": "b" * 64}), NOON)
        assert isinstance(step, AwaitReview)

    def test_is_not_over_by_a_later_generation_if_the_plan_was_rejected(self) -> None:
        status = a_status(
            inputs=TEN, applied_inputs=FIVE, plan_generation=3, observed_generation=3, plan_action="Apply"
        )
        notes = {"rejected-plan": PLAN, "rejected-by": "ann"}
        step = decide(an_observation(a_config(status, action="Apply", generation=4, notes=notes), inputs=TEN), NOON)
        assert isinstance(step, AwaitReview)
        assert (step.reason, step.message) == ("Rejected", rejected("ann"))

    def test_of_a_rejected_plan_is_over_once_somebody_asks_for_it_after_all(self) -> None:
        """By an approval, or by action Apply, set since it was made."""
        for notes in ({**APPROVED, "rejected-plan": PLAN}, {"rejected-plan": PLAN}):
            assert isinstance(decide(self.forced(generation=4, notes=notes), NOON), Begin)

    def test_is_over_when_the_inputs_come_back(self) -> None:
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
    def test_is_not_for_options_by_which_an_input(self, applied: Any, now: Any) -> None:
        status = done(applied_inputs=applied, inputs=applied, plan_action="Apply")
        config = a_config(status, action="Apply", generation=2, options=FASTER)
        assert isinstance(following(an_observation(config, inputs=now)), Begin)

    def test_is_for_other_values_whatever_else_the_options_bring(self) -> None:
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
    def test_so_another_edit_is_no_consent_in(self, phase: str) -> None:
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
    def test_and_what_is_on_view_stays_there_in(self, phase: str, around: dict[str, Any], step: str) -> None:
        assert self.outcome(phase, asked="Apply", around=around, notify="ops") == step

    @pytest.mark.parametrize("phase", ["PrerequisiteFailed", "Pending", "Drafting"])
    def test_so_what_was_missing_and_is_back_is_no_consent_in(self, phase: str) -> None:
        """The phase before may have been Drifted, CompletedWithUpgrade or Failed."""
        assert self.outcome(phase, asked="Apply", around={}, generation=1) == HELD

    @pytest.mark.parametrize("phase", [None, "PrerequisiteFailed", "Pending", "Drafting", "Ignored"])
    def test_and_waits_for_it_where_there_was_none_in(self, phase: str | None) -> None:
        assert self.outcome(phase, asked=None, around={}) == BEGUN

    @pytest.mark.parametrize("phase", [*SETTLED, "Failed", "PrerequisiteFailed", "InProgress"])
    @pytest.mark.parametrize("before", ["DryRun", "Rollback"])
    def test_when_it_is_set_anew_in(self, phase: str, before: str) -> None:
        expected = "Finish" if (phase, before) == ("InProgress", "DryRun") else BEGUN  # that is the plan asked for
        assert self.outcome(phase, asked=before, around={}) == expected

    @pytest.mark.parametrize("phase", [*SETTLED, "Failed", "PrerequisiteFailed", "InProgress", "ReviewRequired"])
    def test_when_its_options_change_in(self, phase: str) -> None:
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
    def test_when_set_in_a_review_it_means(self, plan: str, around: dict[str, Any], outcome: str) -> None:
        config = a_config(a_status(), generation=2, action="Apply")
        step = following(an_observation(config, **around), plan)
        assert getattr(step, "reason", type(step).__name__) == outcome

    def test_and_what_is_held_back_stays_so(self) -> None:
        for generation in (1, 2):
            config = a_config(a_status(plan_action="Apply"), action="Apply", generation=generation)
            step = decide(an_observation(config), NOON)
            assert isinstance(step, AwaitReview)
            assert step.reason == HELD

    def test_and_an_approval_lets_go_what_is_held_back(self) -> None:
        config = a_config(a_status(plan_action="Apply"), action="Apply", notes=APPROVED)
        assert isinstance(decide(an_observation(config), NOON), Begin)
