"""What a placement strategy is: a name, one line of help, and a function that ranks clusters."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from virt_steward.controllers.placement.observation import MemberCluster
    from virt_steward.controllers.placement.options import PlacementRules


@dataclass(frozen=True, slots=True)
class ClusterScore:
    """Why a strategy ranks a cluster where it does."""

    cluster: str
    words: str


@dataclass(frozen=True, slots=True)
class PlacementStrategy:
    name: str
    """As --placement-strategy and the annotation of a Machine spell it."""
    help: str
    """What it does, for the help text."""
    rank: Callable[[tuple[MemberCluster, ...], PlacementRules], tuple[ClusterScore, ...]]
    """Orders clusters that are all suitable, the best first."""
    needs_capacity: bool = False
    """Whether the free memory and CPU of the clusters are measured before it ranks them."""
