"""What an installation says about the placement of its machines."""

from __future__ import annotations

from dataclasses import dataclass, field

from virt_steward.controllers.placement.fleet import Limits
from virt_steward.controllers.placement.search import Patience
from virt_steward.controllers.placement.seen import Rules


@dataclass(frozen=True, slots=True)
class Options:
    rules: Rules = field(default_factory=Rules)
    """By which a cluster is chosen."""
    limits: Limits = field(default_factory=Limits)
    """How patient we are with one cluster."""
    patience: Patience = field(default_factory=Patience)
    """How long a search takes, and how long its answers count."""
    probe_interval: float = 60.0
    """Seconds between two looks at a cluster that answers, more or less."""
