"""What is approved, what waits and what is left alone: each check, and the order in which they speak."""

from dataclasses import replace
from typing import Any

import pytest

from tests.controllers.approver.builders import (
    CACHE,
    CACHE2,
    REMEDY,
    V1,
    V2,
    V3,
    a_csv,
    a_pinned_install,
    a_plan,
    a_subscription,
    an_approver,
    seen,
    verdict,
)
from virt_steward.controllers.approver.observation import ApproverObservation
from virt_steward.controllers.approver.verdicts import ApprovePlan, LeavePlan, PlanReason, WaitForPlan

PINNED = a_subscription(pin=V1, current=V1)
UPGRADED = a_subscription(pin=V2, current=V2, installed=V1)
LONG = "a-package-with-a-name-that-leaves-no-room-for-its-namespace-too"


@pytest.mark.parametrize(
    ("around", "because"),
    [
        pytest.param(a_pinned_install(), f"{V1} is the startingCSV of its Subscription", id="first-install"),
        pytest.param(seen(a_plan(V2), UPGRADED), f"{V2} is the startingCSV", id="upgrade"),
        pytest.param(
            seen(a_plan(V1, CACHE), PINNED, a_subscription("cache", pin=CACHE, current=CACHE)),
            f"{CACHE} is the startingCSV",
            id="install-of-two",
        ),
        pytest.param(
            seen(a_plan(V1, CACHE, brings=["cache"]), PINNED), f"{CACHE} is a new dependency", id="new-dependency"
        ),
        pytest.param(
            seen(a_plan(V1, CACHE), PINNED, a_subscription("cache", current=CACHE, approval="Automatic")),
            f"the Subscription of {CACHE} was set to Automatic by a person",
            id="operator-beside-one-that-a-person-made-automatic",
        ),
        pytest.param(
            seen(a_plan(V1, CACHE), PINNED, a_subscription("cache", current=CACHE2, installed=CACHE)),
            f"{CACHE} is installed already",
            id="operator-beside-one-that-runs-already",
        ),
        pytest.param(
            seen(a_plan(V2, packages={}), UPGRADED), V2, id="operator-whose-package-only-its-subscription-tells"
        ),
        pytest.param(
            seen(a_plan(V1, generation=7), a_subscription(pin=V1, current=V1, generation=4)),
            V1,
            id="operator-whose-subscription-was-not-touched-for-a-combined-plan",
        ),
        pytest.param(
            seen(a_plan(V1), PINNED, a_subscription("cache", pin=CACHE, current=CACHE2, installed=CACHE)),
            V1,
            id="operator-while-another-of-the-namespace-has-an-upgrade-pending",
        ),
        pytest.param(
            seen(a_plan(V1, generation=2), PINNED, siblings=[a_plan(V1, name="install-0", generation=1)]),
            V1,
            id="newer-of-two-twins",
        ),
        pytest.param(
            seen(a_plan(V1), PINNED, siblings=[a_plan(V1, CACHE, name="install-2", generation=2)]),
            V1,
            id="plan-that-a-newer-one-contains-with-more",
        ),
        pytest.param(
            seen(a_plan(V1, CACHE, brings=["cache"]), PINNED, installed=[a_csv("queue.v1.0.0", mark="queue.shop")]),
            CACHE,
            id="new-dependency-beside-another-operator",
        ),
    ],
)
def test_approved_is_a_pinned(around: ApproverObservation, because: str) -> None:
    found = verdict(around)
    assert isinstance(found, ApprovePlan)
    assert because in found.reason


