"""What an InstallPlan waits for, as its approvers see it."""

from dataclasses import replace
from datetime import timedelta

import pytest

from tests.controllers.approver.builders import (
    NOON,
    V1,
    V2,
    a_pinned_install,
    a_plan,
    a_subscription,
    an_approver,
    seen,
)
from virt_steward.apis.meta import WindowSpec
from virt_steward.controllers.approver.observation import Approver
from virt_steward.insight.approvals import APPROVES, UNCOVERED, pending_install_plan


@pytest.mark.parametrize(
    "plan",
    [
        pytest.param(a_plan(V1, approved=True), id="approved"),
        pytest.param(a_plan(V1, phase="Complete"), id="installed"),
        pytest.param(a_plan(V1, approval="Automatic"), id="automatic"),
    ],
)
def test_pending_install_plan_is_none_unless_pending(plan: object) -> None:
    assert pending_install_plan(seen(plan), NOON) is None  # type: ignore[arg-type]


def test_pending_install_plan_without_approver_needs_a_person() -> None:
    found = pending_install_plan(
        seen(a_plan(V1), a_subscription(), approvers=[an_approver(target_namespaces=("other",))]), NOON
    )
    assert found
    assert (found.reason, found.approver, found.needs_a_person) == (UNCOVERED, None, True)


@pytest.mark.parametrize("approvers", [(an_approver(),), ()], ids=["an approver", "no approver"])
def test_pending_install_plan_reason_is_unknown_when_forbidden(approvers: tuple[Approver, ...]) -> None:
    found = pending_install_plan(replace(seen(a_plan(V1), a_subscription()), approvers=approvers, is_denied=True), NOON)
    assert found
    assert (found.reason, found.approver) == ("NamespaceDenied", None)


def test_pending_install_plan_about_to_be_approved_needs_nobody() -> None:
    found = pending_install_plan(a_pinned_install(), NOON)
    assert found
    assert (found.reason, found.needs_a_person) == (APPROVES, False)


def test_pending_install_plan_has_time_of_approval() -> None:
    found = pending_install_plan(a_pinned_install(an_approver(policy={"minimum_age": "1h"})), NOON)
    assert found
    assert (found.reason, found.until, found.needs_a_person) == ("TooYoung", NOON + timedelta(hours=1), False)


def test_pending_install_plan_without_open_window_needs_a_person() -> None:
    found = pending_install_plan(
        a_pinned_install(an_approver(policy={"windows": (WindowSpec("0 0 31 2 *", "1h"),)})), NOON
    )
    assert found
    assert (found.reason, found.until, found.needs_a_person) == ("OutsideWindow", None, True)


def test_pending_install_plan_names_pinned_version() -> None:
    found = pending_install_plan(seen(a_plan(V2), a_subscription(pin=V1, current=V2, installed=V1)), NOON)
    assert found
    assert found.needs_a_person
    assert V1 in found.message
    assert str(found.approver) == "approvers/ann"
