"""Drop-ins of the kubelet, in MachineConfigs."""

from typing import Any

import msgspec
import pytest

from tests.assets.contexts import Cluster, is_wanted, rendered, rendering
from tests.assets.ignition import files_of
from tests.catalog.builders import a_kubelet_config, a_machine_config
from virt_steward.catalog.render import RenderFailed
from virt_steward.catalog.yamlread import document
from virt_steward.platform.machineconfigs import KubeletConfigFacts, MachineConfigs, machine_config_facts

FOLDER = "/etc/openshift/kubelet.conf.d"
KUBEVIRT = "kubevirt-kubevirt-hyperconverged"
GATES = {KUBEVIRT: {"spec": {"configuration": {"developerConfiguration": {"featureGates": ["CPUManager"]}}}}}
ANNOTATIONS = {
    "kubelet-perf-settings": {"enable-kubelet-performance-settings": "true"},
    "kubelet-cpu-manager": {"enable-cpu-manager-perf-tunings": "true"},
}


def max_pods(number: Any) -> dict[str, Any]:
    return {"deployment": {"nodePlacements": {"infra": {"maxPods": number}}}}


def drop_in(name: str, path: str, spec: dict[str, Any] | None = None) -> dict[str, Any]:
    """The one file of a MachineConfig for workers."""
    found = rendered(name, Cluster(spec=spec or {}))
    assert found["metadata"]["labels"]["machineconfiguration.openshift.io/role"] == "worker"
    [(there, file)] = files_of(found["spec"]["config"]).items()
    assert (there, file.mode) == (f"{FOLDER}/{path}", 0o644)
    content: dict[str, Any] = document(file.text)
    assert content.pop("apiVersion") == "kubelet.config.k8s.io/v1beta1"
    assert content.pop("kind") == "KubeletConfiguration"
    return content


@pytest.mark.parametrize(
    ("spec", "pods"),
    [
        pytest.param({}, 500, id="the-usual-number"),
        pytest.param(max_pods(250), 250, id="the-number-it-gives"),
    ],
)
def test_workers_run_as_many_pods_as_the_hyperconverged_wants(spec: dict[str, Any], pods: int) -> None:
    assert rendered("kubelet-perf-settings", Cluster())["metadata"]["name"] == "95-worker-kubelet-perf-settings"
    wanted = {"nodeStatusMaxImages": 500, "maxPods": pods, "autoSizingReserved": True}
    assert drop_in("kubelet-perf-settings", "95-perf.conf", spec) == wanted


@pytest.mark.parametrize("number", [0, -1, 2**31, 2**70, "500", 1.5, True])
def test_a_number_with_which_no_kubelet_starts_is_refused(number: Any) -> None:
    made = rendering("kubelet-perf-settings", Cluster(spec=max_pods(number)))
    assert isinstance(made, RenderFailed)
    assert "is needed here, not" in made.why


def test_guests_that_ask_for_them_get_processors_of_their_own() -> None:
    assert rendered("kubelet-cpu-manager", Cluster())["metadata"]["name"] == "96-worker-kubelet-cpu-manager"
    assert drop_in("kubelet-cpu-manager", "96-cpu-manager.conf") == {
        "cpuManagerPolicy": "static",
        "cpuManagerPolicyOptions": {"full-pcpus-only": "true"},
        "cpuManagerReconcilePeriod": "5s",
        "reservedSystemCPUs": "0-1",
        "kubeReserved": {"cpu": "1"},
        "topologyManagerPolicy": "best-effort",
    }, "and no static memory manager, with which a kubelet may not start"


@pytest.mark.parametrize("name", ANNOTATIONS)
def test_kubelet_settings_need_their_annotation(name: str) -> None:
    assert is_wanted(name, Cluster(ANNOTATIONS[name], objects=GATES))
    assert not is_wanted(name, Cluster(objects=GATES))


def test_cpu_manager_needs_the_gate_of_kubevirt() -> None:
    gate_of_the_hco = {"featureGates": [{"name": "CPUManager"}]}
    assert not is_wanted("kubelet-cpu-manager", Cluster(ANNOTATIONS["kubelet-cpu-manager"], gate_of_the_hco))


@pytest.mark.parametrize("name", ANNOTATIONS)
def test_a_kubelet_that_somebody_else_configures_is_left_to_them_by(name: str) -> None:
    drop_ins = rendered(name, Cluster())["spec"]["config"]
    same = machine_config_facts(msgspec.json.encode(a_machine_config("99-same", config=drop_ins)))
    kubelet = msgspec.convert(a_kubelet_config("more-pods"), KubeletConfigFacts)
    for theirs in (MachineConfigs(kubelets=(kubelet,)), MachineConfigs((same,))):
        assert not is_wanted(name, Cluster(ANNOTATIONS[name], objects=GATES, machine_configs=theirs))
    ours = MachineConfigs((same,), ours=frozenset(("99-same",)))
    assert is_wanted(name, Cluster(ANNOTATIONS[name], objects=GATES, machine_configs=ours))


@pytest.mark.parametrize("name", ANNOTATIONS)
def test_condition_names_every_setting_of_the_drop_in(name: str) -> None:
    """A setting that it does not name would override what others have set."""
    content = document(next(iter(files_of(rendered(name, Cluster())["spec"]["config"]).values())).text)
    nobody_reads = {"apiVersion", "kind", "autoSizingReserved"}
    for setting in content.keys() - nobody_reads:
        file = {"path": f"{FOLDER}/99-theirs.conf", "contents": {"source": f"data:,{setting}:%20x"}}
        theirs = a_machine_config("99-theirs", config={"storage": {"files": [file]}})
        known = MachineConfigs((machine_config_facts(msgspec.json.encode(theirs)),))
        assert not is_wanted(name, Cluster(ANNOTATIONS[name], objects=GATES, machine_configs=known)), setting
