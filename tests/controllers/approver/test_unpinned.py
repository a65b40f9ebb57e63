"""Versions that a policy approves without a pin: inside its ranges, and on the way to a pin."""

from typing import Any

import pytest

from tests.controllers.approver.builders import (
    CACHE,
    CACHE2,
    NOON,
    REMEDY,
    a_csv,
    a_plan,
    a_subscription,
    an_approver,
    seen,
)
from virt_steward.apis.installplanapprover import VersionRange
from virt_steward.controllers.approver.decide import cases_of, decide, trace
from virt_steward.controllers.approver.observation import ApproverObservation
from virt_steward.controllers.approver.olm import CsvMeta, InstalledCsv
from virt_steward.controllers.approver.verdicts import ApprovePlan, PlanReason, WaitForPlan

FOLLOW = {"within_range": True, "versions": (VersionRange("db", "~1.4"),)}
STEPS = {"allow_intermediate": True}
OLD, NEXT, PIN, BEYOND = "db.v1.4.0", "db.v1.4.1", "db.v1.5.0", "db.v1.6.0"


def result(around: ApproverObservation, policy: dict[str, Any] | None) -> PlanReason | None:
    """The reason of the only approver to wait; None if it approves. A message says what to do."""
    [one] = decide(under(around, policy), NOON).verdicts
    if isinstance(one.verdict, ApprovePlan):
        return None
    assert isinstance(one.verdict, WaitForPlan)
    assert REMEDY.search(one.verdict.message)
    return one.verdict.reason


def under(around: ApproverObservation, policy: dict[str, Any] | None) -> ApproverObservation:
    approvers = [an_approver(policy=policy)]
    return seen(around.plan, *around.subscriptions, installed=around.installed, approvers=approvers)


def offered(csv: str, *, installed: str = "", pin: str = "", bundle: str = "") -> ApproverObservation:
    plan = a_plan(csv, versions={csv: bundle} if bundle else None)
    return seen(plan, a_subscription(pin=pin, current=csv, installed=installed))


@pytest.mark.parametrize(
    ("around", "expected"),
    [
        pytest.param(offered(NEXT, installed=OLD, pin=OLD), None, id="a z-stream"),
        pytest.param(offered(NEXT, installed=OLD), None, id="without a pin"),
        pytest.param(offered(OLD), None, id="a first installation"),
        pytest.param(offered(NEXT, installed=OLD, pin=BEYOND), None, id="short of the pin"),
        pytest.param(offered(PIN, installed=OLD, pin=OLD), PlanReason.VERSION_OUT_OF_RANGE, id="out of range"),
        pytest.param(offered(PIN, installed=OLD, pin=PIN), PlanReason.VERSION_OUT_OF_RANGE, id="a pin out of range"),
        pytest.param(offered(OLD, installed=NEXT), PlanReason.NOT_AN_UPGRADE, id="a downgrade"),
        pytest.param(offered(OLD, installed=NEXT, pin=OLD), None, id="a downgrade that is pinned"),
        pytest.param(offered("db.v1.4.1-rc.1", installed=OLD), PlanReason.VERSION_OUT_OF_RANGE, id="a pre-release"),
        pytest.param(offered("db.latest", installed=OLD), PlanReason.VERSION_OUT_OF_RANGE, id="no version"),
        pytest.param(offered(NEXT, installed="db.latest"), PlanReason.NOT_AN_UPGRADE, id="from no version"),
        pytest.param(
            offered("db.v1.4.1.9", installed=OLD), PlanReason.VERSION_OUT_OF_RANGE, id="four numbers are no version"
        ),
        pytest.param(
            offered(f"db.v1.4.{'9' * 300}", installed=OLD), PlanReason.VERSION_OUT_OF_RANGE, id="too long to be read"
        ),
        pytest.param(
            offered("db.v1.4.1", installed=OLD, bundle="9.0.0"), PlanReason.VERSION_OUT_OF_RANGE, id="a name that lies"
        ),
    ],
)
def test_within_range_approves_upgrades_inside_range(around: ApproverObservation, expected: PlanReason | None) -> None:
    assert result(around, FOLLOW) == expected


