"""Makes the observation of one Machine from caches; no cluster is asked here."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import msgspec

from virt_steward.apis.kubevirtconfig import KubevirtConfigSpec, ReportedCapacity
from virt_steward.apis.meta import Condition
from virt_steward.controllers.placement.observation import MemberCluster, PlacementObservation, UnusableCluster
from virt_steward.controllers.placement.verdicts import PlacementReason
from virt_steward.holds.freezes import NOT_FROZEN
from virt_steward.objects.meta import Meta

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from virt_steward.controllers.placement.assignments import Assignments
    from virt_steward.controllers.placement.capacity import CapacityCache
    from virt_steward.controllers.placement.observation import CapacityFree, Finding, Machine, Unreachable
    from virt_steward.controllers.placement.options import PlacementRules
    from virt_steward.holds.freezes import FreezeState
    from virt_steward.objects.identity import Key
    from virt_steward.runtime.store import Store

DEFAULT_NOTE = "vitistack.io/default"
"""On a KubevirtConfig: `true` has the same meaning as spec.default."""
SCHEDULABLE_NOTE = "vitistack.io/schedulable"
"""On a KubevirtConfig: `false` cordons the cluster, as spec.schedulable does."""
WEIGHT_NOTE = "vitistack.io/weight"
"""On a KubevirtConfig: the same as spec.weight, for the strategy `weight`."""

_WEIGHT = re.compile("[0-9]{1,3}|1000")


class KubevirtConfigNotes(
    msgspec.Struct,
    frozen=True,
    rename={"default": DEFAULT_NOTE, "schedulable": SCHEDULABLE_NOTE, "weight": WEIGHT_NOTE},
):
    """The annotations that decide as the spec does.

    The upstream CRD lacks those fields of the spec. If it is installed over ours, they are pruned, and these stay.
    """

    default: str = ""
    schedulable: str = ""
    weight: str = ""


class KubevirtConfigMeta(Meta, frozen=True):
    annotations: KubevirtConfigNotes = KubevirtConfigNotes()
    labels: dict[str, str] = msgspec.field(default_factory=dict)
    generation: int = 0


class KubevirtConfigReport(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """The part of a KubevirtConfig's status that the placement writes."""

    phase: str = ""
    version: str = ""
    machines: int = 0
    free: ReportedCapacity | None = None
    observed_generation: int = 0
    conditions: tuple[Condition, ...] = ()


class KubevirtConfig(msgspec.Struct, frozen=True):
    """A KubevirtConfig."""

    metadata: KubevirtConfigMeta
    spec: KubevirtConfigSpec = KubevirtConfigSpec()
    status: KubevirtConfigReport = KubevirtConfigReport()

    @property
    def is_default(self) -> bool:
        return self.spec.default or self.metadata.annotations.default == "true"

    @property
    def is_schedulable(self) -> bool:
        return self.spec.schedulable and self.metadata.annotations.schedulable != "false"

    @property
    def weight(self) -> int:
        """The annotation's, if it is a weight."""
        text = self.metadata.annotations.weight
        return int(text) if _WEIGHT.fullmatch(text) else self.spec.weight


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
    freeze: Callable[[], FreezeState] = lambda: NOT_FROZEN
    """Whether the installation is frozen now."""


def observe(view: PlacementClusterView, key: Key, findings: Mapping[str, Finding]) -> PlacementObservation | None:
    """None: there is no such Machine."""
    machine = view.machines.get(key)
    return PlacementObservation(machine, clusters(view), findings, view.rules, view.freeze()) if machine else None


def clusters(view: PlacementClusterView) -> tuple[MemberCluster, ...]:
    known = [_cluster(view, config) for config in view.configs]
    # A KubevirtConfig that cannot be read is not absent: its cluster may run the VM.
    unreadable = [_unreadable(key.name, view.configs.unreadable(key)) for key in view.configs.unreadables()]
    return tuple(sorted((*known, *unreadable), key=lambda one: one.name))


def _cluster(view: PlacementClusterView, config: KubevirtConfig) -> MemberCluster:
    name = config.metadata.name
    failure = view.health.last_failure(name)
    return MemberCluster(
        name,
        config.metadata.labels,
        default=config.is_default,
        weight=config.weight,
        schedulable=config.is_schedulable,
        unusable=view.health.why_unusable(name),
        unreachable=failure.message if failure else "",
        machines=view.assignments.machines_on(name),
        free=free_capacity(view, name),
    )


def free_capacity(view: PlacementClusterView, cluster: str) -> CapacityFree | None:
    """By the last measurement and the Machines that came since; None if it was not measured."""
    capacity = view.capacities.of(cluster)
    return capacity.with_machines(view.assignments.machines_on(cluster)) if capacity else None


def _unreadable(name: str, problem: str | None) -> MemberCluster:
    message = f"KubevirtConfig {name} cannot be read: {problem}"
    return MemberCluster(name, None, unusable=UnusableCluster(PlacementReason.CONFIG_INCOMPLETE, message))
