"""Nodes, reduced to what is read: roles and hardware, labels for pool selectors, readiness, and rollout state."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

import msgspec

from virt_steward.platform.machineconfigs import LabelledMeta

if TYPE_CHECKING:
    from collections.abc import Iterable


_FEATURE = "feature.node.kubernetes.io/"
_ROLE = "node-role.kubernetes.io/"
_GPUS = frozenset(("nvidia.com/gpu", "amd.com/gpu", "gpu.intel.com/i915"))
_ORDINARY = frozenset(("cpu", "memory", "pods", "ephemeral-storage"))
_ORDINARY_PREFIXES = ("hugepages-", "attachable-volumes-", "devices.kubevirt.io/")
"""The last are /dev/kvm and the like, which every node with KubeVirt offers."""


@dataclass(frozen=True, slots=True)
class Hardware:
    """What at least one node has."""

    pci: bool = False
    numa: bool = False
    vfio: bool = False
    usb: bool = False
    gpu: bool = False


@dataclass(frozen=True, slots=True)
class Nodes:
    """The number of nodes; one node may have several roles."""

    total: int = 0
    workers: int = 0
    masters: int = 0


class NodeRolloutState(msgspec.Struct, frozen=True, gc=False):
    """What the machine config daemon of a node reports in its annotations."""

    current: str = ""
    desired: str = ""
    state: str = ""
    reason: str = ""


class NodeFacts(msgspec.Struct, frozen=True):
    """One node. Its capacity is evaluated once and not kept."""

    metadata: LabelledMeta
    master: bool = False
    worker: bool = False
    hardware: Hardware = Hardware()
    rollout: NodeRolloutState = NodeRolloutState()
    cordoned: bool = False
    ready: bool = True
    """False only if its condition Ready says so: a node without conditions has not reported yet."""
    ready_since: datetime | None = None
    """When it became ready or not ready; None if it does not say."""


def node_facts(raw: bytes) -> NodeFacts:
    """Decode a Node."""
    node = _DECODER.decode(raw)
    meta, labels, annotations = node.metadata, node.metadata.labels, node.metadata.annotations
    capacity = frozenset(name for name, amount in node.status.capacity.items() if str(amount) != "0")
    readiness = next((one for one in node.status.conditions if one.type == "Ready"), _NodeCondition())
    return NodeFacts(
        LabelledMeta(name=meta.name, uid=meta.uid, resource_version=meta.resource_version, labels=labels),
        master=f"{_ROLE}master" in labels or f"{_ROLE}control-plane" in labels,
        worker=f"{_ROLE}worker" in labels,
        hardware=Hardware(
            pci=_has_bus_label(labels, "pci") or any(_is_device(name) for name in capacity),
            numa=bool(annotations.topology_policy) or not labels.keys().isdisjoint(_NUMA),
            vfio=labels.get(f"{_FEATURE}iommu-enabled") == "true",
            usb=_has_bus_label(labels, "usb"),
            gpu=not capacity.isdisjoint(_GPUS),
        ),
        rollout=NodeRolloutState(annotations.current, annotations.desired, annotations.state, annotations.reason),
        cordoned=node.spec.unschedulable,
        ready=readiness.status in ("", "True"),
        ready_since=readiness.last_transition_time,
    )


def count_nodes(nodes: Iterable[NodeFacts]) -> Nodes:
    known = tuple(nodes)
    return Nodes(len(known), sum(node.worker for node in known), sum(node.master for node in known))


def detect_hardware(nodes: Iterable[NodeFacts]) -> Hardware:
    found = tuple(node.hardware for node in nodes)
    return Hardware(
        pci=any(one.pci for one in found),
        numa=any(one.numa for one in found),
        vfio=any(one.vfio for one in found),
        usb=any(one.usb for one in found),
        gpu=any(one.gpu for one in found),
    )


_NUMA = frozenset((f"{_FEATURE}cpu-hardware_multithreading", f"{_FEATURE}memory-numa"))


def _has_bus_label(labels: dict[str, str], bus: str) -> bool:
    """Node Feature Discovery writes `pci-0300_10de.present` for a device, others plain `pci-present`."""
    return f"{_FEATURE}{bus}-present" in labels or any(
        label.startswith(f"{_FEATURE}{bus}-") and label.endswith(".present") for label in labels
    )


def _is_device(resource: str) -> bool:
    return resource not in _ORDINARY and not resource.startswith(_ORDINARY_PREFIXES)


class _NodeAnnotations(msgspec.Struct):
    topology_policy: str = msgspec.field(name="kubevirt.io/topology-manager-policy", default="")
    current: str = msgspec.field(name="machineconfiguration.openshift.io/currentConfig", default="")
    desired: str = msgspec.field(name="machineconfiguration.openshift.io/desiredConfig", default="")
    state: str = msgspec.field(name="machineconfiguration.openshift.io/state", default="")
    reason: str = msgspec.field(name="machineconfiguration.openshift.io/reason", default="")


class _NodeMetadata(msgspec.Struct, rename="camel"):
    name: str = ""
    uid: str = ""
    resource_version: str = ""
    labels: dict[str, str] = {}
    annotations: _NodeAnnotations = msgspec.field(default_factory=_NodeAnnotations)


class _NodeCondition(msgspec.Struct, rename="camel"):
    type: str = ""
    status: str = ""
    last_transition_time: datetime | None = None


class _RawNodeStatus(msgspec.Struct):
    capacity: dict[str, str | int] = {}
    conditions: list[_NodeCondition] = []


class _RawNodeSpec(msgspec.Struct):
    unschedulable: bool = False


class _RawNode(msgspec.Struct):
    metadata: _NodeMetadata = msgspec.field(default_factory=_NodeMetadata)
    spec: _RawNodeSpec = msgspec.field(default_factory=_RawNodeSpec)
    status: _RawNodeStatus = msgspec.field(default_factory=_RawNodeStatus)


_DECODER = msgspec.json.Decoder(_RawNode)
