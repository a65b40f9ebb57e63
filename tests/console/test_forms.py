"""Options as form fields: from the schema, and back into a patch."""

from typing import Any

import pytest

from virt_steward.apis.profiles import EXAMPLE, HIGHER_DENSITY, LOAD_AWARE
from virt_steward.console.forms import BadOption, fields, read

HELD = {"kind": "big", "zone": "a"}


def test_fields_have_value_default_and_help() -> None:
    known = {field.name: field for field in fields(LOAD_AWARE, {"loadAware": {"mode": "Predictive"}})}
    assert set(known) == {
        "loadAware.deschedulingIntervalSeconds",
        "loadAware.mode",
        "loadAware.enablePSIMetrics",
        "loadAware.devDeviationThresholds",
        "loadAware.evictionLimitTotal",
        "loadAware.evictionLimitNode",
    }
    mode = known["loadAware.mode"]
    assert (mode.kind, mode.value, mode.default) == ("choice", "Predictive", "Automatic")
    assert set(mode.choices) == {"Automatic", "Predictive"}
    interval = known["loadAware.deschedulingIntervalSeconds"]
    assert (interval.least, interval.most, interval.default) == (60, 86400, "60")
    assert all(field.help for field in known.values())


def test_switch_shows_default_until_set() -> None:
    def psi(**options: bool) -> str:
        return next(one.value for one in fields(LOAD_AWARE, {"loadAware": options}) if "PSI" in one.name)

    assert (psi(), psi(enablePSIMetrics=False)) == ("true", "")


def test_fields_are_empty_without_options() -> None:
    assert fields(EXAMPLE, {}) == ()
    assert read(EXAMPLE, {}, {}) is None


def test_read_removes_empty_fields() -> None:
    patch = read(LOAD_AWARE, {"option.loadAware.evictionLimitTotal": " 7 "}, {})
    assert patch is not None
    assert patch["loadAware"]["evictionLimitTotal"] == 7
    assert patch["loadAware"]["evictionLimitNode"] is None
    assert patch["loadAware"]["enablePSIMetrics"] is False


@pytest.mark.parametrize(
    ("text", "patch"),
    [
        ("kind=big", {"kind": "big", "zone": None}),
        ("kind=small, rack=1", {"kind": "small", "zone": None, "rack": "1"}),
        ("", None),
    ],
)
def test_read_removes_labels(text: str, patch: dict[str, str | None] | None) -> None:
    before = {"virtHigherDensity": {"ksmConfiguration": {"nodeLabelSelector": {"matchLabels": HELD}}}}
    name = "virtHigherDensity.ksmConfiguration.nodeLabelSelector.matchLabels"
    found = read(HIGHER_DENSITY, {f"option.{name}": text}, before)
    assert found is not None
    assert found["virtHigherDensity"]["ksmConfiguration"]["nodeLabelSelector"]["matchLabels"] == patch


@pytest.mark.parametrize(
    "before", [{}, {"virtHigherDensity": None}, {"virtHigherDensity": {"ksmConfiguration": None}}], ids=str
)
def test_read_sets_labels(before: dict[str, Any]) -> None:
    name = "virtHigherDensity.ksmConfiguration.nodeLabelSelector.matchLabels"
    found = read(HIGHER_DENSITY, {f"option.{name}": "kind=big"}, before)
    assert found is not None
    assert found["virtHigherDensity"]["ksmConfiguration"]["nodeLabelSelector"]["matchLabels"] == {"kind": "big"}


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("memoryToRequestRatio", "1e3"),
        ("memoryToRequestRatio", "301"),
        ("memoryToRequestRatio", "9" * 50),
        ("ksmConfiguration.nodeLabelSelector.matchLabels", "just-a-word"),
        ("ksmConfiguration.nodeLabelSelector.matchLabels", "=value"),
    ],
)
def test_read_refuses_invalid_value_with_field_name(name: str, value: str) -> None:
    with pytest.raises(BadOption, match=name):
        read(HIGHER_DENSITY, {f"option.virtHigherDensity.{name}": value}, {})


def test_read_refuses_unknown_choice() -> None:
    with pytest.raises(BadOption, match="must be one of"):
        read(LOAD_AWARE, {"option.loadAware.mode": "Sometimes"}, {})
