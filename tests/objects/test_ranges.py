"""Ranges of versions."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.objects.grammars import published
from tests.objects.strategies import modest
from tests.objects.version_strategies import releases, versions
from virt_steward.apis.installplanapprover import VersionRange
from virt_steward.objects.ranges import BadRange, Range
from virt_steward.objects.versions import Version

if TYPE_CHECKING:
    from collections.abc import Callable

PUBLISHED = published(VersionRange, "range")
RELEASES = "0.0.0 0.0.3 0.0.4 0.1.0 0.2.3 0.3.0 1.0.0 1.2.0 1.2.3 1.2.4 1.3.0 1.10.0 2.0.0 2.1.0 3.0.0"
RELEASED_WITH = {
    "1.2.3": "1.2.3",
    "v1.2.3": "1.2.3",
    "=1.2.3": "1.2.3",
    "== 1.2.3": "1.2.3",
    "1.2.3+build": "1.2.3",
    ">1.2.3": "1.2.4 1.3.0 1.10.0 2.0.0 2.1.0 3.0.0",
    ">=1.2.3": "1.2.3 1.2.4 1.3.0 1.10.0 2.0.0 2.1.0 3.0.0",
    "<1.2.3": "0.0.0 0.0.3 0.0.4 0.1.0 0.2.3 0.3.0 1.0.0 1.2.0",
    "<=1.2.3": "0.0.0 0.0.3 0.0.4 0.1.0 0.2.3 0.3.0 1.0.0 1.2.0 1.2.3",
    "1.2": "1.2.0 1.2.3 1.2.4",
    "1.2.x": "1.2.0 1.2.3 1.2.4",
    "1.x": "1.0.0 1.2.0 1.2.3 1.2.4 1.3.0 1.10.0",
    "1.X.*": "1.0.0 1.2.0 1.2.3 1.2.4 1.3.0 1.10.0",
    "*": RELEASES,
    ">1.2": "1.3.0 1.10.0 2.0.0 2.1.0 3.0.0",
    ">=1.2 <2": "1.2.0 1.2.3 1.2.4 1.3.0 1.10.0",
    "<=1.2, >1.0.0": "1.2.0 1.2.3 1.2.4",
    "<0.1": "0.0.0 0.0.3 0.0.4",
    "> 1, < 2": "",
    ">*": "",
    "<*": "",
    "<=*": RELEASES,
    "~1": "1.0.0 1.2.0 1.2.3 1.2.4 1.3.0 1.10.0",
    "~1.2": "1.2.0 1.2.3 1.2.4",
    "~1.2.3": "1.2.3 1.2.4",
    "^1.2": "1.2.0 1.2.3 1.2.4 1.3.0 1.10.0",
    "^1.2.3": "1.2.3 1.2.4 1.3.0 1.10.0",
    "^0.2.1": "0.2.3",
    "^0.0.3": "0.0.3",
    "^0.0": "0.0.0 0.0.3 0.0.4",
    "^0": "0.0.0 0.0.3 0.0.4 0.1.0 0.2.3 0.3.0",
    "^0.0.0": "0.0.0",
    ">=1 <3 !=1.2": "1.0.0 1.3.0 1.10.0 2.0.0 2.1.0",
    ">=2 !2.0.0": "2.1.0 3.0.0",
    "!=*": "",
    "0.3.0 || ~1.2.4||3": "0.3.0 1.2.4 3.0.0",
}


def within(text: str, versions: str) -> list[str]:
    chosen = Range.parse(text)
    return [version for version in versions.split() if Version.parse(version) in chosen]


@pytest.mark.parametrize(("text", "released"), RELEASED_WITH.items(), ids=RELEASED_WITH)
def test_range_contains_releases(text: str, released: str) -> None:
    assert within(text, RELEASES) == released.split()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("*", "", id="not in all versions"),
        pytest.param(">=1.0.0", "", id="not above a release"),
        pytest.param("<2.0.0", "", id="not below a release"),
        pytest.param("1.x", "", id="not in a line of releases"),
        pytest.param("1.4.0-rc.1", "1.4.0-rc.1", id="as the very one"),
        pytest.param(">=1.4.0-rc.1", "1.4.0-rc.1 1.4.0-rc.2", id="from the one that is named, of the same release"),
        pytest.param(">1.4.0-rc.1", "1.4.0-rc.2", id="after the one that is named"),
        pytest.param("<=1.4.0-rc.1", "1.4.0-beta 1.4.0-rc.1", id="up to the one that is named"),
        pytest.param("^1.4.0-rc.1", "1.4.0-rc.1 1.4.0-rc.2", id="with a caret"),
        pytest.param("~1.4.0-rc.2", "1.4.0-rc.2", id="with a tilde"),
        pytest.param("^1.4.0 <=2.0.0-rc.1", "", id="not at the end of a caret"),
        pytest.param(">=1.0.0 !=1.4.0-rc.1", "", id="not for ruling out another one"),
        pytest.param(">=1.4.0-beta !=1.4.0-rc.1", "1.4.0-beta 1.4.0-rc.2", id="but for one that is ruled out"),
        pytest.param(">=1.0.0 || 2.0.0-rc.1", "2.0.0-rc.1", id="only by the alternative that names one"),
    ],
)
def test_range_contains_prerelease(text: str, expected: str) -> None:
    assert within(text, "1.4.0-beta 1.4.0-rc.1 1.4.0-rc.2 1.5.0-rc.1 2.0.0-rc.1") == expected.split()


@pytest.mark.parametrize(
    ("text", "because"),
    [
        pytest.param("", "'' is not a comparison", id="nothing"),
        pytest.param("newest", "'newest' is not a comparison", id="a word"),
        pytest.param(">=1.4.0 &&", "'&&' is not a comparison", id="an end that is missing"),
        pytest.param("1 ||", "'' is not a comparison", id="an alternative that is missing"),
        pytest.param("1,,2", "'' is not a comparison", id="two commas"),
        pytest.param(">=>1.4.0", "'>=>1.4.0' is not a comparison", id="two signs"),
        pytest.param("1.2 - 1.4", "'-' is not a comparison", id="a hyphen"),
        pytest.param("1.2.3.4", "'1.2.3.4' is not a comparison", id="four numbers"),
        pytest.param("01.2", "'01.2' is not a comparison", id="a zero in front"),
        pytest.param("1.\u0662", "is not a comparison", id="digits of another script"),
        pytest.param("1.x.3", "'1.x.3' has a number after a wildcard", id="a number after an x"),
        pytest.param("~1.2-rc.1", "'~1.2-rc.1' needs three numbers", id="a pre-release of two numbers"),
        pytest.param("1.2.3-a..b", "is not a semantic version", id="an empty part of a pre-release"),
        pytest.param("1" * 257, "at most 256 characters", id="too much"),
    ],
)
def test_range_refuses_invalid_text(text: str, because: str) -> None:
    with pytest.raises(BadRange) as refused:
        Range.parse(text)
    assert because in str(refused.value)


SIGNS = {
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


@pytest.mark.parametrize(("sign", "compare"), SIGNS.items(), ids=SIGNS)
@modest
@given(releases, versions)
def test_range_comparison_follows_its_operator(
    sign: str, compare: Callable[[Version, Version], bool], release: Version, version: Version
) -> None:
    assert (release in Range.parse(f"{sign}{version}")) is compare(release, version)


@modest
@given(releases, st.sampled_from(("1", "1.0", "0.2", "2.1", "0", "3.x", "*")))
def test_range_of_partial_version_is_an_interval(release: Version, line: str) -> None:
    sides = [release in Range.parse(f"{sign}{line}") for sign in ("<", "=", ">")]
    assert sum(sides) == 1
    assert (release in Range.parse(f"!={line}")) is not sides[1]
    assert (release in Range.parse(f"<={line}")) is (sides[0] or sides[1])
    assert (release in Range.parse(f">={line}")) is (sides[1] or sides[2])


RANGES = st.sampled_from([*RELEASED_WITH])


@modest
@given(versions, RANGES, RANGES)
def test_range_alternatives_widen_and_comparisons_narrow(version: Version, one: str, two: str) -> None:
    in_one, in_two = version in Range.parse(one), version in Range.parse(two)
    assert (version in Range.parse(f"{one} || {two}")) is (in_one or in_two)
    if "||" not in one + two:
        assert (version in Range.parse(f"{one}, {two}")) is (in_one and in_two)


def refusal(text: str) -> str:
    try:
        Range.parse(text)
    except BadRange as bad:
        return str(bad)
    return ""


SIGNED = st.sampled_from(("", "=", "==", "!", "!=", "<", "<=", "> ", ">=", "~", "^ ", "v", ">=v"))
NUMBERS = st.lists(st.sampled_from(("0", "1", "12", "007", "x", "X", "*")), min_size=1, max_size=3).map(".".join)
SUFFIXES = st.sampled_from(("", "", "", "-rc.1", "-rc..1", "-01", "+b", "-rc.1+b"))
COMPARISONS = st.tuples(SIGNED, NUMBERS, SUFFIXES).map("".join)


@modest
@given(COMPARISONS, st.sampled_from((" ", "   ", ",", " , ", "||", " || ")), COMPARISONS)
def test_range_handles_what_crd_accepts(one: str, separator: str, two: str) -> None:
    text = f"{one}{separator}{two}"
    assert PUBLISHED.fullmatch(text)
    assert refusal(text) or str(Range.parse(text)) == text


@modest
@given(st.text("012.xv<>=~^!-+a|, ", max_size=10))
def test_range_refuses_what_crd_refuses(text: str) -> None:
    assert PUBLISHED.fullmatch(text.strip(" ")) or refusal(text)