@pytest.mark.parametrize(
    ("around", "expected"),
    [
        pytest.param(offered(NEXT, installed=OLD, pin=PIN), None, id="between installed and pinned"),
        pytest.param(offered(PIN, installed=OLD, pin=PIN), None, id="the pin"),
        pytest.param(offered("db.v1.5.0-rc.1", installed=OLD, pin=PIN), None, id="a pre-release of the pin"),
        pytest.param(offered(BEYOND, installed=OLD, pin=PIN), PlanReason.PIN_NOT_OFFERED, id="beyond the pin"),
        pytest.param(offered(NEXT, installed=OLD, pin=OLD), PlanReason.NOT_PINNED, id="the pin is installed"),
        pytest.param(offered(NEXT, installed=OLD), PlanReason.NOT_PINNED, id="no pin"),
        pytest.param(offered(NEXT, pin=PIN), PlanReason.PIN_NOT_OFFERED, id="nothing installed"),
        pytest.param(offered(OLD, installed=NEXT, pin=PIN), PlanReason.INTERMEDIATE_VERSION, id="a downgrade"),
        pytest.param(offered("db.latest", installed=OLD, pin=PIN), PlanReason.PIN_NOT_OFFERED, id="no version"),
        pytest.param(offered(NEXT, installed=OLD, pin="db.latest"), PlanReason.PIN_NOT_OFFERED, id="an odd pin"),
        pytest.param(
            offered(NEXT, installed="db.latest", pin=PIN), PlanReason.INTERMEDIATE_VERSION, id="from no version"
        ),
        pytest.param(
            offered(NEXT, installed=OLD, pin=PIN, bundle="9.0.0"),
            PlanReason.INTERMEDIATE_VERSION,
            id="a name that lies",
        ),
        pytest.param(
            offered("db.v1.4.0-0.2.p", installed="db.v1.4.0-0.1.p", pin="db.v1.4.0-0.3.p", bundle="1.4.0+0.2.p"),
            None,
            id="a rebuild",
        ),
    ],
)
def test_allow_intermediate_approves_versions_before_pin(
    around: ApproverObservation, expected: PlanReason | None
) -> None:
    assert result(around, STEPS) == expected


def test_nothing_changes_unless_options_are_set() -> None:
    assert result(offered(NEXT, installed=OLD, pin=OLD), {"versions": FOLLOW["versions"]}) == PlanReason.NOT_PINNED
    assert result(offered(NEXT, installed=OLD, pin=PIN), {}) == PlanReason.INTERMEDIATE_VERSION


def test_within_range_needs_versions() -> None:
    around = offered(NEXT, installed=OLD, pin=NEXT)
    assert result(around, {"within_range": True}) == PlanReason.BAD_POLICY


def test_range_narrows_intermediate_versions() -> None:
    policy = {**STEPS, "versions": (VersionRange("db", ">=1.5"),)}
    assert result(offered(NEXT, installed=OLD, pin=PIN), policy) == PlanReason.VERSION_OUT_OF_RANGE


def test_allow_intermediate_stays_before_every_pin() -> None:
    pins = a_subscription(pin=PIN, current=NEXT, installed=OLD), a_subscription(name="other", pin=OLD, current=NEXT)
    assert result(seen(a_plan(NEXT), *pins), STEPS) is not None


@pytest.mark.parametrize("policy", [FOLLOW, STEPS])
def test_every_csv_of_plan_must_be_wanted(policy: dict[str, Any]) -> None:
    ours = a_subscription(pin=PIN, current=NEXT, installed=OLD)
    other = a_subscription("cache", pin=CACHE, current=CACHE2, installed=CACHE)
    assert result(seen(a_plan(NEXT, CACHE2), ours, other), policy) == PlanReason.RIDES_ALONG
    both = {**policy, "within_range": True, "versions": (VersionRange("db", "1.x"), VersionRange("cache", "<=2"))}
    assert result(seen(a_plan(NEXT, CACHE2), ours, other), both) is None


