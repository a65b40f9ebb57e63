from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from tests.catalog.builders import a_node
from virt_steward.platform.nodes import Hardware, NodeFacts, Nodes, count_nodes, detect_hardware, node_facts
from virt_steward.platform.topology import Infrastructure, Scheduler, Topology, detect_topology

FEATURE = "feature.node.kubernetes.io"
BOTH = ("master", "worker")
SINCE = datetime(2026, 3, 1, 12, tzinfo=UTC)
READY = {"type": "Ready", "lastTransitionTime": "2026-03-01T12:00:00Z"}


def facts(*nodes: dict[str, Any]) -> list[NodeFacts]:
    return [node_facts(msgspec.json.encode(node)) for node in nodes]


@pytest.mark.parametrize(
    ("node", "expected"),
    [
        pytest.param(a_node(), Hardware(), id="nothing-special"),
        pytest.param(a_node(labels={f"{FEATURE}/pci-present": "true"}), Hardware(pci=True), id="a-pci-label"),
        pytest.param(
            a_node(labels={f"{FEATURE}/pci-0300_10de.present": "true"}), Hardware(pci=True), id="a-pci-device"
        ),
        pytest.param(a_node(capacity={"vendor.example/card": "2"}), Hardware(pci=True), id="an-extended-resource"),
        pytest.param(a_node(capacity={"vendor.example/card": "0"}), Hardware(), id="an-extended-resource-used-up"),
        pytest.param(a_node(capacity={"devices.kubevirt.io/kvm": "1k"}), Hardware(), id="what-kubevirt-itself-offers"),
        pytest.param(a_node(capacity={"hugepages-1Gi": "4Gi"}), Hardware(), id="huge-pages"),
        pytest.param(a_node(capacity={"nvidia.com/gpu": "1"}), Hardware(pci=True, gpu=True), id="an-nvidia-gpu"),
        pytest.param(a_node(capacity={"amd.com/gpu": "1"}), Hardware(pci=True, gpu=True), id="an-amd-gpu"),
        pytest.param(a_node(capacity={"gpu.intel.com/i915": "1"}), Hardware(pci=True, gpu=True), id="an-intel-gpu"),
        pytest.param(
            a_node(labels={f"{FEATURE}/cpu-hardware_multithreading": "true"}), Hardware(numa=True), id="threads"
        ),
        pytest.param(
            a_node(annotations={"kubevirt.io/topology-manager-policy": "single-numa-node"}),
            Hardware(numa=True),
            id="a-topology-policy",
        ),
        pytest.param(a_node(labels={f"{FEATURE}/iommu-enabled": "true"}), Hardware(vfio=True), id="an-iommu"),
        pytest.param(a_node(labels={f"{FEATURE}/iommu-enabled": "false"}), Hardware(), id="an-iommu-turned-off"),
        pytest.param(a_node(labels={f"{FEATURE}/usb-present": "true"}), Hardware(usb=True), id="a-usb-label"),
    ],
)
def test_node_facts_detect_hardware(node: dict[str, Any], expected: Hardware) -> None:
    assert detect_hardware(facts(node)) == expected


def test_detect_hardware_of_any_node() -> None:
    last = a_node("c", capacity={"nvidia.com/gpu": "1"})
    assert detect_hardware(facts(a_node("a"), a_node("b"), last)) == Hardware(pci=True, gpu=True)


@pytest.mark.parametrize(
    ("changes", "cordoned", "ready"),
    [
        pytest.param({}, False, True, id="nothing-said"),
        pytest.param({"spec": {"unschedulable": True}}, True, True, id="cordoned"),
        pytest.param({"status": {"conditions": [READY | {"status": "True"}]}}, False, True, id="ready"),
        pytest.param({"status": {"conditions": [READY | {"status": "False"}]}}, False, False, id="not-ready"),
        pytest.param({"status": {"conditions": [READY | {"status": "Unknown"}]}}, False, False, id="lost"),
    ],
)
def test_node_facts_say_whether_it_takes_work(changes: dict[str, Any], *, cordoned: bool, ready: bool) -> None:
    (node,) = facts({"metadata": {"name": "one"}, **changes})
    assert (node.cordoned, node.ready) == (cordoned, ready)
    assert node.ready_since == (SINCE if "status" in changes else None)


def test_node_facts_of_a_bare_node() -> None:
    bare = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "bare", "uid": "1"}}
    (node,) = facts(bare)
    assert (node.metadata.name, node.hardware, node.worker) == ("bare", Hardware(), False)


def test_count_nodes_by_role() -> None:
    nodes = facts(a_node("a", roles=BOTH), a_node("b", roles=("control-plane",)), a_node("c"), a_node("d", roles=()))
    assert count_nodes(nodes) == Nodes(total=4, workers=2, masters=2)


def an_infrastructure(**status: Any) -> Infrastructure:
    return msgspec.convert({"metadata": {"name": "cluster"}, "status": status}, Infrastructure)


def a_scheduler(*, schedulable: bool) -> Scheduler:
    return msgspec.convert({"metadata": {"name": "cluster"}, "spec": {"mastersSchedulable": schedulable}}, Scheduler)


@pytest.mark.parametrize(
    ("infrastructure", "scheduler", "nodes", "expected"),
    [
        pytest.param(None, None, (), Topology(), id="nothing"),
        pytest.param(
            an_infrastructure(controlPlaneTopology="External", platformStatus={"type": "AWS"}),
            None,
            (a_node(),),
            Topology(is_hcp=True, platform="AWS"),
            id="a-hosted-control-plane",
        ),
        pytest.param(
            an_infrastructure(controlPlaneTopology="HighlyAvailable", platformStatus={"type": "BareMetal"}),
            a_scheduler(schedulable=True),
            tuple(a_node(name, roles=BOTH) for name in "abc"),
            Topology(is_compact=True, has_schedulable_masters=True, platform="BareMetal"),
            id="three-nodes-that-do-all",
        ),
        pytest.param(
            None,
            None,
            (a_node("a", roles=BOTH), a_node("b")),
            Topology(has_schedulable_masters=True),
            id="a-working-master-and-a-worker",
        ),
        pytest.param(
            None,
            a_scheduler(schedulable=False),
            (a_node("a", roles=("master",)), a_node("b")),
            Topology(),
            id="masters-that-do-not-work",
        ),
    ],
)
def test_detect_topology(
    infrastructure: Infrastructure | None,
    scheduler: Scheduler | None,
    nodes: tuple[dict[str, Any], ...],
    expected: Topology,
) -> None:
    assert detect_topology(infrastructure, scheduler, facts(*nodes)) == expected
