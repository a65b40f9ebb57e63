"""Semantic versions, and the names that carry them."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.objects.strategies import modest
from tests.objects.version_strategies import versions
from virt_steward.objects.versions import BadVersion, Unversioned, Version, version_of

PRECEDENCE = (
    "0.9.9 1.0.0-0 1.0.0-2 1.0.0-10 1.0.0-alpha 1.0.0-alpha.1 1.0.0-alpha.beta 1.0.0-beta 1.0.0-beta.2 1.0.0-beta.11"
    " 1.0.0-rc.1 1.0.0 1.0.1 1.2.0 1.10.0 2.0.0"
)


def test_version_precedence_follows_semver() -> None:
    assert all(lower < higher for lower, higher in pairwise(map(Version.parse, PRECEDENCE.split())))


def test_version_precedence_ignores_build() -> None:
    assert Version.parse("1.0.0+a") == Version.parse("1.0.0+b.7")
    assert not Version.parse("1.0.0+a") < Version.parse("1.0.0+b.7")
    assert str(Version.parse("1.0.0-rc.1+b.7")) == "1.0.0-rc.1+b.7"


@modest
@given(versions, versions, versions)
def test_versions_have_total_order(one: Version, two: Version, three: Version) -> None:
    assert (one < two) + (one == two) + (one > two) == 1
    low, middle, high = sorted((one, two, three))
    assert low <= middle <= high
    assert low <= high
    assert (hash(one) == hash(two)) or one != two


@modest
@given(versions)
def test_version_round_trips(version: Version) -> None:
    assert Version.parse(str(version)) == version


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("", id="nothing"),
        pytest.param("1.2", id="two numbers"),
        pytest.param("1.2.3.4", id="four numbers"),
        pytest.param("v1.2.3", id="a letter in front"),
        pytest.param("01.2.3", id="a zero in front"),
        pytest.param("1.2.3-01", id="a zero in front of a pre-release number"),
        pytest.param("1.2.3-", id="an empty pre-release"),
        pytest.param("1.2.3-a..b", id="an empty part"),
        pytest.param("1.2.3+", id="an empty build"),
        pytest.param("1.2.3\n", id="a line break"),
        pytest.param("1.2.\u0663", id="digits of another script"),
        pytest.param("1.2." + "9" * 5000, id="thousands of digits"),
    ],
)
def test_version_refuses_invalid_text(text: str) -> None:
    with pytest.raises(BadVersion, match="no"):
        Version.parse(text)


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        ("1.2.3", "1.2.4"),
        ("1.2.3-rc.1", "1.2.3"),
        ("1.2.3", "1.2.3+0.1"),
        ("1.2.3+0.9", "1.2.3+0.10"),
        ("1.2.3+9", "1.2.3+a"),
        ("1.2.3+9", "1.2.4"),
    ],
)
def test_version_is_newer_by_precedence_then_by_build(older: str, newer: str) -> None:
    one, other = Version.parse(older), Version.parse(newer)
    assert other.is_newer_than(one)
    assert not one.is_newer_than(other)
    assert not one.is_newer_than(one)


@pytest.mark.parametrize(
    ("name", "version"),
    [
        ("cert-manager.v1.15.0", "1.15.0"),
        ("foo-operator.v2.1.0-rc.1+build", "2.1.0-rc.1+build"),
        ("odf.ocs-operator.v4.14.0-202401310638", "4.14.0-202401310638"),
        ("elasticsearch-operator.5.2.2-21", "5.2.2-21"),
        ("foo.v1.2.3-rc.4.5.6", "1.2.3-rc.4.5.6"),
        ("amq7.v1.2.3", "1.2.3"),
        ("foo.v2-operator.v1.0.0", "1.0.0"),
        ("3scale.0.11.1", "0.11.1"),
    ],
)
def test_csv_version_is_read_from_name(name: str, version: str) -> None:
    found = version_of(name)
    assert isinstance(found, Version)
    assert str(found) == version


@pytest.mark.parametrize(
    ("name", "because"),
    [
        pytest.param("packageserver", "has no version", id="none"),
        pytest.param("", "has no version", id="an empty name"),
        pytest.param(".v1.2.3", "has no version", id="no operator"),
        pytest.param("foo.stable", "has no version", id="a word"),
        pytest.param("foo.v1.2", "'1.2' is not a semantic version", id="two numbers"),
        pytest.param("foo.v1", "'1' is not a semantic version", id="one number"),
        pytest.param("foo.1.2.3.4", "'1.2.3.4' is not a semantic version", id="four numbers"),
        pytest.param("foo.v2024.01.02", "'2024.01.02' is not a semantic version", id="a date"),
        pytest.param("api.v1.foo.v2.0.0", "'1.foo.v2.0.0' is not a semantic version", id="two that could be it"),
        pytest.param("foo-1.2.3.4", "does not show where its version begins", id="a number before the first dot"),
        pytest.param("foo-v1.2.3", "does not show where its version begins", id="a hyphen before it"),
    ],
)
def test_csv_version_is_never_guessed(name: str, because: str) -> None:
    found = version_of(name)
    assert isinstance(found, Unversioned)
    assert found.name == name
    assert because in found.message


@modest
@given(st.from_regex("[a-z]([a-z-]*[a-z])?", fullmatch=True), versions, st.sampled_from(("v", "")))
def test_csv_version_is_found_for_any_operator(operator: str, version: Version, letter: str) -> None:
    assert version_of(f"{operator}.{letter}{version}") == version


@modest
@given(st.text("foo.v-+0123", max_size=16))
def test_csv_version_handles_any_name(name: str) -> None:
    found = version_of(name)
    assert isinstance(found, Unversioned) or name.endswith(str(found))
