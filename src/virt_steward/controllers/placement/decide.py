"""From what was seen to the cluster that is to run a machine, and why."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from virt_steward.controllers.placement.case import Case
from virt_steward.controllers.placement.strategies import STRATEGIES
from virt_steward.controllers.placement.verdicts import Abstain, Ask, Blocked, Chosen, Narrowed

if TYPE_CHECKING:
    from virt_steward.controllers.placement.seen import Seen
    from virt_steward.controllers.placement.verdicts import Verdict


@dataclass(frozen=True, slots=True)
class Step:
    """One strategy, and what it said."""

    strategy: str
    verdict: Verdict


@dataclass(frozen=True, slots=True)
class Decision:
    outcome: Chosen | Blocked | Ask
    steps: tuple[Step, ...]
    """All that was said, the outcome last."""

    @property
    def strategy(self) -> str:
        """Whose word decided."""
        return self.steps[-1].strategy


def decide(seen: Seen) -> Decision:
    case = Case(seen, seen.clusters)
    steps: list[Step] = []
    for strategy in STRATEGIES:
        verdict = strategy(case)
        steps.append(Step(strategy.__name__, verdict))
        match verdict:
            case Chosen() | Blocked() | Ask():
                return Decision(verdict, tuple(steps))
            case Narrowed(names):
                case = replace(case, candidates=tuple(one for one in case.candidates if one.name in names))
            case Abstain():
                continue
    raise AssertionError  # the last strategy never abstains
