"""What a rule of the chain is: a title for users, and a pure function of the case."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from virt_steward.controllers.placement.candidates import PlacementCase
    from virt_steward.controllers.placement.verdicts import Verdict


@dataclass(frozen=True, slots=True)
class PlacementRule:
    title: str
    apply: Callable[[PlacementCase], Verdict]

    @property
    def name(self) -> str:
        """As the metric of decisions labels it."""
        return self.apply.__name__
