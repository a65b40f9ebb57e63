"""The order in which holds count: the first that does not let a change begin is the reason that is named. Pure.

A missing approval comes first, since only people can give it. A freeze comes before a window, since it outlasts one.
The gates come last: they open and close by themselves, and to evaluate them costs requests. So they are evaluated only
if nothing else holds the change back.
"""

from __future__ import annotations

from enum import Enum, auto
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Mapping

T = TypeVar("T")


class HoldKind(Enum):
    """What can hold a change back, in the order in which it counts."""

    APPROVALS = auto()
    FREEZE = auto()
    WINDOW = auto()
    GATES = auto()


def in_order(checks: Mapping[HoldKind, T]) -> tuple[T, ...]:
    """The checks of a controller in the order that all controllers share."""
    return tuple(checks[hold] for hold in HoldKind if hold in checks)
