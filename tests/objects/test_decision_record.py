"""The record of a decision, as annotations: read as it was written, and nothing else is believed."""

from datetime import UTC, datetime

import pytest

from virt_steward.decisions.signatures import Signature
from virt_steward.objects.decision_record import WORDINGS, DecisionKeys, DecisionRecord, read_decision

KEYS = DecisionKeys.under("example.io/")
NOON = datetime(2026, 6, 1, 12, tzinfo=UTC)
SIGNED = {KEYS.decision: "choose east", KEYS.by: "alice", KEYS.at: "2026-06-01T12:00:00Z", KEYS.comment: "it has a GPU"}


@pytest.mark.parametrize("verb", WORDINGS)
def test_decision_is_read_as_it_was_signed(verb: str) -> None:
    written = Signature("alice", "tested", NOON).record(KEYS, verb, "this")  # type: ignore[arg-type]
    record = read_decision({name: text for name, text in written.items() if text}, KEYS)
    assert record == DecisionRecord(verb, "this", "alice", NOON, "tested")
    assert str(record).startswith("alice ")
    assert str(record).endswith(": tested")
    assert record.reason


def test_decision_without_comment_removes_that_of_an_earlier_one() -> None:
    assert Signature("alice", "", NOON).record(KEYS, "resume")[KEYS.comment] is None


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        pytest.param({}, "alice chose cluster east: it has a GPU", id="whole"),
        pytest.param({KEYS.comment: None}, "alice chose cluster east", id="no comment"),
        pytest.param({KEYS.decision: "choose {0} {x}"}, "alice chose cluster {0} {x}: it has a GPU", id="braces"),
        pytest.param({KEYS.at: "2026-06-01T14:00:00+02:00"}, "alice chose cluster east: it has a GPU", id="zone"),
        pytest.param({KEYS.by: None}, None, id="nobody"),
        pytest.param({KEYS.decision: None}, None, id="nothing"),
        pytest.param({KEYS.decision: "conquer east"}, None, id="unknown verb"),
        pytest.param({KEYS.at: None}, None, id="no time"),
        pytest.param({KEYS.at: "yesterday"}, None, id="not a time"),
        pytest.param({KEYS.at: "0001-01-01T00:00:00+23:59"}, None, id="no such time in UTC"),
    ],
)
def test_decision_is_believed_only_whole(changes: dict[str, str | None], expected: str | None) -> None:
    annotations = {name: text for name, text in (SIGNED | changes).items() if text is not None}
    record = read_decision(annotations, KEYS)
    assert (None if record is None else str(record)) == expected


def test_decision_is_bounded() -> None:
    long = dict.fromkeys((KEYS.by, KEYS.comment), "x" * 100_000) | {KEYS.decision: f"choose {'x' * 100_000}"}
    record = read_decision({**SIGNED, **long}, KEYS)
    assert record
    assert (len(record.by), len(record.subject), len(record.comment)) == (253, 253, 1024)
