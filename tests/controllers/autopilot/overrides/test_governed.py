"""Fields that the advisor governs."""

from typing import Any

import pytest

from tests.objects.builders import managed
from virt_steward.controllers.autopilot.overrides.governed import (
    NOT_GOVERNED,
    GovernedFields,
    NothingLeft,
    without_governed,
)
from virt_steward.ssa.managers import ADVISOR, AUTOPILOT


def a_descheduler(*owners: dict[str, Any], **spec: Any) -> dict[str, Any]:
    metadata = {"name": "cluster", "labels": {"managed-by": "x"}, **({"managedFields": [*owners]} if owners else {})}
    return {"apiVersion": "operator.openshift.io/v1", "kind": "KubeDescheduler", "metadata": metadata, "spec": spec}


LIVE = a_descheduler(
    managed(ADVISOR.name, {"f:spec": {"f:mode": {}, "f:profiles": {}}}),
    mode="Automatic",
    profiles=["A"],
)


def governed(*paths: str) -> GovernedFields:
    return GovernedFields(frozenset(paths))


def test_ungoverned_intent_is_unchanged() -> None:
    intent = a_descheduler(mode="Predictive")
    assert without_governed(intent, LIVE, NOT_GOVERNED) is intent
    assert without_governed(intent, LIVE, governed("spec.mode.deeper", "", "x")) is intent
    assert without_governed(intent, LIVE, governed("spec.profiles")) == intent


def test_governed_fields_are_left_out() -> None:
    intent = a_descheduler(mode="Predictive", profiles=["B"], evictionLimits={"total": 5})
    left = without_governed(intent, LIVE, governed("spec.mode", "spec.profiles"))
    assert left == a_descheduler(evictionLimits={"total": 5})


def test_governed_value_of_ours_alone_is_sent() -> None:
    live = a_descheduler(managed(AUTOPILOT.name, {"f:spec": {"f:mode": {}, "f:size": {}}}), mode="Automatic", size=1)
    left = without_governed(a_descheduler(mode="Predictive", size=2), live, governed("spec.mode"))
    assert left == a_descheduler(mode="Automatic", size=2)


def test_governed_value_that_the_template_no_longer_renders_is_kept() -> None:
    owned = managed(AUTOPILOT.name, {"f:spec": {"f:mode": {}, "f:size": {}, "f:colour": {}}})
    live = a_descheduler(owned, mode="Automatic", size=1, colour="red")
    left = without_governed(a_descheduler(size=2), live, governed("spec.mode"))
    assert left == a_descheduler(size=2, mode="Automatic"), "the colour is neither governed nor wanted"


@pytest.mark.parametrize("paths", [("spec",), ("spec.mode", "spec.limits"), ("spec.mode", "spec.limits.total", "spec")])
def test_wholly_governed_intent_leaves_nothing(paths: tuple[str, ...]) -> None:
    left = without_governed(a_descheduler(mode="Predictive", limits={"total": 5}), LIVE, governed(*paths))
    assert isinstance(left, NothingLeft)
    assert "/spec" in left.message


def test_governed_path_may_have_dotted_names() -> None:
    intent = a_descheduler(**{"a.b": {"c": 1, "d": 2}})
    assert without_governed(intent, LIVE, governed("spec.a.b.c")) == a_descheduler(**{"a.b": {"d": 2}})
