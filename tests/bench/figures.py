"""The results of the measurements. Each round has its own baseline, so that a busy moment affects both."""

from dataclasses import dataclass
from statistics import median, quantiles
from typing import Any


@dataclass(frozen=True, slots=True)
class Round:
    """Samples of a subject and of its baseline, taken alternately."""

    subject: tuple[float, ...]
    baseline: tuple[float, ...]

    @property
    def ratio(self) -> float:
        return median(self.subject) / median(self.baseline)


@dataclass(frozen=True, slots=True)
class Figure:
    """One line of the report."""

    name: str
    unit: str
    baseline: str
    """The name of the baseline."""
    rounds: tuple[Round, ...]

    @property
    def median(self) -> float:
        return median(self._samples)

    @property
    def p90(self) -> float:
        return quantiles(self._samples, n=10, method="inclusive")[-1]

    @property
    def ratio(self) -> float:
        """The median of the rounds' ratios."""
        return median(found.ratio for found in self.rounds)

    @property
    def ratio_of_p90(self) -> float:
        return self.p90 / median(sample for found in self.rounds for sample in found.baseline)

    @property
    def spread(self) -> tuple[float, float]:
        """The lowest and the highest ratio of a round."""
        ratios = [found.ratio for found in self.rounds]
        return min(ratios), max(ratios)

    def document(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "unit": self.unit,
            "median": self.median,
            "p90": self.p90,
            "baseline": self.baseline,
            "ratio": self.ratio,
            "ratioOfP90": self.ratio_of_p90,
            "ratioSpread": self.spread,
        }

    @property
    def _samples(self) -> list[float]:
        return [sample for found in self.rounds for sample in found.subject]


@dataclass(frozen=True, slots=True)
class Count:
    """A number of requests, from the audit log of the API server."""

    name: str
    value: float

    def document(self) -> dict[str, Any]:
        return {"name": self.name, "unit": "requests", "value": self.value}


@dataclass(frozen=True, slots=True)
class Report:
    figures: tuple[Figure, ...]
    counts: tuple[Count, ...]

    def document(self) -> dict[str, Any]:
        return {
            "figures": [figure.document() for figure in self.figures],
            "counts": [count.document() for count in self.counts],
        }
