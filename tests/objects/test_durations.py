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
from virt_steward.objects.quoting import quoted

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
        ("0", timedelta()),
        ("3650d", LONGEST),
        ("1.5h", timedelta(minutes=90)),
        ("1.5h30m", timedelta(hours=2)),
        ("30m1h", timedelta(minutes=90)),
        ("1h1h", timedelta(hours=2)),
        (".5s", timedelta(milliseconds=500)),
        ("1.s", timedelta(seconds=1)),
        ("300ms", timedelta(milliseconds=300)),
        ("1m1ms", timedelta(minutes=1, milliseconds=1)),
        ("7us", timedelta(microseconds=7)),
        ("7\N{MICRO SIGN}s", timedelta(microseconds=7)),
        ("7\N{GREEK SMALL LETTER MU}s", timedelta(microseconds=7)),
        ("1999ns", timedelta(microseconds=1)),
        ("+2h", timedelta(hours=2)),
        ("0.1s0.2s", timedelta(milliseconds=300)),
        ("0.00000000000000000000000000001h", timedelta()),
    ],
)
def test_parse_duration_sums_parts(text: str, duration: timedelta) -> None:
    assert parse_duration(text) == duration


@pytest.mark.parametrize(
    ("text", "because"),
    [
        pytest.param("", "is not a duration", id="nothing"),
        pytest.param("7", "is not a duration", id="no unit"),
        pytest.param(".s", "is not a duration", id="a point without digits"),
        pytest.param("1.5.5h", "is not a duration", id="two points"),
        pytest.param("1e3s", "is not a duration", id="an exponent"),
        pytest.param("h", "is not a duration", id="a unit alone"),
        pytest.param("1h30", "is not a duration", id="a last part without unit"),
        pytest.param("1w", "is not a duration", id="weeks"),
        pytest.param("+", "is not a duration", id="a sign alone"),
        pytest.param("00", "is not a duration", id="two zeros"),
        pytest.param("1H", "is not a duration", id="upper case"),
        pytest.param("-1h", "is not a duration", id="less than nothing"),
        pytest.param("1h 30m", "is not a duration", id="a space"),
        pytest.param("1h\n", "is not a duration", id="a line break"),
        pytest.param("\u0661h", "is not a duration", id="digits of another script"),
        pytest.param("9" * 5000 + "d", "is not a duration", id="thousands of digits"),
        pytest.param("1h" * 17, "is not a duration", id="more parts than the CRD takes"),
        pytest.param("87600.0001h", "longer than 3650 days", id="a fraction more than ten years"),
        pytest.param("3650d1s", "longer than 3650 days", id="more than ten years"),
        pytest.param("9" * 31 + "d", "longer than 3650 days", id="more than a calendar can count"),
    ],
)
def test_parse_duration_refuses_invalid_text(text: str, because: str) -> None:
    with pytest.raises(BadDuration, match=because) as refused:
        parse_duration(text)
    assert quoted(text) in str(refused.value)


def refusal(text: str) -> str:
    try:
        parse_duration(text)
    except BadDuration as bad:
        return str(bad)
    return ""


@modest
@given(st.from_regex(PUBLISHED, fullmatch=True).filter(lambda text: len(text) <= 32))
def test_parse_duration_accepts_what_crd_accepts(text: str) -> None:
    assert "longer than" in (refusal(text) or "longer than")


@modest
@given(st.text("019.+dhmsun ", max_size=8))
def test_parse_duration_refuses_what_crd_refuses(text: str) -> None:
    assert PUBLISHED.fullmatch(text) or refusal(text)
