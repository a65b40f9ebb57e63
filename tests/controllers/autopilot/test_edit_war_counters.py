"""Edit wars."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from virt_steward.controllers.autopilot.edit_wars import (
    HOUR,
    LONGEST,
    OTHER_INSTANCE,
    OWN_ROUNDS,
    PAUSE_AFTER,
    SAME_FIELD,
    Correction,
    EditWars,
    PauseObject,
    Pauses,
    WriteAllowed,
    WriteThrottled,
)

KEY = "MachineConfig 90-worker-swap-online"


def field(*numbers: int) -> Correction:
    """Fields that somebody else has changed."""
    return Correction(frozenset(f".spec.f{number}" for number in numbers))


def fought(
    wars: EditWars, times: int, *, every: float, since: float = 0.0
) -> list[WriteAllowed | WriteThrottled | PauseObject]:
    """One field is changed by somebody again and again, and we set it right whenever we may."""
    answers = []
    for number in range(times):
        now = since + number * every
        answers.append(wars.attempt(KEY, field(0), now))
        if answers[-1] == WriteAllowed():
            wars.applied(KEY, field(0), now)
    return answers


def exhausted(wars: EditWars, now: float = 0.0) -> None:
    """Leave no token, by writes to one field after the other."""
    for number in range(10):
        assert wars.attempt(KEY, field(number), now) == WriteAllowed()
        wars.applied(KEY, field(number), now)


def test_attempt_throttles_the_eleventh_write() -> None:
    wars = EditWars()
    exhausted(wars)
    answer = wars.attempt(KEY, field(11), 0.0)
    assert isinstance(answer, WriteThrottled)
    assert (answer.retry_in, answer.count) == (1.0, 1)
    assert "10 updates per minute" in answer.message


def test_attempt_pauses_at_the_third_throttle() -> None:
    wars = EditWars()
    exhausted(wars)
    answers = [wars.attempt(KEY, field(11), now) for now in (0.0, 1.0, 3.0)]
    assert [(answer.retry_in, answer.count) for answer in answers if isinstance(answer, WriteThrottled)] == [
        (1, 1),
        (2, 2),
    ]
    assert answers[-1] == PauseObject("it was throttled 3 times in a row")


def test_attempt_before_retry_does_not_count() -> None:
    wars = EditWars()
    exhausted(wars)
    answers = [wars.attempt(KEY, field(11), now / 10) for now in range(10)]
    assert [answer.count for answer in answers if isinstance(answer, WriteThrottled)] == [1] * 10
    assert isinstance(answers[-1], WriteThrottled)
    assert answers[-1].retry_in == pytest.approx(0.1)


def test_applied_write_resets_throttles() -> None:
    wars = EditWars()
    exhausted(wars)
    assert isinstance(wars.attempt(KEY, field(11), 0.0), WriteThrottled)
    assert isinstance(wars.attempt(KEY, field(11), 1.0), WriteThrottled)
    assert wars.attempt(KEY, field(11), 7.0) == WriteAllowed()
    wars.applied(KEY, field(11), 7.0)
    again = wars.attempt(KEY, field(12), 7.0)
    assert isinstance(again, WriteThrottled)
    assert again.count == 1


@pytest.mark.parametrize("every", [0.0, 2.0, 20.0, 300.0])
def test_attempt_pauses_after_ten_corrections_of_a_field(every: float) -> None:
    *rounds, last = fought(EditWars(), SAME_FIELD + 1, every=every)
    assert rounds == [WriteAllowed()] * SAME_FIELD
    assert last == PauseObject(".spec.f0 was corrected 10 times within an hour")


def test_attempt_allows_rare_corrections() -> None:
    assert set(fought(EditWars(), 100, every=HOUR / SAME_FIELD)) == {WriteAllowed()}


def test_attempt_counts_each_field_of_a_write() -> None:
    wars = EditWars()
    for number in range(SAME_FIELD):
        both = field(0, number + 1)
        assert wars.attempt(KEY, both, number * 60.0) == WriteAllowed()
        wars.applied(KEY, both, number * 60.0)
    assert isinstance(wars.attempt(KEY, field(0), 601.0), PauseObject)
    assert isinstance(wars.attempt(KEY, field(1), 601.0), PauseObject)  # the object is paused, not the field


def test_attempt_never_pauses_without_drift() -> None:
    wars = EditWars()
    answers = []
    for number in range(100):
        answers.append(wars.attempt(KEY, Correction(), number * 0.5))
        if answers[-1] == WriteAllowed():
            wars.applied(KEY, Correction(), number * 0.5)
    assert 10 <= answers.count(WriteAllowed()) <= 10 + 50 / 6
    assert not any(isinstance(answer, PauseObject) for answer in answers)


def own(intent: str = "a") -> Correction:
    """A value that only our manager owns is another one than the intent's."""
    return Correction(own_fields=frozenset((".spec.config",)), intent=intent)


def written(wars: EditWars, *corrections: Correction, every: float = 1.0) -> list[str]:
    """Try to write these, one after the other; each is recorded if it is allowed."""
    answers = []
    for number, correction in enumerate(corrections):
        answer = wars.attempt(KEY, correction, number * every)
        if isinstance(answer, WriteAllowed):
            wars.applied(KEY, correction, number * every)
        answers.append(answer.message if isinstance(answer, PauseObject) else type(answer).__name__)
    return answers


ALLOWED = WriteAllowed.__name__


