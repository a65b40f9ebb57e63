"""The frozen observation of one Machine: itself, the clusters, and where its VM was found."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import msgspec

from virt_steward.apis.meta import LabelSelector
from virt_steward.controllers.placement.verdicts import PlacementReason
from virt_steward.holds.freezes import NOT_FROZEN
from virt_steward.objects.decision_record import DecisionKeys, DecisionRecord, read_decision
from virt_steward.objects.identity import Kind
from virt_steward.objects.meta import Meta

if TYPE_CHECKING:
    from collections.abc import Mapping

    from virt_steward.controllers.placement.options import PlacementRules
    from virt_steward.holds.freezes import FreezeState

MACHINE = Kind("vitistack.io", "Machine", "machines")
MACHINE_VERSION = "v1alpha1"
MACHINE_API = f"{MACHINE.group}/{MACHINE_VERSION}"
CONFIG_ANNOTATION = "vitistack.io/kubevirt-config"
"""On a Machine: the KubevirtConfig of its cluster. Set it to choose a cluster; else the placement sets it."""
BECAUSE_ANNOTATION = "vitistack.io/kubevirt-config-because"
"""On a Machine: the cluster that the placement chose, and why."""
SELECTOR_ANNOTATION = "vitistack.io/cluster-selector"
"""On a Machine: a label selector; only KubevirtConfigs that match it are considered."""
STRATEGY_ANNOTATION = "vitistack.io/placement-strategy"
"""On a Machine: the strategy that ranks clusters for it."""
PROVIDER = "kubevirt"
DECISION = DecisionKeys.under("vitistack.io/")
"""On a Machine: the last decision of a person, such as the choice of a cluster."""
"""On a Machine: who chose its cluster."""


class MachineRequest(msgspec.Struct, frozen=True):
    """Our annotations on a Machine; all others are dropped."""

    config: str = msgspec.field(default="", name=CONFIG_ANNOTATION)
    selector: str = msgspec.field(default="", name=SELECTOR_ANNOTATION)
    strategy: str = msgspec.field(default="", name=STRATEGY_ANNOTATION)
    because: str = msgspec.field(default="", name=BECAUSE_ANNOTATION)
    """Written by the placement itself: why it chose the cluster (see `report.py`)."""
    decision: str = msgspec.field(default="", name=DECISION.decision)
    decided_by: str = msgspec.field(default="", name=DECISION.by)
    decided_at: str = msgspec.field(default="", name=DECISION.at)
    decision_comment: str = msgspec.field(default="", name=DECISION.comment)

    @property
    def last_decision(self) -> DecisionRecord | None:
        """Who chose the cluster; None if the placement did, or nobody has signed the choice."""
        found = (self.decision, self.decided_by, self.decided_at, self.decision_comment)
        record = read_decision(dict(zip(DECISION, found, strict=True)), DECISION) if self.decided_by else None
        return record if record and record.subject == self.config else None


class MachineFieldsEntry(msgspec.Struct, frozen=True):
    """That a field manager wrote something, and when."""

    manager: str = ""
    time: str = ""


class MachineMeta(Meta, frozen=True, rename="camel"):
    annotations: MachineRequest = MachineRequest()
    deletion_timestamp: str | None = None
    managed_fields: tuple[MachineFieldsEntry, ...] = ()
    """Those of the placement; all others are dropped."""


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
        """Whether it is for KubeVirt: it names no provider, or this one."""
        return {self.spec.provider, self.spec.provider_config.name} <= {"", PROVIDER}

    @property
    def is_deleting(self) -> bool:
        return self.metadata.deletion_timestamp is not None

    @property
    def conditions(self) -> tuple[MachineCondition, ...]:
        return (self.status and self.status.conditions) or ()

    @property
    def request(self) -> MachineRequest:
        return self.metadata.annotations


@dataclass(frozen=True, slots=True)
class UnusableCluster:
    """The cluster cannot be asked at all: its KubevirtConfig, Secret or kubeconfig is missing or invalid."""

    reason: PlacementReason
    message: str


@dataclass(frozen=True, slots=True)
class SecretNotReadYet(UnusableCluster):
    """Nothing is wrong so far: the Secret is being read."""


@dataclass(frozen=True, slots=True)
class CapacityFree:
    """The free part of a cluster's capacity: 1 is all of it, below 0 is overcommitted."""

    memory: float
    cpu: float | None = None
    """None: not known."""


@dataclass(frozen=True, slots=True)
class MemberCluster:
    """A KubevirtConfig, and what is known of the cluster behind it."""

    name: str
    labels: Mapping[str, str] | None
    """None: the KubevirtConfig cannot be read."""
    default: bool = False
    weight: int = 100
    schedulable: bool = True
    unusable: UnusableCluster | None = None
    unreachable: str = ""
    """Why the last request failed; empty if it did not, or there was none."""
    machines: int = 0
    """The number of Machines placed here."""
    free: CapacityFree | None = None
    """None: not known."""


@dataclass(frozen=True, slots=True)
class VmFound:
    """The cluster has the VM."""

    vm: str = field(default="", compare=False)
    """Its name, of those that were searched."""


@dataclass(frozen=True, slots=True)
class VmAbsent:
    """The cluster was asked, and has no such VM."""


@dataclass(frozen=True, slots=True)
class KubeVirtMissing:
    """The cluster was asked, and does not serve VirtualMachines: it has no VM, and a new one would not run."""


@dataclass(frozen=True, slots=True)
class Unreachable:
    """Not known: the cluster did not answer, refused the request, or could not be asked."""

    message: str
    reason: PlacementReason = PlacementReason.CLUSTERS_SILENT
    """Any other reason needs a person."""


Finding = VmFound | VmAbsent | KubeVirtMissing | Unreachable


@dataclass(frozen=True, slots=True)
class PlacementObservation:
    machine: Machine
    clusters: tuple[MemberCluster, ...]
    """By name."""
    findings: Mapping[str, Finding]
    """By cluster, as far as clusters were asked."""
    rules: PlacementRules
    freeze: FreezeState = NOT_FROZEN

    @property
    def strategy(self) -> str:
        """The name of the placement strategy for this Machine."""
        return self.machine.request.strategy or self.rules.strategy
