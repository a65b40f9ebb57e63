"""Whatever is seen, there is a step, the table knows it, and under DryRun or Ignore nothing is written."""

from dataclasses import replace
from datetime import timedelta

import msgspec
from hypothesis import HealthCheck, given, settings

from tests.controllers.advisor.builders import NOON
from tests.controllers.advisor.desk import true_phases
from tests.controllers.advisor.specimens import sights
from virt_steward.apis.virtplatformconfig import ProfileOptions
from virt_steward.controllers.advisor.approval import step_for_new_plan
from virt_steward.controllers.advisor.decide import decide
from virt_steward.controllers.advisor.observation import AdvisorObservation
from virt_steward.controllers.advisor.phases import STARTING
from virt_steward.controllers.advisor.report import next_status, with_plan
from virt_steward.controllers.advisor.steps import (
    ApplyItem,
    AwaitItem,
    AwaitReview,
    AwaitWindow,
    Begin,
    Enforce,
    Ignore,
    LackPrerequisites,
    MarkDrifted,
    OfferUpgrade,
    Redraft,
    Settle,
    Stay,
)

RESTING = (Ignore, LackPrerequisites, AwaitReview, AwaitWindow, MarkDrifted, OfferUpgrade, Stay)


def is_unasked(seen: AdvisorObservation) -> bool:
    """Whether nothing has happened since the last plan by which anybody could have asked for another."""
    config, status = seen.config, seen.config.status
    is_same = config.options == (status.applied_options or ProfileOptions())
    return is_same and config.spec.action == status.plan_action and config.approved_plan != "c" * 64


def check(seen: AdvisorObservation) -> None:
    step = decide(seen, NOON)
    status = seen.config.status
    if seen.config.spec.action in ("DryRun", "Ignore"):
        assert not isinstance(step, ApplyItem | Begin | Enforce)
    if isinstance(step, Settle) and status.phase not in STARTING:
        return  # nothing is said then
    if isinstance(step, Redraft):
        status = with_plan(seen, status.items, "c" * 64)
        step = step_for_new_plan(seen, status.items, "c" * 64, NOON)
        assert not (isinstance(step, Begin) and seen.config.spec.action not in ("Apply", "Rollback"))
        assert not (isinstance(step, Begin) and is_unasked(seen))
    if isinstance(step, ApplyItem):
        assert seen.config.spec.action in ("Apply", "Rollback")
        step = AwaitItem(step.item, "written", None)
    said = next_status(seen, status, step, NOON)
    assert said.phase is not None
    if said.conditions != status.conditions:
        assert true_phases(said) == [said.phase]
    if isinstance(step, RESTING):
        again = replace(seen, config=msgspec.structs.replace(seen.config, status=said))
        assert next_status(again, said, step, NOON + timedelta(minutes=1)) == said  # so that it is written once


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(sights())
def test_whatever_is_seen_there_is_a_legal_step(seen: AdvisorObservation) -> None:
    check(seen)
