"""Which faults a part has, and when it is green."""

import pytest

from tests.chaos.faults import ON_MEMBERS, ON_REPLICAS
from tests.soak.part import MILD, SEEDS, Judgement, PartResult, mild_faults
from tests.soak.sampling import series_of
from tests.soak.slope import Sample, Trend, Verdict


def test_first_rounds_of_ten_take_the_leases_of_one_replica_after_the_other() -> None:
    faults = [mild_faults(SEEDS, number) for number in (0, 1, 10, 11)]
    assert [(one.kind, one.target) for [one] in faults] == [("unleased", "a-*"), ("unleased", "b-*")] * 2


def test_rounds_have_all_faults_that_a_process_survives_and_no_other() -> None:
    found = {fault.kind for seed in range(200) for fault in mild_faults(seed, 4)}
    assert found == {*MILD}
    assert {*ON_REPLICAS, *ON_MEMBERS} - found == {"kill", "stop", "stale", "clock", "unleased"}
    assert mild_faults(7, 4) == mild_faults(7, 15)


def test_all_connections_break_at_once_during_the_warm_up() -> None:
    faults = [one for number in (2, 3) for one in mild_faults(7, number)]
    assert {(one.kind, one.target) for one in faults} == {("resets", "*-*"), ("gone", "*-*"), ("gone", "*-autopilot")}
    assert mild_faults(7, 12) == mild_faults(7, 13) == mild_faults(7, 4)


def test_series_are_counted_without_buckets_and_comments() -> None:
    metrics = """\
# TYPE work_seconds histogram
work_seconds_bucket{name="a b",le="0.1"} 1.0
work_seconds_count{name="a b"} 1.0
up 1.0
"""
    assert series_of(metrics) == ['work_seconds_count{name="a b"}', "up"]


@pytest.mark.parametrize(
    ("verdict", "problems", "is_green"),
    [
        ("flat", [], True),
        ("too few samples", [], True),
        ("GROWS", [], False),
        ("flat", ["a-advisor ended"], False),
    ],
)
def test_part_is_green_if_nothing_grows_and_the_checker_is_content(
    verdict: Verdict, problems: list[str], is_green: bool
) -> None:
    judgement = Judgement("advisor", "tasks", Trend(1.0, 1.0, 0.0, 4.0, verdict), [Sample(0, 1), Sample(7, 1)])
    result = PartResult(1, 30.0, 90, 4000, problems, [judgement])
    assert result.is_green == is_green
    assert result.longest_gap == 7
