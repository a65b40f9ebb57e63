"""Durations."""

from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.objects.grammars import published
from tests.objects.strategies import modest
from virt_steward.apis.meta import WindowSpec
from virt_steward.objects.durations import LONGEST, BadDuration, parse_duration

PUBLISHED = published(WindowSpec, "duration")


@pytest.mark.parametrize(
    ("text", "duration"),
    [
        ("7d", timedelta(days=7)),
        ("24h", timedelta(hours=24)),
        ("1h30m", timedelta(minutes=90)),
        ("1d2h3m4s", timedelta(days=1, hours=2, minutes=3, seconds=4)),
        ("90s", timedelta(seconds=90)),
        ("007m", timedelta(minutes=7)),
        ("0h", timedelta()),
        ("3650d", LONGEST),
    ],
)
def test_a_duration_is_the_sum_of_its_parts(text: str, duration: timedelta) -> None:
    assert parse_duration(text) == duration


@pytest.mark.parametrize(
    ("text", "because"),
    [
        pytest.param("", "is no duration", id="nothing"),
        pytest.param("7", "is no duration", id="no unit"),
        pytest.param("30m1h", "is no duration", id="minutes before hours"),
        pytest.param("1.5h", "is no duration", id="a fraction"),
        pytest.param("-1h", "is no duration", id="less than nothing"),
        pytest.param("1h 30m", "is no duration", id="a space"),
        pytest.param("1h\n", "is no duration", id="a line break"),
        pytest.param("\u0661h", "is no duration", id="digits of another script"),
        pytest.param("9" * 5000 + "d", "is no duration", id="thousands of digits"),
        pytest.param("3650d1s", "longer than 3650 days", id="more than ten years"),
        pytest.param("9" * 31 + "d", "longer than 3650 days", id="more than a calendar can count"),
    ],
)
def test_other_text_is_refused_with_a_sentence(text: str, because: str) -> None:
    with pytest.raises(BadDuration, match=because) as refused:
        parse_duration(text)
    assert repr(text) in str(refused.value)


def refusal(text: str) -> str:
    try:
        parse_duration(text)
    except BadDuration as bad:
        return str(bad)
    return ""


@modest
@given(st.from_regex(PUBLISHED, fullmatch=True).filter(lambda text: 2 <= len(text) <= 32))
def test_what_the_crd_lets_through_is_refused_only_if_it_is_too_long(text: str) -> None:
    assert "longer than" in (refusal(text) or "longer than")


@modest
@given(st.text("019dhms ", max_size=8))
def test_what_the_crd_stops_is_refused(text: str) -> None:
    assert PUBLISHED.fullmatch(text) or refusal(text)
