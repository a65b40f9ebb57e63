"""Chooses the cluster of a Machine from an observation, and says why. Pure functions."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from virt_steward.controllers.placement.candidates import PlacementCase
from virt_steward.controllers.placement.rules import RULES
from virt_steward.controllers.placement.verdicts import Abstain, Ask, Blocked, Chosen, Narrowed, Permitted
from virt_steward.objects.checks import CheckResult

if TYPE_CHECKING:
    from virt_steward.controllers.placement.observation import PlacementObservation
    from virt_steward.controllers.placement.rules.rule import PlacementRule
    from virt_steward.controllers.placement.verdicts import Verdict


@dataclass(frozen=True, slots=True)
class RuleResult:
    """One rule, and its verdict."""

    rule: PlacementRule
    verdict: Verdict


@dataclass(frozen=True, slots=True)
class PlacementDecision:
    outcome: Chosen | Blocked | Ask
    steps: tuple[RuleResult, ...]
    """Every rule up to the one that decided, which is the last."""

    @property
    def rule(self) -> PlacementRule:
        """The rule that decided."""
        return self.steps[-1].rule


def decide(observation: PlacementObservation) -> PlacementDecision:
    case = PlacementCase(observation, observation.clusters)
    steps: list[RuleResult] = []
    for rule in RULES:
        verdict = rule.apply(case)
        steps.append(RuleResult(rule, verdict))
        match verdict:
            case Chosen() | Blocked() | Ask():
                return PlacementDecision(verdict, tuple(steps))
            case Narrowed(names):
                case = replace(case, candidates=tuple(one for one in case.candidates if one.name in names))
            case Abstain() | Permitted():
                continue
    raise AssertionError  # the last rule never abstains


def trace(decision: PlacementDecision) -> tuple[CheckResult, ...]:
    """The whole chain for users. A rule that does not apply to this Machine counts as not reached, and says why."""
    applied = tuple(_check(one, decided=one is decision.steps[-1]) for one in decision.steps)
    return applied + tuple(CheckResult(rule.title, "not reached") for rule in RULES[len(applied) :])


def _check(step: RuleResult, *, decided: bool) -> CheckResult:
    match step.verdict:
        case Chosen(reason=reason) | Narrowed(reason=reason) | Permitted(reason):
            return CheckResult(step.rule.title, "pass", reason, decided)
        case Abstain(reason):
            return CheckResult(step.rule.title, "not reached", reason, decided)
        case Blocked(message=message):
            return CheckResult(step.rule.title, "fail", message, decided)
        case Ask(clusters):
            return CheckResult(step.rule.title, "not reached", f"{', '.join(clusters)} not asked yet", decided)
