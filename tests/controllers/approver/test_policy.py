"""The conditions that an approver adds: ranges, first installations, age and windows. They only ever narrow."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest

from tests.controllers.approver.builders import (
    CACHE,
    NOON,
    REMEDY,
    V1,
    V2,
    a_csv,
    a_pinned_install,
    a_plan,
    a_subscription,
    an_approver,
    seen,
    verdict,
)
from virt_steward.apis.installplanapprover import Policy, VersionRange
from virt_steward.apis.meta import RequiredApprovals, WindowSpec
from virt_steward.controllers.approver.decide import decide
from virt_steward.controllers.approver.observation import ApproverObservation
from virt_steward.controllers.approver.policy import policy_fault
from virt_steward.controllers.approver.verdicts import ApprovePlan, PlanReason, Verdict, WaitForPlan


def under(policy: dict[str, Any], around: ApproverObservation | None = None, now: datetime = NOON) -> Verdict:
    given = around or a_pinned_install()
    return verdict(
        seen(given.plan, *given.subscriptions, installed=given.installed, approvers=[an_approver(policy=policy)]), now
    )


def an_upgrade() -> ApproverObservation:
    return seen(a_plan(V2), a_subscription(pin=V2, current=V2, installed=V1))


def refusal(found: Verdict) -> PlanReason:
    """Why it waits; and the sentence says what to do, unless time does it."""
    assert isinstance(found, WaitForPlan)
    assert found.until or REMEDY.search(found.message)
    return found.reason


@pytest.mark.parametrize(
    "range_",
    ["1.0.0", ">=1.0.0 <2.0.0", "^1", "~1.0", "1.x", "2.x || 1.x"],
)
def test_a_version_is_approved_within(range_: str) -> None:
    assert isinstance(under({"versions": (VersionRange("db", range_),)}), ApprovePlan)


@pytest.mark.parametrize("range_", [">1.0.0", "^2", "<1.0.0", "!=1.0.0"])
def test_a_version_waits_beyond(range_: str) -> None:
    assert refusal(under({"versions": (VersionRange("db", range_),)})) == PlanReason.VERSION_OUT_OF_RANGE


def test_a_rebuild_that_is_named_like_a_pre_release_counts_by_the_version_of_its_bundle() -> None:
    csv = "db.v1.2.3-0.1634.p"
    policy = {"versions": (VersionRange("db", ">=1.2.0 <2.0.0"),)}
    subscription = a_subscription(pin=csv, current=csv)
    assert refusal(under(policy, seen(a_plan(csv), subscription))) == PlanReason.VERSION_OUT_OF_RANGE
    rebuilt = a_plan(csv, versions={csv: "1.2.3+0.1634.p"})
    assert isinstance(under(policy, seen(rebuilt, subscription)), ApprovePlan)


def test_a_range_is_for_one_package_by_its_whole_name() -> None:
    others = (VersionRange("d", "^9"), VersionRange("db-extras", "^9"), VersionRange(V1, "^9"))
    assert isinstance(under({"versions": others}), ApprovePlan)


def test_a_range_never_widens_what_is_pinned() -> None:
    waiting = seen(a_plan(V2), a_subscription(pin=V1, current=V2, installed=V1))
    assert refusal(under({"versions": (VersionRange("db", "*"),)}, waiting)) == PlanReason.NOT_PINNED


def test_a_range_narrows_dependencies_too() -> None:
    combined = seen(a_plan(V1, CACHE, brings=["cache"]), a_subscription(pin=V1, current=V1))
    assert refusal(under({"versions": (VersionRange("cache", "^2"),)}, combined)) == PlanReason.VERSION_OUT_OF_RANGE


def test_a_name_without_version_is_in_no_range() -> None:
    unversioned = seen(a_plan("db.latest"), a_subscription(pin="db.latest", current="db.latest"))
    assert refusal(under({"versions": (VersionRange("db", "*"),)}, unversioned)) == PlanReason.VERSION_OUT_OF_RANGE


def test_only_first_installs_are_approved_where_the_policy_says_so() -> None:
    assert isinstance(under({"first_install_only": True}), ApprovePlan)
    assert isinstance(under({"first_install_only": False}, an_upgrade()), ApprovePlan)
    found = under({"first_install_only": True}, an_upgrade())
    assert refusal(found) == PlanReason.NOT_FIRST_INSTALL


def test_an_operator_that_lost_its_subscription_meanwhile_is_not_new() -> None:
    subscribed_again = seen(
        a_plan(V2),
        a_subscription(pin=V2, current=V2),
        installed=[a_csv(V1, mark="db.shop"), a_csv(CACHE, mark="cache.shop")],
    )
    found = under({"first_install_only": True}, subscribed_again)
    assert isinstance(found, WaitForPlan)
    assert found.reason == PlanReason.NOT_FIRST_INSTALL
    assert V1 in found.message


def test_an_operator_that_does_not_tell_its_package_may_be_what_is_upgraded() -> None:
    beside = seen(a_plan(V1), a_subscription(pin=V1, current=V1), installed=[a_csv("queue.v1.0.0")])
    found = under({"first_install_only": True}, beside)
    assert isinstance(found, WaitForPlan)
    assert found.reason == PlanReason.NOT_FIRST_INSTALL
    assert "queue.v1.0.0 is installed (of an unknown package" in found.message


def test_a_plan_waits_until_it_is_old_enough() -> None:
    policy = {"minimum_age": "1h30m"}
    ripe = NOON + timedelta(minutes=90)
    found = under(policy)
    assert isinstance(found, WaitForPlan)
    assert (found.reason, found.until) == (PlanReason.TOO_YOUNG, ripe)
    assert "2030-01-07T13:30:00Z" in found.message
    assert refusal(under(policy, now=ripe - timedelta(microseconds=1))) == PlanReason.TOO_YOUNG
    assert isinstance(under(policy, now=ripe), ApprovePlan)


NIGHTS = WindowSpec("0 22 * * *", "2h")
EVENINGS_IN_OSLO = WindowSpec("30 13 * * MON", "1h", "Europe/Oslo")


@pytest.mark.parametrize(
    ("windows", "opens"),
    [
        pytest.param((NIGHTS,), datetime(2030, 1, 7, 22, tzinfo=UTC), id="the-next"),
        pytest.param((NIGHTS, EVENINGS_IN_OSLO), datetime(2030, 1, 7, 12, 30, tzinfo=UTC), id="the-first-of-two"),
        pytest.param((WindowSpec("0 0 29 2 *", "1h"),), datetime(2032, 2, 29, tzinfo=UTC), id="one-in-years"),
        pytest.param((WindowSpec("0 0 31 2 *", "1h"),), None, id="never"),
    ],
)
def test_a_plan_waits_until_a_window_opens(windows: tuple[WindowSpec, ...], opens: datetime | None) -> None:
    found = under({"windows": windows})
    assert isinstance(found, WaitForPlan)
    assert (found.reason, found.until) == (PlanReason.OUTSIDE_WINDOW, opens)
    if opens:
        assert isinstance(under({"windows": windows}, now=opens), ApprovePlan)


def test_a_plan_is_approved_until_the_window_closes() -> None:
    closing = datetime(2030, 1, 8, tzinfo=UTC)
    assert isinstance(under({"windows": (NIGHTS,)}, now=closing - timedelta(microseconds=1)), ApprovePlan)
    assert refusal(under({"windows": (NIGHTS,)}, now=closing)) == PlanReason.OUTSIDE_WINDOW


def test_age_is_waited_for_before_windows_are_looked_at() -> None:
    assert refusal(under({"minimum_age": "1h", "windows": (NIGHTS,)})) == PlanReason.TOO_YOUNG


@pytest.mark.parametrize(
    "policy",
    [
        pytest.param({"versions": (VersionRange("db", ">=1.0.0-"),)}, id="range"),
        pytest.param({"versions": (VersionRange("cache", "1.x.3"),)}, id="range-of-another-operator"),
        pytest.param(
            {"versions": (VersionRange("db", "^1"), VersionRange("cache", "1.x.3"))}, id="second-of-two-ranges"
        ),
        pytest.param({"minimum_age": "99999999999999999999999999d"}, id="age"),
        pytest.param({"windows": (WindowSpec("0 22 * * *", "2h", "Mars/Olympus"),)}, id="time-zone"),
        pytest.param({"windows": (WindowSpec("61 22 * * *", "2h"),)}, id="schedule"),
        pytest.param({"windows": (WindowSpec("0 22 * * *", "9999999999999999d"),)}, id="duration"),
    ],
)
def test_nothing_is_approved_while_nobody_understands_the(policy: dict[str, Any]) -> None:
    found = under(policy)
    assert isinstance(found, WaitForPlan)
    fault = policy_fault(Policy(**policy), NOON)
    assert fault
    assert (found.reason, found.message) == (
        PlanReason.BAD_POLICY,
        f"{fault}; nothing is approved until it is corrected",
    )


def test_the_fault_of_a_range_names_its_operator() -> None:
    found = under({"versions": (VersionRange("cache", "1.x.3"),)})
    assert isinstance(found, WaitForPlan)
    assert found.message.startswith("policy.versions of cache: '1.x.3' has a number after a wildcard;")


def test_an_age_beyond_all_time_is_a_bad_policy() -> None:
    assert refusal(under({"minimum_age": "999999999d"})) == PlanReason.BAD_POLICY


def test_a_policy_that_is_understood_has_no_fault() -> None:
    assert policy_fault(None, NOON) is None
    understood = Policy(versions=(VersionRange("db", "^1"),), minimum_age="7d", windows=(NIGHTS, EVENINGS_IN_OSLO))
    assert policy_fault(understood, NOON) is None


def approved_by(*users: str, csv: str = V1) -> ApproverObservation:
    around = a_pinned_install()
    lines = "\n".join(f"{a_plan(csv).fingerprint} - - {user}" for user in users)
    metadata = msgspec.structs.replace(around.plan.metadata, approvals=lines)
    return replace(around, plan=msgspec.structs.replace(around.plan, metadata=metadata))


@pytest.mark.parametrize(
    ("around", "expected"),
    [
        pytest.param(approved_by(), "0 of 2 approvals; needs 2 more", id="nobody"),
        pytest.param(approved_by("ann"), "1 of 2 approvals (ann); needs one more", id="one person"),
        pytest.param(approved_by("ann", "ann"), "1 of 2 approvals (ann); needs one more", id="one person twice"),
        pytest.param(approved_by("ann", "bob", csv=V2), "0 of 2 approvals; needs 2 more", id="with other CSVs"),
    ],
)
def test_policy_waits_for_people(around: ApproverObservation, expected: str) -> None:
    found = under({"approvals": RequiredApprovals(2), "windows": (NIGHTS,)}, around)
    assert refusal(found) == PlanReason.WAITING_FOR_APPROVALS  # named before the window
    assert isinstance(found, WaitForPlan)
    assert found.message == f"{expected}: approve it with 'virt-steward approve installplan shop/install-1'"


def test_policy_approves_after_people() -> None:
    found = under({"approvals": RequiredApprovals(2)}, approved_by("ann", "bob"))
    assert isinstance(found, ApprovePlan)
    assert found.reason.startswith("approved by ann, bob; ")
    unpinned = seen(approved_by("ann", "bob").plan, a_subscription(current=V1))
    assert refusal(under({"approvals": RequiredApprovals(2)}, unpinned)) == PlanReason.NOT_PINNED


def test_approvals_that_prove_nothing_hold_only_approvers_that_need_them() -> None:
    around = approved_by("ann", "bob")
    people = an_approver("ann", policy={"approvals": RequiredApprovals(2)})
    decision = decide(replace(around, approvers=(people,)), NOON)
    assert decision.is_by_people
    [wait] = decision.unenforced().waits.values()
    assert wait.reason == PlanReason.APPROVALS_NOT_ENFORCED
    both = decide(replace(around, approvers=(people, an_approver("bob"))), NOON).unenforced()
    assert both.approval
    assert both.approval.approver.metadata.name == "bob"
    assert not decide(a_pinned_install(), NOON).is_by_people
