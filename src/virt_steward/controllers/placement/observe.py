"""Makes the observation of one Machine from caches; no cluster is asked here."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import msgspec

from virt_steward.apis.kubevirtconfig import KubevirtConfigSpec
from virt_steward.apis.meta import Condition
from virt_steward.controllers.placement.observation import MemberCluster, PlacementObservation, UnusableCluster
from virt_steward.controllers.placement.verdicts import PlacementReason
from virt_steward.objects.meta import Meta

if TYPE_CHECKING:
    from collections.abc import Mapping

    from virt_steward.controllers.placement.assignments import Assignments
    from virt_steward.controllers.placement.capacity import CapacityCache
    from virt_steward.controllers.placement.observation import Finding, Machine, Unreachable
    from virt_steward.controllers.placement.options import PlacementRules
    from virt_steward.objects.identity import Key
    from virt_steward.runtime.store import Store


class KubevirtConfigMeta(Meta, frozen=True):
    labels: dict[str, str] = msgspec.field(default_factory=dict)
    generation: int = 0


class KubevirtConfigReport(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """The part of a KubevirtConfig's status that the placement writes."""

    phase: str = ""
    version: str = ""
    machines: int = 0
    observed_generation: int = 0
    conditions: tuple[Condition, ...] = ()


class KubevirtConfig(msgspec.Struct, frozen=True):
    """A KubevirtConfig."""

    metadata: KubevirtConfigMeta
    spec: KubevirtConfigSpec = KubevirtConfigSpec()
    status: KubevirtConfigReport = KubevirtConfigReport()


class FleetHealth(Protocol):
    """What is known of clusters."""

    def why_unusable(self, config: str) -> UnusableCluster | None: ...

    def last_failure(self, config: str) -> Unreachable | None: ...


@dataclass(frozen=True, slots=True)
class PlacementClusterView:
    """The caches from which an observation is made."""

    machines: Store[Machine]
    configs: Store[KubevirtConfig]
    health: FleetHealth
    assignments: Assignments
    rules: PlacementRules
    capacities: CapacityCache


def observe(view: PlacementClusterView, key: Key, findings: Mapping[str, Finding]) -> PlacementObservation | None:
    """None: there is no such Machine."""
    machine = view.machines.get(key)
    return PlacementObservation(machine, clusters(view), findings, view.rules) if machine else None


def clusters(view: PlacementClusterView) -> tuple[MemberCluster, ...]:
    known = [_cluster(view, config) for config in view.configs]
    # A KubevirtConfig that cannot be read is not absent: its cluster may run the VM.
    unreadable = [_unreadable(key.name, view.configs.unreadable(key)) for key in view.configs.unreadables()]
    return tuple(sorted((*known, *unreadable), key=lambda one: one.name))


def _cluster(view: PlacementClusterView, config: KubevirtConfig) -> MemberCluster:
    name = config.metadata.name
    failure = view.health.last_failure(name)
    machines = view.assignments.machines_on(name)
    capacity = view.capacities.of(name)
    return MemberCluster(
        name,
        config.metadata.labels,
        default=config.spec.default,
        weight=config.spec.weight,
        schedulable=config.spec.schedulable,
        unusable=view.health.why_unusable(name),
        unreachable=failure.message if failure else "",
        machines=machines,
        free=capacity.with_machines(machines) if capacity else None,
    )


def _unreadable(name: str, problem: str | None) -> MemberCluster:
    message = f"KubevirtConfig {name} cannot be read: {problem}"
    return MemberCluster(name, None, unusable=UnusableCluster(PlacementReason.CONFIG_INCOMPLETE, message))
