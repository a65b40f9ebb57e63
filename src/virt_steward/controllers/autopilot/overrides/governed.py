"""Fields that the advisor governs: the autopilot leaves them out, so that the two never set one field."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from virt_steward.controllers.autopilot.overrides.mask import Mask, masked
from virt_steward.controllers.autopilot.overrides.path_resolution import cut
from virt_steward.objects.paths import Pointer
from virt_steward.ssa.managers import AUTOPILOT

if TYPE_CHECKING:
    from virt_steward.ssa.locks import Object

_IDENTITY = frozenset(("apiVersion", "kind", "metadata"))


@dataclass(frozen=True, slots=True)
class GovernedFields:
    """What plans have applied to one object."""

    paths: frozenset[str] = frozenset()
    """As items of a plan list their managed fields: `spec.profiles`."""


NOT_GOVERNED = GovernedFields()


@dataclass(frozen=True, slots=True)
class NothingLeft:
    """All that is wanted is governed."""

    why: str


def without_governed(intent: Object, live: Object, governed: GovernedFields) -> Object | NothingLeft:
    """Return the intent without what is governed; values that the autopilot alone owns stay as they are.

    A governed field counts also if the intent does not have it: its live value must not vanish with our last apply.
    """
    found = (_pointer(intent, path) or _pointer(live, path) for path in governed.paths)
    pointers = tuple(sorted({pointer for pointer in found if pointer}))
    if not pointers:
        return intent
    rest = intent
    for pointer in pointers:
        rest = cut(rest, pointer.tokens)
    if rest.keys() <= _IDENTITY:
        return NothingLeft(f"the advisor governs all of it: {', '.join(map(str, pointers))}")
    return masked(intent, live, AUTOPILOT, Mask(pointers)).intent


def _pointer(obj: Object, path: str) -> Pointer | None:
    """Read a dotted path, in which names may have dots too; None if the object has nothing there."""
    value: Any = obj
    tokens: list[str] = []
    while path:
        names = value if isinstance(value, dict) else ()
        name = max((name for name in names if f"{path}.".startswith(f"{name}.")), key=len, default=None)
        if name is None:
            return None
        tokens.append(name)
        value, path = value[name], path[len(name) + 1 :]
    return Pointer(tuple(tokens)) if tokens else None
