"""The shape of a cluster: who runs its control plane, on which platform, and where workloads may go."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec

from virt_steward.objects.identity import Key, Kind
from virt_steward.objects.meta import Meta

if TYPE_CHECKING:
    from collections.abc import Iterable

    from virt_steward.platform.nodes import NodeFacts

INFRASTRUCTURE = Kind("config.openshift.io", "Infrastructure", "infrastructures")
SCHEDULER = Kind("config.openshift.io", "Scheduler", "schedulers")
CLUSTER = Key("", "cluster")
"""Both have one object, of this name."""


class _PlatformStatus(msgspec.Struct, frozen=True):
    type: str = ""


class _InfrastructureStatus(msgspec.Struct, frozen=True, rename="camel"):
    control_plane_topology: str = ""
    platform_status: _PlatformStatus = _PlatformStatus()


class Infrastructure(msgspec.Struct, frozen=True):
    metadata: Meta
    status: _InfrastructureStatus = _InfrastructureStatus()


class _SchedulerSpec(msgspec.Struct, frozen=True, rename="camel"):
    masters_schedulable: bool = False


class Scheduler(msgspec.Struct, frozen=True):
    metadata: Meta
    spec: _SchedulerSpec = _SchedulerSpec()


@dataclass(frozen=True, slots=True)
class Topology:
    is_hcp: bool = False
    """The control plane is hosted elsewhere."""
    is_compact: bool = False
    """Every node is master and worker at once."""
    has_schedulable_masters: bool = False
    platform: str = ""
    """As OpenShift names it: AWS, Azure, GCP, BareMetal, VSphere, OpenStack…; empty on other clusters."""


def detect_topology(
    infrastructure: Infrastructure | None, scheduler: Scheduler | None, nodes: Iterable[NodeFacts]
) -> Topology:
    """Elsewhere than on OpenShift neither object exists, and nodes tell all."""
    known = tuple(nodes)
    masters_work = any(node.master and node.worker for node in known)
    status = infrastructure.status if infrastructure else _InfrastructureStatus()
    return Topology(
        is_hcp=status.control_plane_topology == "External",
        is_compact=masters_work and all(node.master and node.worker for node in known if node.master or node.worker),
        has_schedulable_masters=scheduler.spec.masters_schedulable if scheduler else masters_work,
        platform=status.platform_status.type,
    )
