"""The slope test by tables: what grows, what only looks like it, and how much noise it bears."""

import math
import random
from collections.abc import Callable
from functools import partial

import pytest

from tests.soak.slope import BINS, FEWEST, Allowance, Sample, lowest_per_bin, trend_of

MINUTES = 25
EVERY = 5.0
ALLOWANCE = Allowance(per_hour=6.0, noise=2.0)


def a_series(value: Callable[[float], float], minutes: float = MINUTES) -> list[Sample]:
    """A sample every 5 seconds of a function of minutes."""
    return [Sample(number * EVERY, value(number * EVERY / 60)) for number in range(int(minutes * 60 / EVERY) + 1)]


def noise(minute: float, seed: int = 0) -> float:
    return 100 + random.Random(f"{seed} {minute}").gauss(0, 5)


FLAT: dict[str, Callable[[float], float]] = {
    "constant": lambda _: 100,
    "noise": noise,
    "falling": lambda minute: 200 - minute,
    "sawtooth that returns to its floor": lambda minute: 100 + 40 * (minute % 1.0),
    "sawtooth longer than a bin": lambda minute: 100 + 2 * (minute % 4.0),
    "warm-up only": lambda minute: 60 + 40 * (1 - math.exp(-minute)),
    "one step": lambda minute: 100 + 30 * (minute > 15),
    "one early step": lambda minute: 100 + 30 * (minute > 9),
    "a peak that ends": lambda minute: 100 + 50 * (12 < minute < 16),
    "less than allowed": lambda minute: 100 + minute * 4 / 60,
    "a drop that recovers": lambda minute: 100 - 50 * (8 < minute < 9),
}
GROWING: dict[str, Callable[[float], float]] = {
    "a leak": lambda minute: 100 + minute,
    "a leak below noise": lambda minute: noise(minute) + 1.5 * minute,
    "a leak below a sawtooth": lambda minute: 100 + 40 * (minute % 1.0) + minute,
    "a step every four minutes": lambda minute: 100 + 3 * (minute // 4),
    "a leak that begins late": lambda minute: 100 + 2 * max(0.0, minute - 12),
    "a leak with one restart of a cache": lambda minute: 100 + 2 * minute - 10 * (minute > 18),
}


@pytest.mark.parametrize("name", FLAT)
def test_series_is_flat(name: str) -> None:
    assert trend_of(a_series(FLAT[name]), ALLOWANCE).verdict == "flat"


@pytest.mark.parametrize("name", GROWING)
def test_series_grows(name: str) -> None:
    assert trend_of(a_series(GROWING[name]), ALLOWANCE).verdict == "GROWS"


def test_noise_rarely_grows() -> None:
    """With a noise of 5 and no allowance at all."""
    series = (a_series(partial(noise, seed=seed)) for seed in range(200))
    verdicts = [trend_of(one, Allowance(0.0, 0.0)).verdict for one in series]
    assert verdicts.count("GROWS") <= 4


def test_trend_has_slope_per_hour_without_warm_up() -> None:
    trend = trend_of(a_series(lambda minute: 50 if minute < 7 else 100 + minute), ALLOWANCE)
    assert trend.per_hour == pytest.approx(60, rel=0.05)
    assert (trend.first, trend.last, trend.allowed) == (pytest.approx(107.5), pytest.approx(123.6, abs=0.2), 6.0)


def test_steep_slope_of_short_part_is_noise_until_it_adds_up() -> None:
    assert trend_of(a_series(lambda minute: 100 + 0.5 * minute, minutes=3), ALLOWANCE).verdict == "flat"
    assert trend_of(a_series(lambda minute: 100 + 2 * minute, minutes=3), ALLOWANCE).verdict == "GROWS"


@pytest.mark.parametrize("number", range(FEWEST))
def test_too_few_samples_give_no_verdict(number: int) -> None:
    samples = [Sample(float(one), float(one)) for one in range(number)]
    assert trend_of(samples, ALLOWANCE).verdict == "too few samples"


def test_bins_have_the_lowest_sample_and_gaps_are_left_out() -> None:
    samples = [one for one in a_series(lambda minute: 100 + minute % 0.5) if not 600 < one.at < 900]
    bins = lowest_per_bin(samples)
    assert len(bins) == BINS - 3
    assert {one.value for one in bins} == {100}
