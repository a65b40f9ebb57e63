"""What an installation says about the placement of its machines."""

from __future__ import annotations

from dataclasses import dataclass, field

from virt_steward.controllers.placement.fleet import FleetTimeouts
from virt_steward.controllers.placement.observation import PlacementRules
from virt_steward.controllers.placement.search import SearchTimeouts


@dataclass(frozen=True, slots=True)
class PlacementOptions:
    rules: PlacementRules = field(default_factory=PlacementRules)
    """By which a cluster is chosen."""
    limits: FleetTimeouts = field(default_factory=FleetTimeouts)
    """How patient we are with one cluster."""
    patience: SearchTimeouts = field(default_factory=SearchTimeouts)
    """How long a search takes, and how long its answers count."""
    probe_interval: float = 60.0
    """Seconds between two looks at a cluster that answers, more or less."""
