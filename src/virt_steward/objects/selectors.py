"""Label selectors as kubectl writes them: `region=north,tier in (gold,silver),!cordoned`."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from virt_steward.objects.quoting import quoted

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

LONGEST = 1024
"""Characters: a longer selector takes too long to parse."""

_NAME = r"[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?"
_KEY = rf"({_NAME}/)?{_NAME}"
_VALUE = rf"({_NAME})?"
_TERM = re.compile(
    rf" *((?P<absent>!) *)?(?P<key>{_KEY}) *"
    rf"((?P<sign>==?|!=) *(?P<value>{_VALUE})|(?P<set>(not)?in) *\((?P<values>[^()]*)\))? *"
)


class BadSelector(ValueError):
    """The text is not a label selector."""


@dataclass(frozen=True, slots=True)
class Term:
    """One condition on one label."""

    key: str
    values: frozenset[str] | None
    """None: any value matches."""
    negated: bool

    def holds_for(self, labels: Mapping[str, str]) -> bool:
        matches = self.key in labels and (self.values is None or labels[self.key] in self.values)
        return matches is not self.negated


@dataclass(frozen=True, slots=True)
class Selector:
    terms: tuple[Term, ...]

    def matches(self, labels: Mapping[str, str]) -> bool:
        return all(term.holds_for(labels) for term in self.terms)


def parse_selector(text: str) -> Selector:
    if len(text) > LONGEST:
        raise BadSelector(f"a selector of {len(text)} characters is too long: write {LONGEST} at most")
    return Selector(tuple(_term(part) for part in _parts(text)))


def requirement(key: str, operator: str | None, values: Iterable[str]) -> Term:
    """One of matchExpressions. Raises BadSelector for an unknown operator."""
    match operator:
        case "In" | "NotIn":
            return Term(key, frozenset(values), negated=operator == "NotIn")
        case "Exists" | "DoesNotExist":
            return Term(key, None, negated=operator == "DoesNotExist")
    raise BadSelector(f"{quoted(str(operator))} is not an operator of a label selector")


def _parts(text: str) -> list[str]:
    """Split at commas, but not at those within parentheses."""
    parts, begin, inside = [], 0, False
    for found in re.finditer("[(),]", text):
        if found[0] != ",":
            inside = found[0] == "("
        elif not inside:
            parts.append(text[begin : found.start()])
            begin = found.end()
    return [*parts, text[begin:]]


def _term(text: str) -> Term:
    found = _TERM.fullmatch(text)
    if not found or (found["absent"] and (found["sign"] or found["set"])):
        raise BadSelector(
            f"{quoted(text.strip())} is not a condition on a label: write key=value, key in (a,b), key or !key"
        )
    if found["set"]:
        values = frozenset(value.strip() for value in found["values"].split(","))
        if not all(re.fullmatch(_VALUE, value) for value in values):
            raise BadSelector(f"{quoted(text.strip())} lists an invalid label value")
        return Term(found["key"], values, negated=found["set"] == "notin")
    if found["sign"]:
        return Term(found["key"], frozenset({found["value"]}), negated=found["sign"] == "!=")
    return Term(found["key"], None, negated=found["absent"] is not None)
