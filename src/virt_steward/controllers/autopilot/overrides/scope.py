"""The scope annotation: whether the autopilot is on, and for which assets."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Protocol

from virt_steward.catalog.aliases import ALIASES, current_name
from virt_steward.controllers.autopilot.annotation_keys import SCOPE

if TYPE_CHECKING:
    from collections.abc import Iterable

LONGEST = 10_000
"""Characters: more than the names of all assets together."""
_ON = "true"
_OFF = "false"


class Activation(StrEnum):
    """Whether the autopilot is on where the annotation does not say so."""

    OPT_IN = "opt-in"
    """Off unless the annotation is true or a list."""
    OPT_OUT = "opt-out"
    """On unless the annotation is exactly false."""


class Listed(Protocol):
    """An asset as an allow-list knows it."""

    @property
    def name(self) -> str: ...
    @property
    def group(self) -> str: ...


@dataclass(frozen=True, slots=True)
class Idle:
    """Nothing is managed."""

    why: str
    typo: bool = False
    """It is probably a typo."""


@dataclass(frozen=True, slots=True)
class Everything:
    """All assets are managed."""

    typo: str = ""
    """What is probably a typo in the annotation."""


@dataclass(frozen=True, slots=True)
class Only:
    """The assets with one of these names, or of a group with one of these names."""

    names: frozenset[str]
    renamed: frozenset[str] = frozenset()
    """Names of the Go autopilot that the annotation has; `names` has ours instead."""


Scope = Idle | Everything | Only


def parse(annotation: str | None, activation: Activation = Activation.OPT_IN) -> Scope:
    """Read the annotation. A list narrows the scope with either activation; without a value, that decides."""
    if annotation and len(annotation) > LONGEST:
        return Idle(f"{SCOPE} is longer than {LONGEST} characters: list names or groups of assets", typo=True)
    text = (annotation or "").strip()
    names = frozenset(name for part in text.split(",") if (name := part.strip()))
    if text in (_ON, _OFF):
        return Everything() if text == _ON else Idle(f"{SCOPE} is {_OFF!r}")
    if not names:
        why = f"the HyperConverged has no annotation {SCOPE}" if annotation is None else f"{SCOPE} names no asset"
        return Idle(why) if activation is Activation.OPT_IN else Everything()
    if len(names) == 1 and (almost := next(iter(names)).casefold()) in (_ON, _OFF):
        return _likely_typo(text, almost, activation)
    return Only(frozenset(map(current_name, names)), names & ALIASES.keys())


def _likely_typo(text: str, almost: str, activation: Activation) -> Everything | Idle:
    problem = f"{SCOPE} is {text!r}, which is not an asset: did you mean {almost!r}?"
    if activation is Activation.OPT_IN:
        return Idle(problem, typo=True)
    return Everything(typo=f"{problem} All assets are managed until it is {_OFF!r}")


def unmatched(names: frozenset[str], assets: Iterable[Listed]) -> tuple[str, ...]:
    """Return the names that no asset or group has."""
    known = {name for asset in assets for name in (asset.name, asset.group)}
    return tuple(sorted(names - known))
