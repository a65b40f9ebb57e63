"""Whether a series of samples grows. Pure functions, no I/O.

Two things look like growth and are none: what comes and goes with the work, and a step that is not repeated. So the
samples after the warm-up are cut into bins of equal length, and of each only the lowest is used: what is held even when
there is least to do. The slope is the median of the slopes between all pairs of bins (Theil-Sen), which a single step
or outlier does not decide. Its lower confidence limit, from the variance of Kendall's S, must be above the allowance.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from statistics import median
from typing import Literal

import msgspec

WARM_UP = 0.3
"""The share of the samples' time in which caches fill and each replica leads for the first time."""
BINS = 12
FEWEST = 6
"""Bins below which no slope is significant."""
CONFIDENCE = 2.576
"""Standard deviations: 0.5 % of series whose slope is exactly the allowance are taken for ones that grow."""
HOUR = 3600.0

Verdict = Literal["flat", "GROWS", "too few samples"]


class Sample(msgspec.Struct, frozen=True, array_like=True):
    at: float
    """Seconds since the part began."""
    value: float


@dataclass(frozen=True, slots=True)
class Allowance:
    """How much growth is accepted."""

    per_hour: float
    noise: float
    """Growth over all bins up to which a slope means nothing, however steep: short parts have steep ones."""


class Trend(msgspec.Struct, frozen=True):
    """What became of a quantity."""

    first: float
    """The lowest value of the first bin after the warm-up; of the last one: `last`."""
    last: float
    per_hour: float
    allowed: float
    verdict: Verdict


def trend_of(samples: Sequence[Sample], allowance: Allowance) -> Trend:
    bins = lowest_per_bin(samples)
    if len(bins) < FEWEST:
        first, last = (bins[0].value, bins[-1].value) if bins else (0.0, 0.0)
        return Trend(first, last, 0.0, allowance.per_hour, "too few samples")
    slopes = sorted((late.value - early.value) / (late.at - early.at) for early, late in combinations(bins, 2))
    slope = median(slopes)
    grown = slope * (bins[-1].at - bins[0].at)
    grows = lower_limit(slopes, len(bins)) * HOUR > allowance.per_hour and grown > allowance.noise
    verdict: Verdict = "GROWS" if grows else "flat"
    return Trend(bins[0].value, bins[-1].value, slope * HOUR, allowance.per_hour, verdict)


def lowest_per_bin(samples: Sequence[Sample]) -> list[Sample]:
    """The lowest sample of each bin after the warm-up, at the middle of its bin; a bin without samples is left out."""
    if not samples:
        return []
    begin, end = samples[0].at, samples[-1].at
    begin += WARM_UP * (end - begin)
    length = (end - begin) / BINS
    bins: dict[int, float] = {}
    for sample in samples:
        if sample.at >= begin and length:
            number = min(int((sample.at - begin) / length), BINS - 1)
            bins[number] = min(sample.value, bins.get(number, math.inf))
    return [Sample(begin + (number + 0.5) * length, value) for number, value in sorted(bins.items())]


def lower_limit(slopes: Sequence[float], bins: int) -> float:
    """The lower confidence limit of the median of sorted slopes between so many bins."""
    deviation = math.sqrt(bins * (bins - 1) * (2 * bins + 5) / 18)
    return slopes[max(0, int((len(slopes) - CONFIDENCE * deviation) / 2))]
