"""Transitions between phases: every step in every phase either leads somewhere or is refused."""

import pytest

from tests.controllers.advisor.builders import NOON, PLAN, an_item
from virt_steward.apis.virtplatformconfig import PlanApproval
from virt_steward.controllers.advisor import steps
from virt_steward.controllers.advisor.phases import PHASES, SETTLED, STARTING, IllegalTransition, transition
from virt_steward.controllers.advisor.steps import (
    Abort,
    AdoptVersion,
    AwaitEnforcement,
    AwaitFreeze,
    AwaitGates,
    AwaitItem,
    AwaitReview,
    AwaitWindow,
    Begin,
    CompleteItem,
    Enforce,
    FailItem,
    FailStale,
    FailTampered,
    Finish,
    Ignore,
    KeepFailed,
    LackPrerequisites,
    MarkDrifted,
    NothingToDo,
    OfferPlan,
    OfferUpgrade,
    RecordOverride,
    Recover,
    RedraftLater,
    RejectPlan,
    RestoreStatus,
    Settle,
    StatusStep,
    Stay,
)

ITEM = an_item()
ANYWHERE = {None, *PHASES}
TABLE = (
    # step, the phases in which it is allowed, the phase that it leads to
    (Ignore(), ANYWHERE, "Ignored"),
    (Settle("starting"), STARTING, "Pending"),
    (LackPrerequisites(("it",)), ANYWHERE, "PrerequisiteFailed"),
    (RedraftLater("it changed"), ANYWHERE, "Drafting"),
    (RejectPlan("it", "forbidden"), ANYWHERE, "Failed"),
    (NothingToDo(), ANYWHERE, "Completed"),
    (AwaitReview("PlanReady", ""), ANYWHERE, "ReviewRequired"),
    (AwaitEnforcement("ApprovalsNotEnforced", ""), ANYWHERE, "ReviewRequired"),
    (Begin(PlanApproval(PLAN, NOON)), ANYWHERE, "InProgress"),
    (FailTampered("phase"), ANYWHERE, "Failed"),
    (FailStale("it changed"), {"ReviewRequired", "InProgress"}, "Failed"),
    (AwaitWindow("WindowClosed", "", None), {"InProgress"}, "InProgress"),
    (AwaitFreeze("Frozen", "", None), {"InProgress"}, "InProgress"),
    (AwaitGates("GateClosed", "", None), {"InProgress"}, "InProgress"),
    (RecordOverride("ann", "urgent"), {"InProgress"}, "InProgress"),
    (AwaitItem(ITEM, "", None), {"InProgress"}, "InProgress"),
    (CompleteItem(ITEM, ""), {"InProgress"}, "InProgress"),
    (FailItem(ITEM, ""), {"InProgress"}, "InProgress"),
    (Abort(ITEM, ""), {"InProgress"}, "Failed"),
    (Finish(), {"InProgress"}, "Completed"),
    (Finish(("a",)), {"InProgress"}, "CompletedWithErrors"),
    (MarkDrifted((ITEM,)), SETTLED, "Drifted"),
    (Recover(with_errors=False), {"Drifted"}, "Completed"),
    (Recover(with_errors=True), {"Drifted"}, "CompletedWithErrors"),
    (Enforce((ITEM,)), SETTLED, "InProgress"),
    (OfferUpgrade(("a",)), SETTLED, "CompletedWithUpgrade"),
    (OfferPlan(), SETTLED, "CompletedWithUpgrade"),
    (KeepFailed("another version"), {"Failed"}, "Failed"),
)


@pytest.mark.parametrize(("step", "allowed", "after"), TABLE, ids=lambda value: type(value).__name__)
def test_step_leads_to_its_phase_or_is_illegal(step: StatusStep, allowed: set[str | None], after: str) -> None:
    for phase in ANYWHERE:
        if phase in allowed:
            assert transition(phase, step) == after  # type: ignore[arg-type]
        else:
            with pytest.raises(IllegalTransition, match=f"{type(step).__name__} is not allowed in phase {phase}"):
                transition(phase, step)  # type: ignore[arg-type]


def test_adopted_version_keeps_errors() -> None:
    step = AdoptVersion("NoLogicChange", ())
    after = {phase: transition(phase, step) for phase in SETTLED}
    assert after == dict.fromkeys(SETTLED, "Completed") | {"CompletedWithErrors": "CompletedWithErrors"}
    for phase in ANYWHERE - SETTLED:
        with pytest.raises(IllegalTransition):
            transition(phase, step)  # type: ignore[arg-type]


@pytest.mark.parametrize("step", [Stay(), RestoreStatus("it was changed")])
def test_stay_keeps_every_phase(step: StatusStep) -> None:
    assert [transition(phase, step) for phase in PHASES] == list(PHASES)
    with pytest.raises(IllegalTransition):
        transition(None, step)


def test_every_phase_can_be_reached() -> None:
    assert {after for _, _, after in TABLE} == set(PHASES)


def test_every_step_is_in_the_table() -> None:
    found = (getattr(steps, name) for name in steps.__all__)
    known = {one for one in found if isinstance(one, type) and issubclass(one, StatusStep)} - {StatusStep}
    assert known == {type(step) for step, _, _ in TABLE} | {AdoptVersion, RestoreStatus, Stay}
