"""Generated observations: each has a legal step, and under DryRun or Ignore nothing is written."""

from dataclasses import replace
from datetime import timedelta

import msgspec
from hypothesis import HealthCheck, given, settings

from tests.controllers.advisor.builders import NOON
from tests.controllers.advisor.rig import true_phases
from tests.controllers.advisor.specimens import observations
from virt_steward.apis.profiles import ProfileOptions
from virt_steward.controllers.advisor.approval import step_for_new_plan
from virt_steward.controllers.advisor.decide import decide
from virt_steward.controllers.advisor.observation import AdvisorObservation
from virt_steward.controllers.advisor.phases import STARTING
from virt_steward.controllers.advisor.report import next_status, with_plan
from virt_steward.controllers.advisor.steps import (
    ApplyItem,
    AwaitFreeze,
    AwaitItem,
    AwaitReview,
    AwaitWindow,
    Begin,
    Enforce,
    EvaluateGates,
    Ignore,
    LackPrerequisites,
    MarkDrifted,
    OfferUpgrade,
    Redraft,
    Settle,
    Stay,
)
from virt_steward.holds.freezes import Frozen

RESTING = (Ignore, LackPrerequisites, AwaitReview, AwaitFreeze, AwaitWindow, MarkDrifted, OfferUpgrade, Stay)


def is_not_requested(observation: AdvisorObservation) -> bool:
    """Whether nothing has happened since the last plan by which anybody could have asked for another."""
    config, status = observation.config, observation.config.status
    is_same = config.options == (status.applied_options or ProfileOptions())
    return is_same and config.spec.action == status.plan_action and config.approved_plan != "c" * 64


def check(observation: AdvisorObservation) -> None:
    step = decide(observation, NOON)
    status = observation.config.status
    if observation.config.spec.action in ("DryRun", "Ignore"):
        assert not isinstance(step, ApplyItem | Begin | Enforce)
    if isinstance(step, Begin) and observation.config.spec.approvals:
        assert observation.config.spec.approvals.required == len(step.approval.approvers) == 1
    if isinstance(step, Settle) and status.phase not in STARTING:
        return  # nothing is said then
    if isinstance(step, Redraft):
        status = with_plan(observation, status.items, "c" * 64)
        step = step_for_new_plan(observation, status.items, "c" * 64, NOON)
        assert not (isinstance(step, Begin) and observation.config.spec.action not in ("Apply", "Rollback"))
        assert not (isinstance(step, Begin) and is_not_requested(observation))
    if isinstance(step, EvaluateGates):
        return  # nothing is said before they have answered
    if isinstance(step, ApplyItem):
        assert observation.config.spec.action in ("Apply", "Rollback")
        assert not isinstance(observation.freeze, Frozen) or observation.config.overrides_freeze
        assert all(observation.gates[name].is_open for name in observation.gates_wanted)
        step = AwaitItem(step.item, "written", None)
    after = next_status(observation, status, step, NOON)
    assert after.phase is not None
    if after.conditions != status.conditions:
        assert true_phases(after) == [after.phase]
    if isinstance(step, RESTING):
        again = replace(observation, config=msgspec.structs.replace(observation.config, status=after))
        assert next_status(again, after, step, NOON + timedelta(minutes=1)) == after  # so that it is written once


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(observations())
def test_every_observation_has_a_legal_step(observation: AdvisorObservation) -> None:
    check(observation)
