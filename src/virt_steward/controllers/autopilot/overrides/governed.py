"""Fields that the advisor governs: the autopilot leaves them out, so that the two never set the same field.

When an admin approves a plan, the advisor writes fields such as `spec.profiles` of the KubeDescheduler, and annotates
the object with `governed-by`. From then on these fields are the advisor's, and the rest of the object stays with the
autopilot. For example, the asset wants

    spec: {mode: Automatic, profiles: [LongLifecycle], deschedulingIntervalSeconds: 60}

and a plan governs `spec.profiles`. The autopilot then applies `mode` and `deschedulingIntervalSeconds` alone. As it no
longer sends `profiles`, the server deletes the value if nobody else owns it. Usually the advisor does. Between the
moment in which a plan starts and the advisor's first write it does not, so until then the autopilot sends the live
value, exactly as it does for a field that a user ignores (`mask.py`). It is not sent any more as soon as the advisor
owns it. The fields come back to the autopilot when an admin removes the annotation from the object.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from virt_steward.apis.virtplatformconfig import VIRT_PLATFORM_CONFIG
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
    configs: frozenset[str] = frozenset()
    """Names of the VirtPlatformConfigs whose plans applied them."""

    def __str__(self) -> str:
        return f"{self.governors} governs {', '.join(sorted(self.paths))}"

    @property
    def governors(self) -> str:
        return f"{VIRT_PLATFORM_CONFIG.name} {', '.join(sorted(self.configs)) or '(deleted)'}"


NOT_GOVERNED = GovernedFields()


@dataclass(frozen=True, slots=True)
class NothingLeft:
    """All that is wanted is governed."""

    message: str


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
        return NothingLeft(f"{governed.governors} governs all of it: {', '.join(map(str, pointers))}")
    return masked(intent, live, AUTOPILOT, Mask(pointers)).intent


def _pointer(obj: Object, path: str) -> Pointer | None:
    """Read a dotted path, in which names may have dots too; None if the object has nothing there.

    At each level the longest name wins: with `{"a.b": {"c": 1}, "a": {}}`, the path `a.b.c` is `/a.b/c`.
    """
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