@pytest.mark.parametrize(
    ("around", "reason", "says"),
    [
        pytest.param(
            seen(a_plan(V2), a_subscription(pin=V1, current=V2, installed=V1)),
            PlanReason.NOT_PINNED,
            f"set startingCSV to {V2}",
            id="upgrade-while-the-pin-is-installed",
        ),
        pytest.param(
            seen(a_plan(V1), a_subscription(current=V1)), PlanReason.NOT_PINNED, "no startingCSV pins db", id="no-pin"
        ),
        pytest.param(
            seen(a_plan(V2), a_subscription(pin=V3, current=V2, installed=V1)),
            PlanReason.INTERMEDIATE_VERSION,
            f"OLM upgrades to {V2} on the way",
            id="a-version-on-the-way-to-the-pin",
        ),
        pytest.param(
            seen(a_plan(V3), a_subscription(pin=V2, current=V3, installed=V1)),
            PlanReason.PIN_NOT_OFFERED,
            f"OLM offers {V3}",
            id="a-version-beyond-the-pin",
        ),
        pytest.param(
            seen(a_plan("db.latest"), a_subscription(pin=V1, current="db.latest", installed=V3)),
            PlanReason.PIN_NOT_OFFERED,
            "OLM offers db.latest",
            id="a-version-that-cannot-be-compared",
        ),
        pytest.param(
            seen(a_plan(V1), a_subscription(pin=V2, current=V1)),
            PlanReason.PIN_NOT_OFFERED,
            f"this plan is for {V1}: delete it",
            id="another-version-before-the-first-installation",
        ),
        pytest.param(
            seen(a_plan(V2), a_subscription(pin=V2, current=V2, installed=V1, generated=True)),
            PlanReason.NOT_PINNED,
            "was made by OLM, so its startingCSV does not pin it",
            id="an-upgrade-of-what-olm-brought-along",
        ),
        pytest.param(
            seen(
                a_plan(V1, CACHE2),
                PINNED,
                a_subscription("cache", pin=CACHE, current=CACHE2, installed=CACHE),
            ),
            PlanReason.RIDES_ALONG,
            f"also installs {CACHE2}, which is pinned to {CACHE}",
            id="an-upgrade-of-another-that-is-pinned-elsewhere",
        ),
        pytest.param(
            seen(a_plan(V1, CACHE2), PINNED, a_subscription("cache", current=CACHE2, installed=CACHE)),
            PlanReason.RIDES_ALONG,
            "which is not pinned",
            id="an-upgrade-of-another-without-pin",
        ),
        pytest.param(
            seen(
                a_plan(V1, CACHE2),
                PINNED,
                a_subscription(
                    "cache", pin=CACHE2, current=CACHE2, installed=CACHE, approval="Automatic", generated=True
                ),
            ),
            PlanReason.RIDES_ALONG,
            "which is not pinned",
            id="an-upgrade-of-a-dependency-that-olm-itself-made-automatic-and-pinned",
        ),
        pytest.param(
            seen(a_plan(CACHE), a_subscription("cache", current=CACHE, approval="Automatic")),
            PlanReason.NOT_PINNED,
            "no Subscription of the plan has a startingCSV",
            id="only-what-a-person-made-automatic",
        ),
        pytest.param(
            seen(a_plan(CACHE, brings=["cache"])),
            PlanReason.NOT_PINNED,
            "no Subscription of the plan has a startingCSV",
            id="only-new-dependencies",
        ),
        pytest.param(
            seen(a_plan(V1, CACHE), PINNED),
            PlanReason.NO_SUBSCRIPTION,
            "no Subscription in the namespace is for cache",
            id="an-operator-that-nobody-subscribed-to",
        ),
        pytest.param(
            seen(a_plan(V1, CACHE, brings=["cache"]), PINNED, installed=[a_csv("cache.v0.9.0", mark="cache.shop")]),
            PlanReason.NO_SUBSCRIPTION,
            "for cache",
            id="a-dependency-of-which-an-older-version-is-there",
        ),
        pytest.param(
            seen(
                a_plan(V1, "long.v2.0.0", packages={V1: "db", "long.v2.0.0": LONG}, brings=[LONG]),
                PINNED,
                installed=[a_csv("long.v1.0.0", mark=LONG)],
            ),
            PlanReason.NO_SUBSCRIPTION,
            f"for {LONG}",
            id="a-dependency-that-is-there-under-a-label-cut-to-length",
        ),
        pytest.param(
            seen(a_plan(V1, CACHE, brings=["cache"]), PINNED, installed=[a_csv("queue.v1.0.0")]),
            PlanReason.UNKNOWN_PACKAGE,
            "the package of queue.v1.0.0 in the namespace is unknown: label it operators.coreos.com/<its package>.shop",
            id="a-dependency-beside-an-operator-that-does-not-tell-its-package",
        ),
        pytest.param(
            seen(
                a_plan(V1, CACHE, brings=["cache"]),
                PINNED,
                installed=[a_csv("queue.v1.0.0"), a_csv("cache.v0.9.0", mark="cache.shop")],
            ),
            PlanReason.NO_SUBSCRIPTION,
            "though cache.v0.9.0 is installed",
            id="a-dependency-of-which-an-older-version-is-there-beside-an-operator-that-tells-nothing",
        ),
        pytest.param(
            seen(a_plan(V1, CACHE, brings=["cache"]), PINNED, installed=[a_csv(CACHE)]),
            PlanReason.NO_SUBSCRIPTION,
            "for cache",
            id="a-dependency-that-is-there-without-its-label",
        ),
        pytest.param(
            seen(
                a_plan(V1, CACHE2, brings=["cache"]),
                PINNED,
                a_subscription("cache", current=CACHE2, installed=CACHE, generated=True),
            ),
            PlanReason.RIDES_ALONG,
            CACHE2,
            id="a-dependency-that-has-a-subscription",
        ),
        pytest.param(
            seen(a_plan(V1), a_subscription(pin=V1, current=V2, generation=2)),
            PlanReason.SUPERSEDED,
            f"OLM now offers {V2} for db, not {V1}",
            id="a-plan-that-olm-left-behind-though-the-pin-moved-back-to-it",
        ),
        pytest.param(
            seen(a_plan(V1, generation=2), a_subscription(pin=V1, current=V2, generation=2)),
            PlanReason.SUPERSEDED,
            f"OLM now offers {V2}",
            id="a-plan-whose-subscription-is-as-new-and-offers-another",
        ),
        pytest.param(
            seen(a_plan(V1), a_subscription(pin=V1, current=V2, installed=V2, generation=2)),
            PlanReason.SUPERSEDED,
            f"OLM now offers {V2}",
            id="a-downgrade",
        ),
        pytest.param(
            seen(a_plan(V1), a_subscription(pin=V1, current=V1, installed=V1)),
            PlanReason.SUPERSEDED,
            "installed already",
            id="a-plan-that-would-change-nothing",
        ),
        pytest.param(
            seen(a_plan(V1), PINNED, siblings=[a_plan(V1, name="install-2", generation=2)]),
            PlanReason.SUPERSEDED,
            "superseded by the newer plan install-2",
            id="the-older-of-two-twins",
        ),
        pytest.param(
            seen(a_plan(V1), PINNED, siblings=[a_plan(V1, name="install-2", generation=2, approved=True)]),
            PlanReason.SUPERSEDED,
            "superseded by the newer plan install-2",
            id="the-older-of-two-twins-when-the-newer-is-approved",
        ),
        pytest.param(
            seen(a_plan(V1, generation=2), a_subscription(pin=V1)),
            PlanReason.SUBSCRIPTION_BEHIND,
            "should offer",
            id="a-first-plan-that-olm-wrote-before-its-subscription",
        ),
        pytest.param(
            seen(a_plan(V2, generation=2), a_subscription(pin=V2, current=V1, installed=V1)),
            PlanReason.SUBSCRIPTION_BEHIND,
            "OLM has not yet updated Subscription db",
            id="an-upgrade-that-olm-wrote-before-its-subscription",
        ),
        pytest.param(
            a_pinned_install(unreadable=["queue"]),
            PlanReason.UNREADABLE,
            "Subscription queue is malformed",
            id="a-subscription-of-the-namespace-that-cannot-be-read",
        ),
        pytest.param(
            replace(a_pinned_install(), is_denied=True),
            PlanReason.NAMESPACE_DENIED,
            "shop",
            id="a-namespace-that-may-not-be-looked-into",
        ),
        pytest.param(
            seen(a_plan(V1, packages={}), a_subscription(pin=V1)),
            PlanReason.UNKNOWN_PACKAGE,
            f"the package of {V1}",
            id="a-package-that-nobody-tells",
        ),
        pytest.param(
            seen(a_plan(V1, packages={V1: "cache"}), PINNED, a_subscription("cache")),
            PlanReason.UNKNOWN_PACKAGE,
            f"the package of {V1}",
            id="a-package-on-which-plan-and-subscription-disagree",
        ),
        pytest.param(
            seen(a_plan(V1, packages={V1: ""}), PINNED),
            PlanReason.UNKNOWN_PACKAGE,
            f"the package of {V1}",
            id="a-package-on-which-the-plan-disagrees-with-itself",
        ),
        pytest.param(
            seen(a_plan(V1, "", packages={V1: "db"}), PINNED),
            PlanReason.UNKNOWN_PACKAGE,
            "the package of",
            id="a-csv-without-name",
        ),
        pytest.param(
            seen(a_plan(), PINNED), PlanReason.UNKNOWN_PACKAGE, "has no ClusterServiceVersion", id="a-plan-of-nothing"
        ),
        pytest.param(
            seen(a_plan("db-extras.v1.0.0"), a_subscription("db", pin="db-extras.v1.0.0", current=V1)),
            PlanReason.NO_SUBSCRIPTION,
            "for db-extras",
            id="a-pin-in-the-subscription-of-another-package",
        ),
    ],
)
def test_not_approved_is(around: ApproverObservation, reason: PlanReason, says: str) -> None:
    found = verdict(around)
    assert isinstance(found, WaitForPlan)
    assert (found.reason, found.until) == (reason, None)
    assert says in found.message
    assert REMEDY.search(found.message), found.message


