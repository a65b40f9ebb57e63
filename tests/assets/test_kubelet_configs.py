"""KubeletConfigs, of which only the newest in a pool counts."""

import msgspec
import pytest

from tests.assets.contexts import Cluster, catalog, is_wanted, rendered
from tests.catalog.builders import a_kubelet_config
from virt_steward.platform.machineconfigs import KubeletConfigFacts, MachineConfigs

WORKERS = {"matchLabels": {"pools.operator.machineconfiguration.openshift.io/worker": ""}}


@pytest.mark.parametrize(
    ("spec", "pods"),
    [
        pytest.param({}, 500, id="the-usual-number"),
        pytest.param({"deployment": {"nodePlacements": {"infra": {"maxPods": 250}}}}, 250, id="the-number-it-gives"),
    ],
)
def test_workers_run_as_many_pods_as_the_hyperconverged_wants(spec: dict[str, object], pods: int) -> None:
    found = rendered("kubelet-perf-settings", Cluster(spec=spec))
    assert found["metadata"]["name"] == "virt-perf-settings"
    assert found["spec"] == {
        "autoSizingReserved": True,
        "machineConfigPoolSelector": WORKERS,
        "kubeletConfig": {"nodeStatusMaxImages": -1, "maxPods": pods},
    }


def test_guests_that_ask_for_them_get_processors_of_their_own() -> None:
    found = rendered("kubelet-cpu-manager", Cluster())
    assert found["metadata"]["name"] == "virt-cpu-manager"
    assert found["spec"]["machineConfigPoolSelector"] == WORKERS
    wanted = {
        "cpuManagerPolicy": "static",
        "cpuManagerPolicyOptions": {"full-pcpus-only": "true"},
        "cpuManagerReconcilePeriod": "5s",
        "reservedSystemCPUs": "0-1",
        "kubeReserved": {"cpu": "1"},
        "topologyManagerPolicy": "best-effort",
        "memoryManagerPolicy": "Static",
        "reservedMemory": [{"numaNode": 0, "limits": {"memory": "1124Mi"}}],
    }
    assert wanted.items() <= found["spec"]["kubeletConfig"].items()


@pytest.mark.parametrize("name", ["kubelet-perf-settings", "kubelet-cpu-manager"])
def test_a_kubelet_that_somebody_else_configures_is_left_to_them_by(name: str) -> None:
    gate = {"featureGates": [{"name": "CPUManager"}]}
    theirs = MachineConfigs(kubelets=(msgspec.convert(a_kubelet_config("more-pods"), KubeletConfigFacts),))
    assert is_wanted(name, Cluster(spec=gate))
    assert not is_wanted(name, Cluster(spec=gate, machine_configs=theirs))


def test_a_kubelet_with_static_memory_would_start() -> None:
    """It compares what is reserved on NUMA nodes with what is reserved for the system and for eviction."""
    spec = rendered("kubelet-cpu-manager", Cluster())["spec"]
    assert spec["autoSizingReserved"] is False, "else the system's share follows the size of the node"
    assert spec["kubeletConfig"]["systemReserved"] == {"memory": "1Gi"}
    assert spec["kubeletConfig"]["reservedMemory"][0]["limits"]["memory"] == f"{1024 + 100}Mi"


def test_the_configuration_that_displaces_the_other_repeats_it_and_comes_later() -> None:
    usual, newer = (
        rendered(name, Cluster())["spec"]["kubeletConfig"] for name in ("kubelet-perf-settings", "kubelet-cpu-manager")
    )
    assert usual.items() <= newer.items()
    order = [asset.name for asset in catalog().assets]
    assert order.index("kubelet-perf-settings") < order.index("kubelet-cpu-manager")
