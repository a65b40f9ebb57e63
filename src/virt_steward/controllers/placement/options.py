"""The settings of the placement."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from virt_steward.controllers.placement.strategies import NO_STRATEGY
from virt_steward.objects.installation import NAMESPACE

if TYPE_CHECKING:
    from virt_steward.controllers.placement.observation import Machine


@dataclass(frozen=True, slots=True)
class PlacementRules:
    """The settings that decide which cluster is chosen."""

    default_config: str = ""
    strategy: str = NO_STRATEGY
    strict_search: bool = False
    spread_label: str = "topology.kubernetes.io/region"
    vm_names: tuple[str, ...] = ("vm-{machine}",)
    """Templates: a Machine's VM may have any of these names."""

    def vms_of(self, machine: Machine) -> tuple[str, ...]:
        """The names that the Machine's VM may have."""
        return tuple(template.replace("{machine}", machine.metadata.name) for template in self.vm_names)


@dataclass(frozen=True, slots=True)
class FleetTimeouts:
    """Limits for the requests to one cluster, in seconds."""

    timeout: float = 5.0
    """For one request."""
    first_retry: float = 1.0
    """The backoff after a failure; each further failure doubles it."""
    longest_retry: float = 60.0


@dataclass(frozen=True, slots=True)
class SearchTimeouts:
    """Limits for a search of all clusters, in seconds."""

    deadline: float = 10.0
    """A cluster that has not answered by then counts as unreachable."""
    memory: float = 15.0
    """For so long an answer is remembered."""
    apart: float = 1.0
    """The least time between two lists of the same VMs, however many Machines ask."""


@dataclass(frozen=True, slots=True)
class PlacementOptions:
    rules: PlacementRules = field(default_factory=PlacementRules)
    limits: FleetTimeouts = field(default_factory=FleetTimeouts)
    timeouts: SearchTimeouts = field(default_factory=SearchTimeouts)
    namespace: str = NAMESPACE
    """Where the controller runs, and the ConfigMap is that freezes the installation."""
    probe_interval: float = 60.0
    """Seconds between two probes of a cluster that answers, with some jitter."""
