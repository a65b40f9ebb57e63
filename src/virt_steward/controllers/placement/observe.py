"""Gathers what bears on one machine, from what is known already: no cluster is asked here."""

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
    from virt_steward.controllers.placement.observation import Finding, Machine, PlacementRules, Unreachable
    from virt_steward.objects.identity import Key
    from virt_steward.runtime.store import Store


class KubevirtConfigMeta(Meta, frozen=True):
    labels: dict[str, str] = msgspec.field(default_factory=dict)
    generation: int = 0


class KubevirtConfigReport(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """The part of a KubevirtConfig's status that is ours; the rest belongs to others."""

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

    def usable(self, config: str) -> UnusableCluster | None: ...

    def silence(self, config: str) -> Unreachable | None: ...


@dataclass(frozen=True, slots=True)
class PlacementClusterView:
    """All that a choice is made from."""

    machines: Store[Machine]
    configs: Store[KubevirtConfig]
    health: FleetHealth
    ledger: Assignments
    rules: PlacementRules
    rooms: CapacityCache


def observe(view: PlacementClusterView, key: Key, findings: Mapping[str, Finding]) -> PlacementObservation | None:
    """None: there is no such machine."""
    machine = view.machines.get(key)
    return PlacementObservation(machine, clusters(view), findings, view.rules) if machine else None


def clusters(view: PlacementClusterView) -> tuple[MemberCluster, ...]:
    known = [_cluster(view, config) for config in view.configs]
    # What cannot be read is not absent: it may be the cluster that runs the machine.
    unreadable = [_unreadable(key.name, view.configs.unreadable(key)) for key in view.configs.unreadables()]
    return tuple(sorted((*known, *unreadable), key=lambda one: one.name))


def _cluster(view: PlacementClusterView, config: KubevirtConfig) -> MemberCluster:
    name = config.metadata.name
    silence = view.health.silence(name)
    machines = view.ledger.machines_on(name)
    room = view.rooms.of(name)
    return MemberCluster(
        name,
        config.metadata.labels,
        default=config.spec.default,
        weight=config.spec.weight,
        schedulable=config.spec.schedulable,
        unusable=view.health.usable(name),
        silent=silence.because if silence else "",
        machines=machines,
        free=room.with_machines(machines) if room else None,
    )


def _unreadable(name: str, problem: str | None) -> MemberCluster:
    because = f"KubevirtConfig {name} cannot be read: {problem}"
    return MemberCluster(name, None, unusable=UnusableCluster(PlacementReason.CONFIG_INCOMPLETE, because))