@pytest.mark.parametrize(
    ("plan", "reason"),
    [
        pytest.param({"approved": True}, PlanReason.ALREADY_APPROVED, id="is-approved"),
        pytest.param({"approved": True, "phase": "Installing"}, PlanReason.ALREADY_APPROVED, id="is-being-installed"),
        pytest.param({"approval": "Automatic"}, PlanReason.AUTOMATIC, id="asks-nobody"),
        pytest.param({"approval": ""}, PlanReason.AUTOMATIC, id="does-not-say-whether-it-asks"),
        *(
            pytest.param({"phase": phase}, PlanReason.NOT_WAITING, id=f"is-in-phase-{phase or 'none'}")
            for phase in ("", "Planning", "Installing", "Complete", "Failed", "Unknown", "requiresapproval")
        ),
    ],
)
def test_a_plan_is_left_alone_that(plan: dict[str, Any], reason: PlanReason) -> None:
    found = verdict(seen(a_plan(V1, **plan), PINNED))
    assert isinstance(found, LeavePlan)
    assert found.reason == reason


@pytest.mark.parametrize(
    ("spec", "reason"),
    [
        pytest.param({"auto_approve": False}, PlanReason.AUTO_APPROVE_OFF, id="auto-approve-is-off"),
        pytest.param({"dry_run": True}, PlanReason.DRY_RUN, id="it-is-a-dry-run"),
        pytest.param(
            {"dry_run": True, "policy": {"minimum_age": "1h"}},
            PlanReason.TOO_YOUNG,
            id="a-dry-run-would-not-approve-either",
        ),
    ],
)
def test_what_is_pinned_waits_where(spec: dict[str, Any], reason: PlanReason) -> None:
    found = verdict(a_pinned_install(an_approver(**spec)))
    assert isinstance(found, WaitForPlan)
    assert found.reason == reason
    assert found.until or REMEDY.search(found.message)


def test_dependencies_wait_where_the_policy_allows_none() -> None:
    approver = an_approver(policy={"allow_dependencies": False})
    found = verdict(seen(a_plan(V1, CACHE, brings=["cache"]), PINNED, approvers=[approver]))
    assert isinstance(found, WaitForPlan)
    assert found.reason == PlanReason.DEPENDENCY_NOT_ALLOWED
    assert CACHE in found.message
    assert found.message.endswith(": set policy.allowDependencies, or approve it manually")
    assert isinstance(verdict(a_pinned_install(approver)), ApprovePlan)