@pytest.mark.parametrize(
    ("corrections", "every", "paused"),
    [
        pytest.param([own()] * (OWN_ROUNDS + 2), 1.0, True, id="the first write was no correction"),
        pytest.param([own()] * (OWN_ROUNDS + 1), 1.0, False, id="three rounds are corrected"),
        pytest.param([Correction(intent="a"), *[own()] * (OWN_ROUNDS + 1)], 1.0, True, id="after a first apply"),
        pytest.param([own()] * (OWN_ROUNDS + 2), HOUR / OWN_ROUNDS - 1, True, id="slowly"),
        pytest.param([own()] * (OWN_ROUNDS + 2), HOUR / OWN_ROUNDS, False, id="too rarely"),
        pytest.param([own(str(number)) for number in range(9)], 10.0, False, id="the intent changes each time"),
        pytest.param([own("a"), own("b")] * 4, 10.0, False, id="the intent goes back and forth"),
        pytest.param([own("a"), own("a"), own("b"), own("b"), own("b")], 10.0, False, id="rounds of two intents"),
        pytest.param([own("a"), own("a"), own("b"), own("b"), own("b"), own("b")], 10.0, True, id="rounds add up"),
        pytest.param([Correction(intent="a")] * 9, 10.0, False, id="ownership alone"),
    ],
)
def test_attempt_pauses_after_three_rounds_of_another_instance(
    corrections: list[Correction], every: float, paused: bool
) -> None:
    *before, last = written(EditWars(), *corrections, every=every)
    assert set(before) == {ALLOWED}
    assert last == (OTHER_INSTANCE if paused else ALLOWED)


def test_attempt_throttles_rounds_of_another_instance_as_a_war() -> None:
    wars = EditWars()
    exhausted(wars)
    wars.applied(KEY, own(), 0.0)
    answers = [wars.attempt(KEY, own(), now) for now in (0.0, 1.0, 3.0)]
    assert answers[-1] == PauseObject("it was throttled 3 times in a row")


def test_resumed_object_starts_with_no_rounds() -> None:
    wars = EditWars()
    assert written(wars, *[own()] * (OWN_ROUNDS + 2))[-1] == OTHER_INSTANCE
    wars.resumed(KEY)
    assert written(wars, *[own()] * (OWN_ROUNDS + 1)) == [ALLOWED] * (OWN_ROUNDS + 1)


def test_pause_is_repeated_until_resumed() -> None:
    wars = EditWars()
    answers = fought(wars, SAME_FIELD + 3, every=2.0)
    assert len({*answers[SAME_FIELD:]}) == 1
    assert isinstance(wars.attempt(KEY, field(5), 3000.0), PauseObject)
    wars.resumed(KEY)
    assert fought(wars, SAME_FIELD, every=2.0, since=3001.0) == [WriteAllowed()] * SAME_FIELD


def test_unmarked_pause_ends_after_an_hour() -> None:
    wars = EditWars()
    fought(wars, SAME_FIELD + 1, every=1.0)
    answers = {now: wars.attempt(KEY, field(0), now) for now in (600.0, 1800.0, 3599.0, 3610.0)}
    assert [now for now, answer in answers.items() if answer == WriteAllowed()] == [3610.0]


def test_each_object_has_its_own_bucket() -> None:
    wars = EditWars()
    exhausted(wars)
    assert wars.attempt("another", field(11), 0.0) == WriteAllowed()


def test_unused_counters_are_forgotten_after_an_hour() -> None:
    wars = EditWars()
    for number in range(1000):
        wars.attempt(number, field(0), 0.0)
    wars.attempt(0, field(0), HOUR - 1)
    assert len(wars) == 1000
    wars.attempt(0, field(0), HOUR)
    assert len(wars) == 1


@settings(deadline=None, database=None)
@given(waits=st.lists(st.floats(0, 40), max_size=120), fields=st.lists(st.integers(0, 3), min_size=120, max_size=120))
def test_limits_hold_for_any_pattern_of_edits(waits: list[float], fields: list[int]) -> None:
    wars = EditWars()
    now, written, in_a_row = 0.0, [], 0
    for wait, number in zip(waits, fields, strict=False):
        now += wait
        match wars.attempt(KEY, field(number), now):
            case WriteAllowed():
                wars.applied(KEY, field(number), now)
                written.append((now, number))
                in_a_row = 0
            case WriteThrottled(retry_in, _, count):
                assert 0 < retry_in <= LONGEST
                assert in_a_row <= count <= in_a_row + 1 < PAUSE_AFTER + 1
                in_a_row = count
            case PauseObject(why):
                assert why
                break
    assert len(written) <= 10 + now / 6 + 0.001
    for number in range(4):
        times = [at for at, which in written if which == number]
        assert not any(later - earlier < HOUR for earlier, later in zip(times, times[SAME_FIELD:], strict=False))


@pytest.mark.parametrize(
    ("deliveries", "ended"),
    [
        pytest.param([(7, True), (8, False)], [False, True], id="is resumed"),
        pytest.param([(8, False)], [True], id="is resumed before the watch has shown the pause"),
        pytest.param([(6, False), (7, True), (8, False)], [False, False, True], id="is not resumed by an older object"),
        pytest.param([(7, True), (8, True)], [False, False], id="stays paused"),
        pytest.param([(0, False)], [True], id="is deleted"),
        pytest.param([(8, False), (9, False)], [True, False], id="is resumed once"),
    ],
)
def test_paused_object(deliveries: list[tuple[int, bool]], ended: list[bool]) -> None:
    pauses = Pauses()
    assert not pauses.ended("swap-enable", 5, is_paused=False)
    pauses.begun("swap-enable", 7)
    assert [pauses.ended("swap-enable", version, is_paused=is_paused) for version, is_paused in deliveries] == ended
