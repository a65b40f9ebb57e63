"""Which notifications of a flood are sent one by one, and what the digest says of the others."""

from datetime import UTC, datetime

import pytest

from virt_steward.runtime.digests import LISTED, LONGEST_TEXT, MOST_TYPES, OTHERS, WINDOW, DigestWindow
from virt_steward.runtime.notifications import Notification

NOW = datetime(2030, 1, 1, tzinfo=UTC)


def a_notice(number: int = 0, type_: str = "io.vitistack.machine.unplaced", text: str = "") -> Notification:
    return Notification(str(number), type_, "/machines", f"shop/{number}", NOW, text or f"Machine {number}", {})


@pytest.mark.parametrize(
    ("limit", "times", "single"),
    [
        pytest.param(3, [0, 0, 0], 3, id="up-to-the-limit"),
        pytest.param(3, [0, 0, 0, 0, 10], 3, id="beyond-the-limit"),
        pytest.param(3, [0, 30, 59, 60, 61, 62], 6, id="another-window"),
        pytest.param(1, [0, 59, 60], 1, id="the-digest-is-not-sent-yet"),
        pytest.param(0, [0] * 500, 500, id="without-a-limit"),
    ],
)
def test_digest_window_admits_first_notifications(limit: int, times: list[float], single: int) -> None:
    window = DigestWindow(limit)
    assert sum(window.admits(a_notice(number), now) for number, now in enumerate(times)) == single
    assert window.counted == len(times) - single


def test_digest_counts_and_quotes_the_first() -> None:
    window = DigestWindow(1)
    for number in range(40):
        window.admits(a_notice(number), 10.0)
    for number in range(3):
        window.admits(a_notice(100 + number, "io.kubevirt.advisor.virtplatformconfig.failed"), 20.0)
    assert window.closes_in(20.0) == WINDOW - 10.0
    digest = window.take(NOW)
    assert digest
    assert (digest.data["count"], digest.page, digest.type) == (42, "/", "virt-steward.digest")
    assert digest.data["types"] == {
        "io.vitistack.machine.unplaced": 39,
        "io.kubevirt.advisor.virtplatformconfig.failed": 3,
    }
    assert [one["subject"] for one in digest.data["first"]] == [f"shop/{number}" for number in range(1, 1 + LISTED)]
    assert digest.text.splitlines()[0].startswith("42 more notifications within a minute: 39 io.vitistack")
    assert window.take(NOW) is None
    assert window.admits(a_notice(7), 70.0), "another window has begun"


def test_digest_is_bounded_whatever_it_counts() -> None:
    window = DigestWindow(1)
    for number in range(1000):
        window.admits(a_notice(number, f"type-{number}", "x" * 100_000), 0.0)
    digest = window.take(NOW)
    assert digest
    assert digest.data["count"] == 999
    assert digest.data["types"][OTHERS] == 999 - MOST_TYPES
    assert len(digest.text) < LISTED * (LONGEST_TEXT + 10) + 1000
