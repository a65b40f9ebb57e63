from typing import Any
from urllib.parse import quote

import msgspec
import pytest

from tests.catalog.builders import a_context, a_kubelet_config, a_machine_config, a_pool, an_hco
from virt_steward.catalog.conditions import (
    AnnotationCondition,
    CannotTell,
    Condition,
    FeatureGateCondition,
    HardwareCondition,
    HcoFieldCondition,
    ImageCondition,
    KubeVirtFeatureGateCondition,
    Met,
    NotSetElsewhereCondition,
    TopologyCondition,
    Unmet,
)
from virt_steward.catalog.reads import KUBEVIRT_GATES
from virt_steward.platform.machineconfigs import KubeletConfigFacts, MachineConfigs, machine_config_facts
from virt_steward.platform.nodes import Hardware
from virt_steward.platform.pools import Pool
from virt_steward.platform.topology import Topology as Shape

KEY = "platform.kubevirt.io/enable-fast"
PSI = NotSetElsewhereCondition("worker", kernel_argument="psi=1")


KUBELET = NotSetElsewhereCondition("worker", kubelet=("maxPods",))
CPU_MANAGER = KubeVirtFeatureGateCondition("CPUManager")


def gates(*names: Any) -> dict[str, Any]:
    found = {"spec": {"configuration": {"developerConfiguration": {"featureGates": list(names)}}}}
    return {"objects": {KUBEVIRT_GATES.ref: found}}


def a_drop_in(name: str, text: str, path: str = "/etc/openshift/kubelet.conf.d/99-theirs.conf") -> dict[str, Any]:
    file = {"path": path, "contents": {"source": f"data:,{quote(text)}"}}
    return a_machine_config(name, config={"storage": {"files": [file]}})


def machine_configs(*configs: dict[str, Any]) -> MachineConfigs:
    facts = tuple(machine_config_facts(msgspec.json.encode(config)) for config in configs)
    return MachineConfigs(facts, (msgspec.convert(a_pool(), Pool),), frozenset({"ours"}))


def kubelets(*configs: dict[str, Any]) -> MachineConfigs:
    return MachineConfigs(kubelets=tuple(msgspec.convert(config, KubeletConfigFacts) for config in configs))


@pytest.mark.parametrize(
    ("condition", "context"),
    [
        pytest.param(AnnotationCondition(KEY, "true"), {"hco": an_hco(annotations={KEY: "true"})}, id="an-annotation"),
        pytest.param(AnnotationCondition(KEY), {"hco": an_hco(annotations={KEY: ""})}, id="an-annotation-of-any-value"),
        pytest.param(FeatureGateCondition("cpu"), {"hco": an_hco(featureGates=[{"name": "cpu"}])}, id="a-feature-gate"),
        pytest.param(HcoFieldCondition("/spec/ksm"), {}, id="an-absent-field"),
        pytest.param(HcoFieldCondition("/spec/ksm"), {"hco": an_hco(virtualization={"ksm": {}})}, id="an-empty-field"),
        pytest.param(HardwareCondition("pciDevicesPresent"), {"hardware": Hardware(pci=True)}, id="pci"),
        pytest.param(HardwareCondition("numaNodesPresent"), {"hardware": Hardware(numa=True)}, id="numa"),
        pytest.param(HardwareCondition("vfioCapable"), {"hardware": Hardware(vfio=True)}, id="vfio"),
        pytest.param(HardwareCondition("usbDevicesPresent"), {"hardware": Hardware(usb=True)}, id="usb"),
        pytest.param(HardwareCondition("gpuPresent"), {"hardware": Hardware(gpu=True)}, id="gpu"),
        pytest.param(ImageCondition("exporter"), {"images": {"exporter": "image:1"}}, id="an-image"),
        pytest.param(TopologyCondition("isHCP"), {"topology": Shape(is_hcp=True)}, id="hosted"),
        pytest.param(TopologyCondition("isCompact"), {"topology": Shape(is_compact=True)}, id="compact"),
        pytest.param(
            TopologyCondition("hasSchedulableMasters"),
            {"topology": Shape(has_schedulable_masters=True)},
            id="schedulable-masters",
        ),
        pytest.param(TopologyCondition("isBareMetal"), {"topology": Shape(platform="BareMetal")}, id="a-platform"),
        pytest.param(
            TopologyCondition("isAWS", "false"), {"topology": Shape(platform="Azure")}, id="any-other-platform"
        ),
        pytest.param(PSI, {"machine_configs": machine_configs()}, id="nobody-else"),
        pytest.param(
            PSI, {"machine_configs": machine_configs(a_machine_config("ours", arguments=("psi=1",)))}, id="only-we"
        ),
        pytest.param(
            PSI,
            {
                "machine_configs": machine_configs(
                    a_machine_config("98-off", arguments=("psi=0",)), a_machine_config("50-on", arguments=("psi=1",))
                )
            },
            id="somebody-who-is-overridden",
        ),
        pytest.param(
            KUBELET, {"machine_configs": kubelets(a_kubelet_config("gpus", pool="gpu"))}, id="a-kubelet-elsewhere"
        ),
        pytest.param(
            KUBELET, {"machine_configs": machine_configs(a_drop_in("90-swap", "failSwapOn: false"))}, id="other-setting"
        ),
        pytest.param(
            KUBELET,
            {"machine_configs": machine_configs(a_drop_in("90-motd", "maxPods: 1", "/etc/motd"))},
            id="no-drop-in",
        ),
        pytest.param(CPU_MANAGER, gates("Snapshot", "CPUManager"), id="a-kubevirt-gate"),
    ],
)
def test_condition_is_met(condition: Condition, context: dict[str, Any]) -> None:
    assert condition.check(a_context(**context)) == Met()


