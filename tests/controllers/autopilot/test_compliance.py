"""When the platform as a whole gets to where it should be: told once, and not of every pass."""

from datetime import UTC, datetime, timedelta

import pytest

from virt_steward.controllers.autopilot.compliance import Compliance, ComplianceReached
from virt_steward.controllers.autopilot.verdicts import (
    AssetApplied,
    AssetDiffers,
    AssetFailed,
    AssetInSync,
    AssetPending,
    AssetSkipped,
    EditWar,
    FailureReason,
    PendingReason,
    SkipReason,
    Verdict,
)
from virt_steward.ssa.drift_entries import FieldDrift

DRIFT = FieldDrift("/spec/size", ("editor",))
CREATED = AssetApplied(created=True, adopted=False, drifts=(), uid="1", digest="")
ADOPTED = AssetApplied(created=False, adopted=True, drifts=(DRIFT,), uid="1", digest="2")
CORRECTED = AssetApplied(created=False, adopted=False, drifts=(DRIFT,), uid="1", digest="2")
UNASKED = AssetSkipped(SkipReason.CONDITIONS, "nobody asked for it")
NOT_KNOWN = AssetSkipped(SkipReason.INPUTS_UNKNOWN, "the nodes have not been read")
REFUSED = AssetFailed(FailureReason.APPLY, "a webhook says no")
NO_OPERATOR = AssetPending(PendingReason.NO_NAMESPACE, "its namespace does not exist")
NOON = datetime(2030, 1, 1, 12, tzinfo=UTC)


def at(number: int) -> datetime:
    """When a pass was."""
    return NOON + timedelta(minutes=5 * number)


def after(*passes: tuple[Verdict, Verdict]) -> list[ComplianceReached | None]:
    """What is told at the end of each pass over two assets, before which nothing was."""
    compliance = Compliance(("first", "second"))
    told = []
    for number, (first, second) in enumerate(passes):
        compliance.start_pass()
        assert compliance.record("first", first, at(number)) is None, "the other one was not looked at yet"
        told.append(compliance.record("second", second, at(number)))
    return told


@pytest.mark.parametrize(
    ("verdicts", "in_place"),
    [
        pytest.param((CREATED, CREATED), 2, id="made"),
        pytest.param((AssetInSync(), CREATED), 2, id="made-now-or-before"),
        pytest.param((ADOPTED, AssetInSync()), 2, id="taken-over"),
        pytest.param((CREATED, UNASKED), 1, id="made-or-not-asked-for"),
        pytest.param((CREATED, NO_OPERATOR), 1, id="made-or-of-an-operator-that-is-not-there"),
    ],
)
def test_compliance_is_reached_once_all_assets_are_in_sync(verdicts: tuple[Verdict, Verdict], in_place: int) -> None:
    again = (AssetInSync(), AssetInSync())
    assert after(verdicts, again, again) == [ComplianceReached(in_place, 2, at(0))] * 3, (
        "the same for as long as it lasts"
    )


@pytest.mark.parametrize(
    "trouble",
    [
        pytest.param(REFUSED, id="fails"),
        pytest.param(AssetDiffers((), is_paused=False), id="differs"),
        pytest.param(EditWar("it was throttled 3 times in a row"), id="is-fought-over"),
        pytest.param(AssetPending(PendingReason.THROTTLED, "too often", 1.0), id="is-throttled"),
        pytest.param(
            AssetPending(PendingReason.HCO_FIRST, "the HyperConverged fails"), id="waits-for-the-HyperConverged"
        ),
        pytest.param(AssetPending(PendingReason.EXCLUSIONS_UNREADABLE, "no YAML"), id="may-not-be-written"),
    ],
)
def test_compliance_is_not_reached_with_an_unsettled_asset(trouble: Verdict) -> None:
    well, ill = (AssetInSync(), AssetInSync()), (AssetInSync(), trouble)
    assert after(ill, ill, well, well) == [None, None, ComplianceReached(2, 2, at(2)), ComplianceReached(2, 2, at(2))]


def test_compliance_ignores_unknown_assets() -> None:
    well, unknown = (AssetInSync(), AssetInSync()), (AssetInSync(), NOT_KNOWN)
    assert after((CREATED, NOT_KNOWN), unknown, well) == [None, None, ComplianceReached(2, 2, at(2))]
    assert after(unknown, well) == [None, None]


def test_compliance_is_reached_again_after_new_work() -> None:
    well, ill = (AssetInSync(), AssetInSync()), (AssetInSync(), REFUSED)
    assert after(ill, well, ill, well) == [None, ComplianceReached(2, 2, at(1)), None, ComplianceReached(2, 2, at(3))]


@pytest.mark.parametrize(
    "verdict",
    [
        pytest.param(AssetInSync(), id="what-is-found-in-order"),
        pytest.param(CORRECTED, id="a-drift-that-is-set-right-at-once"),
        pytest.param(UNASKED, id="what-nobody-asks-for"),
    ],
)
def test_compliance_reports_nothing_without_work(verdict: Verdict) -> None:
    assert after((AssetInSync(), verdict), (AssetInSync(), verdict)) == [None, None]


def test_compliance_waits_for_stale_assets() -> None:
    compliance = Compliance(("one",))
    assert compliance.record("one", AssetPending(PendingReason.STALE, "it has just changed", 0.2), NOON) is None
    assert compliance.record("one", AssetInSync(), NOON) is None
    assert compliance.record("one", CREATED, NOON) == ComplianceReached(1, 1, NOON)


def test_compliance_reset_forgets_everything() -> None:
    compliance = Compliance(("one",))
    compliance.record("one", REFUSED, NOON)
    compliance.reset()
    assert compliance.record("one", AssetInSync(), NOON) is None
    assert compliance.record("one", CREATED, NOON)
    compliance.reset()
    assert compliance.record("one", AssetInSync(), NOON) is None
