"""Which plans an approver cares for: by namespace, by operator, by the labels of Subscriptions."""

from dataclasses import replace
from typing import Any

import pytest

from tests.controllers.approver.builders import (
    CACHE,
    NOON,
    V1,
    a_pinned_install,
    a_plan,
    a_subscription,
    an_approver,
    empty_stores,
    seen,
    verdict,
)
from virt_steward.apis.meta import LabelSelector, Requirement
from virt_steward.controllers.approver.observe import observe
from virt_steward.controllers.approver.verdicts import ApprovePlan, LeavePlan, PlanReason, WaitForPlan
from virt_steward.objects.identity import Key

PINNED = a_subscription(pin=V1, current=V1)
PROD = LabelSelector({"stage": "prod"})
NOT_CORE = LabelSelector({}, (Requirement("core", "DoesNotExist"),))


@pytest.mark.parametrize(
    ("spec", "around"),
    [
        pytest.param({"target_namespaces": ("garden",)}, {}, id="of-another-namespace"),
        pytest.param({"target_namespaces": ("shop-2", "sho")}, {}, id="of-a-namespace-with-a-similar-name"),
        pytest.param(
            {"namespace_selector": PROD}, {"labels": {"stage": "test"}}, id="of-a-namespace-with-other-labels"
        ),
        pytest.param({"namespace_selector": PROD}, {}, id="of-a-namespace-without-labels"),
        pytest.param({"operator_names": ("cache", "data")}, {}, id="of-an-operator-that-is-not-named"),
        pytest.param({"operator_names": ("db.v1.0.0.1",)}, {}, id="of-a-longer-name"),
        pytest.param({"operator_names": ("b.v",)}, {}, id="of-a-name-that-ends-so"),
        pytest.param({"subscription_selector": PROD}, {}, id="of-a-subscription-without-labels"),
    ],
)
def test_an_approver_does_not_care_for_plans(spec: dict[str, Any], around: dict[str, Any]) -> None:
    found = verdict(a_pinned_install(an_approver(**spec), **around))
    assert isinstance(found, LeavePlan)
    assert found.reason == PlanReason.OUT_OF_SCOPE


def test_labels_that_are_not_known_match_no_selector() -> None:
    approver = an_approver(namespace_selector=NOT_CORE)
    assert isinstance(verdict(a_pinned_install(approver)), ApprovePlan)
    found = verdict(replace(a_pinned_install(approver), namespace_labels=None))
    assert isinstance(found, LeavePlan)
    assert found.reason == PlanReason.OUT_OF_SCOPE


@pytest.mark.parametrize(
    ("spec", "around"),
    [
        pytest.param({"target_namespaces": ("garden", "shop")}, {}, id="namespace"),
        pytest.param({"namespace_selector": PROD}, {"labels": {"stage": "prod", "more": ""}}, id="namespace-labels"),
        pytest.param({"namespace_selector": LabelSelector()}, {}, id="any-namespace-by-an-empty-selector"),
        pytest.param({"operator_names": ("db",)}, {}, id="operator-by-its-package"),
        pytest.param({"operator_names": ("db.v1.0.0",)}, {}, id="operator-by-its-whole-name"),
        pytest.param({"operator_names": ("cache", "d")}, {}, id="operator-by-how-it-begins"),
    ],
)
def test_an_approver_cares_for_a_plan_by(spec: dict[str, Any], around: dict[str, Any]) -> None:
    assert isinstance(verdict(a_pinned_install(an_approver(**spec), **around)), ApprovePlan)


def test_an_operator_name_also_means_those_that_begin_with_it() -> None:
    webhook = "cert-manager-webhook.v1"
    around = (a_plan(webhook), a_subscription("cert-manager-webhook", pin=webhook, current=webhook))
    assert isinstance(verdict(seen(*around, approvers=[an_approver(operator_names=("cert-manager",))])), ApprovePlan)
    assert isinstance(verdict(seen(*around, approvers=[an_approver(operator_names=("cert-manager.v",))])), LeavePlan)


def test_every_operator_of_a_plan_must_be_named_but_new_dependencies() -> None:
    both = (PINNED, a_subscription("cache", pin=CACHE, current=CACHE))
    approver = an_approver(operator_names=("db",))
    refused = verdict(seen(a_plan(V1, CACHE), *both, approvers=[approver]))
    assert isinstance(refused, WaitForPlan)
    assert refused.reason is PlanReason.OUT_OF_SCOPE
    assert f"has {V1}, but also {CACHE}" in refused.message
    assert isinstance(verdict(seen(a_plan(CACHE), *both, approvers=[approver])), LeavePlan)
    assert isinstance(verdict(seen(a_plan(V1, CACHE, brings=["cache"]), PINNED, approvers=[approver])), ApprovePlan)


@pytest.mark.parametrize("denied", ["", "shop"], ids=["the cluster", "the namespace"])
def test_nothing_is_approved_by_old_pins_where_something_may_not_be_read_in(denied: str) -> None:
    stores = empty_stores()
    stores.plans.put(a_plan(V1))
    stores.subscriptions.put(PINNED)
    stores.approvers.put(an_approver())
    before = observe(stores, Key("shop", "install-1"), NOON)
    stores.subscriptions.denied.add(denied)
    after = observe(stores, Key("shop", "install-1"), NOON)
    assert before is not None
    assert after is not None
    assert isinstance(verdict(before), ApprovePlan)
    refused = verdict(after)
    assert isinstance(refused, WaitForPlan)
    assert refused.reason is PlanReason.NAMESPACE_DENIED


def test_every_subscription_of_a_plan_must_match_the_selector() -> None:
    db = a_subscription(pin=V1, current=V1, labels={"stage": "prod"})
    cache, chosen_cache = (
        a_subscription("cache", pin=CACHE, current=CACHE, labels=labels) for labels in ({}, {"stage": "prod"})
    )
    approver = an_approver(subscription_selector=PROD)
    assert isinstance(verdict(seen(a_plan(V1, CACHE), db, cache, approvers=[approver])), WaitForPlan)
    assert isinstance(verdict(seen(a_plan(CACHE), db, cache, approvers=[approver])), LeavePlan)
    assert isinstance(verdict(seen(a_plan(V1, CACHE), db, chosen_cache, approvers=[approver])), ApprovePlan)
    assert isinstance(verdict(seen(a_plan(V1), db, cache, approvers=[approver])), ApprovePlan)