@pytest.mark.parametrize(
    ("condition", "context", "why"),
    [
        pytest.param(AnnotationCondition(KEY, "true"), {}, "expected=true, actual=absent", id="no-annotation"),
        pytest.param(
            AnnotationCondition(KEY, "true"),
            {"hco": an_hco(annotations={KEY: "True"})},
            "expected=true, actual=True",
            id="another-value",
        ),
        pytest.param(AnnotationCondition(KEY), {}, "expected=any value, actual=absent", id="no-annotation-at-all"),
        pytest.param(FeatureGateCondition("cpu"), {}, "expected=Enabled, actual=not enabled", id="no-feature-gate"),
        pytest.param(
            HcoFieldCondition("/spec/virtualization/ksm"),
            {"hco": an_hco(version="v1beta1", ksm={"a": 1})},
            "expected=unconfigured, actual=configured",
            id="a-field-in-the-other-layout",
        ),
        pytest.param(
            HardwareCondition("gpuPresent"),
            {"hardware": Hardware(pci=True)},
            "expected=true, actual=false",
            id="other-hardware",
        ),
        pytest.param(ImageCondition("exporter"), {}, "expected=given, actual=absent", id="no-image"),
        pytest.param(
            TopologyCondition("isAWS"),
            {"topology": Shape(platform="GCP")},
            "expected=true, actual=false",
            id="another-platform",
        ),
        pytest.param(
            TopologyCondition("isHCP", "false"),
            {"topology": Shape(is_hcp=True)},
            "expected=false, actual=true",
            id="negated",
        ),
        pytest.param(
            PSI,
            {"machine_configs": machine_configs(a_machine_config("99-theirs", arguments=("quiet", "psi=1")))},
            "expected=set by nobody else, actual=set by 99-theirs",
            id="somebody-else",
        ),
        pytest.param(
            KUBELET,
            {"machine_configs": kubelets(a_kubelet_config("more-pods"), a_kubelet_config("few-pods"))},
            "expected=set by nobody else, actual=set by few-pods, more-pods",
            id="kubelets-of-somebody-else",
        ),
        pytest.param(
            KUBELET,
            {"machine_configs": machine_configs(a_drop_in("99-pods", '{"kind": "x", "maxPods": 99}'))},
            "expected=set by nobody else, actual=set by 99-pods",
            id="a-drop-in-of-somebody-else",
        ),
        pytest.param(
            CPU_MANAGER, gates("Snapshot"), "expected=enabled, actual=not enabled", id="another-kubevirt-gate"
        ),
        pytest.param(
            CPU_MANAGER, gates(["CPUManager"]), "expected=enabled, actual=not enabled", id="odd-kubevirt-gates"
        ),
        pytest.param(
            CPU_MANAGER,
            {"objects": {KUBEVIRT_GATES.ref: None}},
            "expected=enabled, actual=not enabled",
            id="no-kubevirt",
        ),
    ],
)
def test_condition_is_not_met(condition: Condition, context: dict[str, Any], why: str) -> None:
    assert condition.check(a_context(**context)) == Unmet(why)


@pytest.mark.parametrize(
    "condition",
    [
        pytest.param(HardwareCondition("gpuPresent"), id="nodes"),
        pytest.param(TopologyCondition("isHCP"), id="topology"),
        pytest.param(TopologyCondition("isHCP", "false"), id="negated-topology"),
        pytest.param(PSI, id="machine-configs"),
        pytest.param(KUBELET, id="kubelet-configs"),
        pytest.param(CPU_MANAGER, id="kubevirt"),
    ],
)
def test_condition_is_unknown_without_its_input(condition: Condition) -> None:
    assert isinstance(condition.check(a_context()), CannotTell)


@pytest.mark.parametrize(
    "asks",
    [
        pytest.param({}, id="nothing"),
        pytest.param({"swap": True, "kubelet": ("maxPods",)}, id="two-things"),
        pytest.param({"kernel_argument": "psi=1", "kubelet": ("maxPods",)}, id="an-argument-and-another-thing"),
    ],
)
def test_not_set_elsewhere_takes_exactly_one_subject(asks: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="exactly one of"):
        NotSetElsewhereCondition("worker", **asks)


def test_not_set_elsewhere_refuses_an_unknown_kubelet_setting() -> None:
    with pytest.raises(ValueError, match="unknown setting of the kubelet 'maxpods'"):
        NotSetElsewhereCondition("worker", kubelet=("maxPods", "maxpods"))


def test_kubevirt_feature_gate_is_shown_by_its_name() -> None:
    assert (str(CPU_MANAGER), CPU_MANAGER.opt_in_key) == ("kubevirtFeatureGate:CPUManager",) * 2