@pytest.mark.parametrize("policy", [FOLLOW, STEPS])
def test_other_checks_hold_for_unpinned_versions(policy: dict[str, Any]) -> None:
    around = offered(NEXT, installed=OLD, pin=PIN)
    gone = seen(a_plan(NEXT), a_subscription(pin=PIN, current=PIN, installed=OLD))
    assert result(gone, policy) == PlanReason.SUPERSEDED
    assert result(around, {**policy, "first_install_only": True}) == PlanReason.NOT_FIRST_INSTALL
    started = seen(a_plan(NEXT, phase="Installing"), *around.subscriptions)
    [one] = decide(under(started, policy), NOON).verdicts
    assert one.verdict.reason == PlanReason.NOT_WAITING


def test_within_range_covers_dependencies_of_olm() -> None:
    generated = a_subscription("cache", pin=CACHE, current=CACHE2, installed=CACHE, generated=True)
    assert (
        result(seen(a_plan(CACHE2), generated), {"within_range": True, "versions": (VersionRange("cache", "*"),)})
        is None
    )
    assert result(seen(a_plan(CACHE2), generated), STEPS) == PlanReason.NOT_PINNED


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        pytest.param(("db.v1.4.0", "1.4.0"), ("db.v1.4.0-0.5.p", "1.4.0+0.5.p"), None, id="the first rebuild"),
        pytest.param(("db.v1.4.0-0.5.p", "1.4.0+0.5.p"), ("db.v1.4.0-0.10.p", "1.4.0+0.10.p"), None, id="the next"),
        pytest.param(
            ("db.v1.4.0-0.10.p", "1.4.0+0.10.p"),
            ("db.v1.4.0-0.5.p", "1.4.0+0.5.p"),
            PlanReason.NOT_AN_UPGRADE,
            id="back to the one before",
        ),
        pytest.param(
            ("db.v1.4.0-0.10.p", ""),
            ("db.v1.4.0-0.5.p", "1.4.0+0.5.p"),
            PlanReason.NOT_AN_UPGRADE,
            id="back, with the bundle unknown",
        ),
        pytest.param(
            ("db.v1.4.0", "1.4.5"), ("db.v1.4.2", "1.4.2"), PlanReason.NOT_AN_UPGRADE, id="an old name of a new bundle"
        ),
    ],
)
def test_within_range_orders_rebuilds(
    before: tuple[str, str], after: tuple[str, str], expected: PlanReason | None
) -> None:
    csv = InstalledCsv(CsvMeta(before[0], "shop", "uid", "1"), package="db", version=before[1])
    plan = a_plan(after[0], versions={after[0]: after[1]})
    around = seen(plan, a_subscription(current=after[0], installed=before[0]), installed=[csv])
    assert result(around, FOLLOW) == expected


def test_within_range_compares_with_csvs_that_no_subscription_names() -> None:
    newer = a_csv("db.v1.4.9", mark="db.shop")
    assert (
        result(seen(a_plan(NEXT), a_subscription(current=NEXT), installed=[newer]), FOLLOW) == PlanReason.NOT_AN_UPGRADE
    )


def test_explanation_says_which_option_allows_csv() -> None:
    around = offered(NEXT, installed=OLD, pin=PIN)
    for policy, reason in (
        (FOLLOW, f"{NEXT} is in the range ~1.4 of the policy, which has withinRange"),
        (STEPS, f"{NEXT} is on the way from {OLD} to {PIN}, which is pinned"),
    ):
        [case] = cases_of(under(around, policy), NOON)
        [check] = [one for one in trace(case) if one.title == "Every CSV is pinned or allowed by the policy"]
        assert (check.result, check.reason) == ("pass", reason)
        [one] = decide(under(around, policy), NOON).verdicts
        assert one.verdict == ApprovePlan(reason)
