"""The frozen record of what was seen around one machine: itself, the clusters, and where its VM was found."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec

from virt_steward.apis.meta import LabelSelector
from virt_steward.controllers.placement.verdicts import PlacementReason
from virt_steward.objects.identity import Kind
from virt_steward.objects.meta import Meta

if TYPE_CHECKING:
    from collections.abc import Mapping

MACHINE = Kind("vitistack.io", "Machine", "machines")
MACHINE_VERSION = "v1alpha1"
MACHINE_API = f"{MACHINE.group}/{MACHINE_VERSION}"
CONFIG_ANNOTATION = "vitistack.io/kubevirt-config"
BECAUSE_ANNOTATION = "vitistack.io/kubevirt-config-because"
SELECTOR_ANNOTATION = "vitistack.io/cluster-selector"
STRATEGY_ANNOTATION = "vitistack.io/placement-strategy"
PROVIDER = "kubevirt"


class MachineRequest(msgspec.Struct, frozen=True):
    """Our annotations on a machine; all others are not kept."""

    config: str = msgspec.field(default="", name=CONFIG_ANNOTATION)
    selector: str = msgspec.field(default="", name=SELECTOR_ANNOTATION)
    strategy: str = msgspec.field(default="", name=STRATEGY_ANNOTATION)
    because: str = msgspec.field(default="", name=BECAUSE_ANNOTATION)
    """No wish, but our own note on the choice: see `because.py`."""


class MachineFieldsEntry(msgspec.Struct, frozen=True):
    """That a field manager has written something, and when."""

    manager: str = ""
    time: str = ""


class MachineMeta(Meta, frozen=True, rename="camel"):
    annotations: MachineRequest = MachineRequest()
    deletion_timestamp: str | None = None
    managed_fields: tuple[MachineFieldsEntry, ...] = ()
    """Ours alone; all others are not kept."""


class ProviderConfig(msgspec.Struct, frozen=True):
    name: str = ""


class MachineSpec(msgspec.Struct, frozen=True, rename="camel"):
    provider: str = ""
    provider_config: ProviderConfig = ProviderConfig()
    cluster_selector: LabelSelector | None = None


class MachineCondition(msgspec.Struct, frozen=True, rename="camel"):
    type: str = ""
    status: str = ""
    reason: str = ""
    message: str = ""
    last_transition_time: str = ""


class MachineStatus(msgspec.Struct, frozen=True):
    conditions: tuple[MachineCondition, ...] | None = None


class Machine(msgspec.Struct, frozen=True):
    metadata: MachineMeta
    spec: MachineSpec = MachineSpec()
    status: MachineStatus | None = None

    @property
    def is_ours(self) -> bool:
        """Whether it is for KubeVirt: no provider is named, or this one."""
        return {self.spec.provider, self.spec.provider_config.name} <= {"", PROVIDER}

    @property
    def is_going(self) -> bool:
        return self.metadata.deletion_timestamp is not None

    @property
    def conditions(self) -> tuple[MachineCondition, ...]:
        return (self.status and self.status.conditions) or ()

    @property
    def wishes(self) -> MachineRequest:
        return self.metadata.annotations


@dataclass(frozen=True, slots=True)
class UnusableCluster:
    """Why nothing can be done with a cluster, whoever asks for it."""

    reason: PlacementReason
    because: str


@dataclass(frozen=True, slots=True)
class CapacityFree:
    """What a cluster has left, each as a part of the whole: 1 is all of it, and less than 0 too little."""

    memory: float
    cpu: float | None = None
    """None: nobody tells."""


@dataclass(frozen=True, slots=True)
class MemberCluster:
    """A KubevirtConfig, and what is known of the cluster behind it."""

    name: str
    labels: Mapping[str, str] | None
    """None: nobody can read them."""
    default: bool = False
    weight: int = 100
    schedulable: bool = True
    unusable: UnusableCluster | None = None
    silent: str = ""
    """Why it does not answer; empty if it does, or nobody has asked."""
    machines: int = 0
    """Machines placed here."""
    free: CapacityFree | None = None
    """Where it can be read."""


@dataclass(frozen=True, slots=True)
class VmFound:
    """The cluster has the VM."""


@dataclass(frozen=True, slots=True)
class VmAbsent:
    """The cluster was asked, and has no such VM."""


@dataclass(frozen=True, slots=True)
class KubeVirtMissing:
    """The cluster was asked, and has no KubeVirt: no VM is there, and a new one would not run."""


@dataclass(frozen=True, slots=True)
class Unreachable:
    """Nobody can say: the cluster did not answer, would not, or could not be asked."""

    because: str
    reason: PlacementReason = PlacementReason.CLUSTERS_SILENT
    """Any other means that somebody has to mend something."""


Finding = VmFound | VmAbsent | KubeVirtMissing | Unreachable


@dataclass(frozen=True, slots=True)
class PlacementRules:
    """The settings that bear on a choice."""

    default_config: str = ""
    strategy: str = "none"
    strict_search: bool = False
    spread_label: str = "topology.kubernetes.io/region"
    vm_name: str = "vm-{machine}"

    def vm_of(self, machine: Machine) -> str:
        return self.vm_name.replace("{machine}", machine.metadata.name)


@dataclass(frozen=True, slots=True)
class PlacementObservation:
    machine: Machine
    clusters: tuple[MemberCluster, ...]
    """By name."""
    findings: Mapping[str, Finding]
    """By cluster, as far as they were asked."""
    rules: PlacementRules

    @property
    def strategy(self) -> str:
        """By which it is to be placed if nothing else decides."""
        return self.machine.wishes.strategy or self.rules.strategy
