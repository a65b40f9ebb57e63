"""From what was seen to the cluster that is to run a machine, and why."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from virt_steward.controllers.placement.candidates import PlacementCase
from virt_steward.controllers.placement.rules import RULES
from virt_steward.controllers.placement.verdicts import Abstain, Ask, Blocked, Chosen, Narrowed

if TYPE_CHECKING:
    from virt_steward.controllers.placement.observation import PlacementObservation
    from virt_steward.controllers.placement.verdicts import Verdict


@dataclass(frozen=True, slots=True)
class RuleResult:
    """One strategy, and what it said."""

    strategy: str
    verdict: Verdict


@dataclass(frozen=True, slots=True)
class PlacementDecision:
    outcome: Chosen | Blocked | Ask
    steps: tuple[RuleResult, ...]
    """All that was said, the outcome last."""

    @property
    def strategy(self) -> str:
        """Whose word decided."""
        return self.steps[-1].strategy


def decide(seen: PlacementObservation) -> PlacementDecision:
    case = PlacementCase(seen, seen.clusters)
    steps: list[RuleResult] = []
    for strategy in RULES:
        verdict = strategy(case)
        steps.append(RuleResult(strategy.__name__, verdict))
        match verdict:
            case Chosen() | Blocked() | Ask():
                return PlacementDecision(verdict, tuple(steps))
            case Narrowed(names):
                case = replace(case, candidates=tuple(one for one in case.candidates if one.name in names))
            case Abstain():
                continue
    raise AssertionError  # the last strategy never abstains
