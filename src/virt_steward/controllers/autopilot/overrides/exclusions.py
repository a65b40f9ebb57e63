"""Objects that are neither created nor changed: rules of kind, name and namespace, as YAML in an annotation."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

import yaml

from virt_steward.controllers.autopilot.overrides.globs import BadGlob, Glob
from virt_steward.objects.quoting import quoted

try:
    from yaml import CBaseLoader as BaseLoader  # many times faster
except ImportError:  # a PyYAML that was built without libyaml
    from yaml import BaseLoader  # type: ignore[assignment]

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from virt_steward.objects.identity import Ref

LONGEST = 16 * 1024
"""Characters: YAML takes long to read."""
_KEYS = ("kind", "name", "namespace")
_SHAPE = "it must be a list of rules, each with kind, name and optionally namespace"


@dataclass(frozen=True, slots=True)
class ExclusionRule:
    """Excludes the objects of a kind whose name and namespace match."""

    number: int
    """Its place in the annotation, from 1."""
    kind: str
    name: Glob
    namespace: Glob | None = None

    def __str__(self) -> str:
        where = f" in {self.namespace.text}" if self.namespace else ""
        return f"rule {self.number} ({self.kind} {self.name.text}{where})"

    def covers(self, kind: str, namespace: str, name: str) -> bool:
        if kind != self.kind or not self.name.matches(name):
            return False
        return self.namespace is None or self.namespace.matches(namespace)


@dataclass(frozen=True, slots=True)
class Exclusions:
    rules: tuple[ExclusionRule, ...] = ()

    def excludes(self, kind: str, namespace: str, name: str) -> ExclusionRule | None:
        """Return the first rule that covers the object, None if it is not excluded."""
        return next((rule for rule in self.rules if rule.covers(kind, namespace, name)), None)

    def unmatched(self, refs: Iterable[Ref]) -> tuple[ExclusionRule, ...]:
        """Return the rules that cover none of these objects."""
        every = [(ref.kind.name, ref.key.namespace, ref.key.name) for ref in refs]
        return tuple(rule for rule in self.rules if not any(rule.covers(*one) for one in every))


@dataclass(frozen=True, slots=True)
class UnreadableExclusions:
    """What is excluded is unknown, so nothing may be written."""

    why: str
    rule: int | None = None
    """The number of the bad rule; None if the text as a whole is bad."""


class _Bad(ValueError):
    def __init__(self, why: str, rule: int | None = None) -> None:
        super().__init__(why if rule is None else f"rule {rule}: {why}")
        self.rule = rule


@lru_cache(maxsize=2)
def parse(annotation: str | None) -> Exclusions | UnreadableExclusions:
    """Read the rules, once for the same text: it is asked for whenever anything of the platform changes."""
    if annotation and len(annotation) > LONGEST:
        return UnreadableExclusions(f"it is longer than {LONGEST} characters: use fewer rules, with * in their names")
    try:
        return Exclusions(tuple(_rule(number, items) for number, items in enumerate(_items(annotation or ""), 1)))
    except _Bad as bad:
        return UnreadableExclusions(str(bad), bad.rule)
    except (yaml.YAMLError, UnicodeError) as error:
        mark = getattr(error, "problem_mark", None)
        return UnreadableExclusions(f"it is not YAML{f' (line {mark.line + 1})' if mark else ''}")


def _items(text: str) -> Iterator[list[tuple[str, str]]]:
    """Read the rules event by event: libyaml's own composer overflows the stack on deep nesting."""
    events = yaml.parse(text, BaseLoader)
    next(events)
    if isinstance(next(events), yaml.StreamEndEvent):
        return
    match next(events):
        case yaml.ScalarEvent(value=""):
            return
        case yaml.SequenceStartEvent():
            number = 0
            while not isinstance(event := next(events), yaml.SequenceEndEvent):
                number += 1
                if not isinstance(event, yaml.MappingStartEvent):
                    raise _Bad("it must be a map with kind and name", number)
                yield [*_pairs(events, number)]
        case _:
            raise _Bad(_SHAPE)
    next(events)
    if not isinstance(next(events), yaml.StreamEndEvent):
        raise _Bad(f"it has more than one document; {_SHAPE}")


def _pairs(events: Iterator[yaml.Event], number: int) -> Iterator[tuple[str, str]]:
    while not isinstance(key := next(events), yaml.MappingEndEvent):
        value = next(events)
        if not isinstance(key, yaml.ScalarEvent) or not isinstance(value, yaml.ScalarEvent):
            raise _Bad("keys and values must be plain text", number)
        yield key.value, value.value


def _rule(number: int, items: list[tuple[str, str]]) -> ExclusionRule:
    given: dict[str, str] = {}
    for key, value in items:
        if key not in _KEYS:
            raise _Bad(f"unknown key {quoted(key)}: a rule has kind, name and namespace", number)
        if key in given:
            raise _Bad(f"duplicate key {key!r}: a dash may be missing", number)
        given[key] = value.strip()
    for key in ("kind", "name"):
        if not given.get(key):
            raise _Bad(f"{key} is required", number)
    try:
        namespace = Glob.parse(given["namespace"]) if given.get("namespace") else None
        return ExclusionRule(number, given["kind"], Glob.parse(given["name"]), namespace)
    except BadGlob as error:
        raise _Bad(str(error), number) from None
