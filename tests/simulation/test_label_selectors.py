"""Label selectors as objects have them."""

from typing import Any

import pytest

from virt_steward.objects.selectors import BadSelector
from virt_steward_demo.simulation.label_selectors import read_selector

LABELS = {"role": "worker", "zone": "north"}


def an_expression(operator: str, *values: str, key: str = "role") -> dict[str, Any]:
    return {"matchExpressions": [{"key": key, "operator": operator, "values": list(values)}]}


@pytest.mark.parametrize(
    "selector",
    [
        pytest.param({}, id="nothing-asked"),
        pytest.param({"matchLabels": None, "matchExpressions": None}, id="nothing-said"),
        pytest.param({"matchLabels": {"role": "worker"}}, id="a-label"),
        pytest.param(an_expression("In", "worker", "infra"), id="one-of-several"),
        pytest.param(an_expression("NotIn", "infra"), id="none-of-several"),
        pytest.param(an_expression("Exists"), id="any-value"),
        pytest.param(an_expression("DoesNotExist", key="tier"), id="no-such-label"),
        pytest.param({"matchLabels": {"zone": "north"}, **an_expression("In", "worker")}, id="both"),
    ],
)
def test_selector_matches(selector: dict[str, Any]) -> None:
    assert read_selector(selector).matches(LABELS)


@pytest.mark.parametrize(
    "selector",
    [
        pytest.param({"matchLabels": {"role": "infra"}}, id="another-value"),
        pytest.param({"matchLabels": {"tier": ""}}, id="no-such-label"),
        pytest.param(an_expression("In", "infra"), id="not-one-of-them"),
        pytest.param(an_expression("NotIn", "worker"), id="one-that-is-excluded"),
        pytest.param(an_expression("Exists", key="tier"), id="a-label-that-is-missing"),
        pytest.param(an_expression("DoesNotExist"), id="a-label-that-must-not-be"),
        pytest.param({"matchLabels": {"zone": "south"}, **an_expression("In", "worker")}, id="half-of-it-alone"),
    ],
)
def test_selector_does_not_match(selector: dict[str, Any]) -> None:
    assert not read_selector(selector).matches(LABELS)


def test_selector_refuses_unknown_operator() -> None:
    with pytest.raises(BadSelector, match="Near"):
        read_selector(an_expression("Near", "worker"))
