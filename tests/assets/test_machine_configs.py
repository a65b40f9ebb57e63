"""What goes to hosts: MachineConfigs that a node would take, with the contents that they should have."""

import re
import subprocess
from dataclasses import replace
from typing import Any

import msgspec
import pytest

from tests.assets.contexts import Cluster, catalog, is_wanted, rendered, rendering
from tests.assets.hosts import ASSETS, SCRIPTS
from tests.assets.ignition import files_of, units_of
from virt_steward.catalog.load import MANAGED_BY, MANAGER
from virt_steward.catalog.render import RenderedNothing
from virt_steward.platform.machineconfigs import MachineConfigs, machine_config_facts
from virt_steward.platform.nodes import Hardware
from virt_steward.platform.topology import Topology

FOLDER = ASSETS / "machine-config"
ROLE = "machineconfiguration.openshift.io/role"
BUSES = {
    "permittedHostDevices": {
        "pciHostDevices": [{"pciDeviceSelector": "10DE:1EB8", "resourceName": "nvidia.com/t4"}],
        "usbHostDevices": [{"resourceName": "kubevirt.io/disk", "selectors": [{"vendor": "46f4", "product": "1"}]}],
    }
}
EVERYTHING = Cluster(spec={"virtualization": BUSES})
ALL_HARDWARE = Hardware(pci=True, numa=True, vfio=True, usb=True, gpu=True)

NAMES = {
    "ksm-zero-only": ("99-worker-ksm-zero-only", "worker"),
    "ksm-zero-only-master": ("99-master-ksm-zero-only", "master"),
    "kubelet-cpu-manager": ("96-worker-kubelet-cpu-manager", "worker"),
    "kubelet-perf-settings": ("95-worker-kubelet-perf-settings", "worker"),
    "numa-topology": ("90-worker-numa-topology", "worker"),
    "pci-passthrough": ("50-virt-pci-passthrough", "worker"),
    "psi-enable": ("99-openshift-machineconfig-worker-psi-karg", "worker"),
    "psi-enable-master": ("99-openshift-machineconfig-master-psi-karg", "master"),
    "scsi-persistent-reservations": ("99-worker-multipath-reservation-key", "worker"),
    "scsi-persistent-reservations-master": ("99-master-multipath-reservation-key", "master"),
    "swap-enable": ("90-worker-swap-online", "worker"),
    "thp-tuning": ("99-worker-thp-tuning", "worker"),
    "thp-tuning-master": ("99-master-thp-tuning", "master"),
    "thp-tuning-kernelcore": ("99-worker-thp-tuning-kernelcore", "worker"),
    "thp-tuning-kernelcore-master": ("99-master-thp-tuning-kernelcore", "master"),
    "usb-passthrough": ("50-virt-usb-passthrough", "worker"),
    "vfio-assign": ("50-virt-vfio-assign", "worker"),
    "vm-drain-shutdown-inhibitor": ("99-worker-vm-drain-shutdown-inhibitor", "worker"),
    "vm-drain-shutdown-inhibitor-master": ("99-master-vm-drain-shutdown-inhibitor", "master"),
}


def config_of(name: str) -> dict[str, Any]:
    config: dict[str, Any] = rendered(name, EVERYTHING)["spec"].get("config", {})
    return config


def test_every_machine_config_is_looked_at() -> None:
    assert {asset.name for asset in catalog().assets if asset.object.kind.name == "MachineConfig"} == NAMES.keys()


@pytest.mark.parametrize("name", NAMES)
def test_a_node_would_take(name: str) -> None:
    obj = rendered(name, EVERYTHING)
    object_name, role = NAMES[name]
    assert obj["metadata"] == {"name": object_name, "labels": {ROLE: role, MANAGED_BY: MANAGER}}
    assert obj["spec"].keys() in ({"config"}, {"kernelArguments"})
    config = config_of(name)
    assert config.get("ignition", {"version": "3.5.0"}) == {"version": "3.5.0"}
    assert config.keys() <= {"ignition", "storage", "systemd"}
    files, units = files_of(config), units_of(config)
    assert all(file.text.endswith("\n") for file in files.values())
    for unit in units.values():
        for script in re.findall(r"/usr/local/bin/\S+", unit.get("Service", "ExecStart", fallback="")):
            assert files[script].mode == 0o755
            assert files[script].text == SCRIPTS[script.rpartition("/")[2]].read_text()


@pytest.mark.parametrize("name", NAMES)
def test_the_shell_understands_the_commands_of(name: str) -> None:
    for unit in config_of(name).get("systemd", {}).get("units", []):
        for command in re.findall(r"=/bin/sh -c '(.*)'$", unit.get("contents", ""), re.MULTILINE):
            checked = subprocess.run(["sh", "-n"], input=command.replace("$$", "$"), check=False, text=True)
            assert checked.returncode == 0, command


@pytest.mark.parametrize("name", NAMES)
def test_no_build_of_zlib_changes_a_byte_of_a_script_in(name: str) -> None:
    files = files_of(config_of(name))
    assert not [path for path, file in files.items() if file.text.encode() not in file.raw]


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("pci-passthrough", ["intel_iommu=on", "iommu=pt"]),
        ("psi-enable", ["psi=1"]),
        ("psi-enable-master", ["psi=1"]),
        ("thp-tuning-kernelcore", ["kernelcore=2G", "movablecore=97%"]),
        ("thp-tuning-kernelcore-master", ["kernelcore=2G", "movablecore=97%"]),
    ],
)
def test_the_kernel_is_given_arguments_by(name: str, arguments: list[str]) -> None:
    assert rendered(name, Cluster())["spec"] == {"kernelArguments": arguments}


def test_swap_is_on_before_the_kubelet_which_then_uses_it() -> None:
    config = config_of("swap-enable")
    files, units = files_of(config), units_of(config)
    kubelet = files["/etc/openshift/kubelet.conf.d/90-swap.conf"]
    assert (kubelet.mode, kubelet.text) == (0o644, (FOLDER / "swap-enable/90-swap.conf").read_text())
    assert "failSwapOn: false" in kubelet.text
    assert "swapBehavior: LimitedSwap" in kubelet.text
    disk, file = units["swap-disk-enable.service"], units["ocpswap-file-enable.service"]
    assert disk["Service"]["ExecStart"] == "/usr/sbin/swapon --priority 100 /dev/disk/by-partlabel/OCPSWAP"
    assert file["Service"]["ExecStart"] == "/usr/sbin/swapon --priority 10 /var/tmp/ocpswap.file"
    assert {unit["Unit"]["Before"] for unit in (disk, file)} == {"kubelet-dependencies.target"}


def test_the_system_itself_does_not_swap_and_goes_before_pods() -> None:
    units = units_of(config_of("swap-enable"))
    system = dict(units["system.slice.d/50-kubevirt-swap.conf"]["Slice"])
    pods = dict(units["kubepods.slice.d/50-kubevirt-swap.conf"]["Slice"])
    assert system == {"MemorySwapMax": "0", "IOWeight": "800", "CPUWeight": "800"}
    assert pods == {"IOWeight": "100"}


def test_swap_brings_these_units_and_files() -> None:
    config = config_of("swap-enable")
    assert {name for name in units_of(config) if name.endswith(".service")} == {
        "swap-disk-enable.service",
        "ocpswap-file-enable.service",
        "kubevirt-tune-watermarks.service",
        "kubevirt-io-latency-setup.service",
        "remove-swap-for-burstable-hook.service",
        "remove-oci-hook-swap.service",
    }
    assert files_of(config).keys() == {
        "/etc/openshift/kubelet.conf.d/90-swap.conf",
        "/usr/local/bin/kubevirt-tune-watermarks.py",
        "/usr/local/bin/kubevirt-io-latency-setup.py",
    }


def test_a_shutdown_may_be_held_up_for_longer_than_guests_are_waited_for() -> None:
    config = config_of("vm-drain-shutdown-inhibitor")
    logind = files_of(config)["/etc/systemd/logind.conf.d/99-vm-drain-shutdown-inhibitor.conf"].text
    patience = re.search(r"^PATIENCE = (\d+)", SCRIPTS["kubevirt-vm-drain.py"].read_text(), re.MULTILINE)
    held_up = re.search(r"^InhibitDelayMaxSec=(\d+)$", logind, re.MULTILINE)
    assert patience
    assert held_up
    assert (int(patience[1]), int(held_up[1])) == (120, 150)
    started = units_of(config)["vm-drain-shutdown-inhibitor.service"]["Service"]["ExecStart"]
    assert started.startswith("/usr/bin/systemd-inhibit --what=shutdown --mode=delay ")


def pci(*devices: dict[str, Any]) -> Cluster:
    return Cluster(spec={"permittedHostDevices": {"pciHostDevices": list(devices)}})


T4 = {"pciDeviceSelector": "10DE:1EB8", "resourceName": "nvidia.com/t4"}
V100 = {"pciDeviceSelector": "10de:1db6", "resourceName": "nvidia.com/v100"}


@pytest.mark.parametrize(
    ("cluster", "ids"),
    [
        pytest.param(pci(T4, V100, T4), "10de:1db6,10de:1eb8", id="each-permitted-device-once"),
        pytest.param(EVERYTHING, "10de:1eb8", id="those-of-the-newer-layout"),
        pytest.param(pci(T4, V100 | {"disabled": True}), "10de:1eb8", id="none-that-is-disabled"),
        pytest.param(pci(T4, V100 | {"externalResourceProvider": True}), "10de:1eb8", id="none-that-others-provide"),
        pytest.param(pci(T4, V100 | {"pciDeviceSelector": "x\noptions y"}), "10de:1eb8", id="nothing-but-numbers"),
    ],
)
def test_devices_go_to_the_driver_for_guests(cluster: Cluster, ids: str) -> None:
    files = files_of(rendered("vfio-assign", cluster)["spec"]["config"])
    assert files["/etc/modprobe.d/50-virt-vfio-assign.conf"].text == f"options vfio-pci ids={ids}\n"
    assert files["/etc/modules-load.d/50-virt-vfio-assign.conf"].text == "vfio-pci\n"


def test_permitted_usb_devices_are_kept_awake() -> None:
    rules = files_of(config_of("usb-passthrough"))["/etc/udev/rules.d/90-virt-usb-passthrough.rules"].text
    (rule,) = rules.splitlines()
    assert 'ATTR{idVendor}=="46f4", ATTR{idProduct}=="0001", ATTR{power/control}="on"' in rule


@pytest.mark.parametrize("name", ["vfio-assign", "usb-passthrough"])
def test_nothing_is_wanted_while_no_device_is_permitted_by(name: str) -> None:
    assert rendering(name, Cluster()) == RenderedNothing()


@pytest.mark.parametrize(
    ("name", "keys"),
    [
        ("ksm-zero-only", ["enable-ksm-zero-only"]),
        ("ksm-cluster-monitoring", ["enable-ksm-zero-only"]),
        ("thp-tuning", ["enable-thp-tuning"]),
        ("thp-tuning-kernelcore", ["enable-thp-tuning-kernelcore"]),
        ("scsi-persistent-reservations", ["enable-scsi-persistent-reservations"]),
        ("stun-time", ["enable-stun-time"]),
        ("vm-drain-shutdown-inhibitor", ["enable-vm-drain-shutdown-inhibitor"]),
        ("pci-passthrough", ["openshift", "enable-pci-passthrough"]),
        ("vfio-assign", ["enable-vfio-assign"]),
        ("usb-passthrough", ["enable-usb-passthrough"]),
        ("numa-topology", ["enable-numa-topology"]),
    ],
)
def test_somebody_asks_by_annotation_for(name: str, keys: list[str]) -> None:
    asked = Cluster(dict.fromkeys(keys, "true"), hardware=ALL_HARDWARE)
    assert is_wanted(name, asked)
    for left_out in keys:
        fewer = {key: "true" for key in keys if key != left_out}
        assert not is_wanted(name, replace(asked, annotations=fewer))


@pytest.mark.parametrize(
    ("name", "present"),
    [
        ("pci-passthrough", Hardware(pci=True)),
        ("vfio-assign", Hardware(vfio=True)),
        ("usb-passthrough", Hardware(usb=True)),
        ("numa-topology", Hardware(numa=True)),
    ],
)
def test_some_node_must_have_the_hardware_for(name: str, present: Hardware) -> None:
    asked = Cluster({"openshift": "true", f"enable-{name}": "true"})
    assert not is_wanted(name, asked)
    assert is_wanted(name, replace(asked, hardware=present))


@pytest.mark.parametrize("name", ["ksm-zero-only", "ksm-zero-only-master", "ksm-cluster-monitoring"])
def test_merging_that_the_hyperconverged_configures_is_left_to_it(name: str) -> None:
    configured = Cluster(
        spec={"virtualization": {"ksmConfiguration": {"nodeLabelSelector": {}}}},
        annotations={"enable-ksm-zero-only": "true"},
        topology=Topology(has_schedulable_masters=True),
    )
    assert not is_wanted(name, configured)


@pytest.mark.parametrize("name", [name for name in NAMES if name.endswith("-master")])
@pytest.mark.parametrize("schedulable", [True, False])
def test_masters_are_touched_only_if_guests_may_run_there(name: str, *, schedulable: bool) -> None:
    cluster = Cluster(
        {f"enable-{name.removesuffix('-master')}": "true"},
        topology=Topology(has_schedulable_masters=schedulable),
    )
    assert is_wanted(name, cluster) is schedulable


@pytest.mark.parametrize("name", [name for name in NAMES if name.endswith("-master")])
def test_masters_get_what_workers_get(name: str) -> None:
    assert rendered(name, EVERYTHING)["spec"] == rendered(name.removesuffix("-master"), EVERYTHING)["spec"]


@pytest.mark.parametrize("name", ["scsi-persistent-reservations", "scsi-persistent-reservations-master"])
def test_reservations_have_a_key_of_the_node(name: str) -> None:
    [(path, file)] = files_of(config_of(name)).items()
    assert (path, file.mode) == ("/etc/multipath/conf.d/reservation.conf", 0o644)
    assert file.text.split() == ["defaults", "{", "reservation_key", "file", "}"]


def test_huge_pages_are_tuned_after_merging_is_on_or_off() -> None:
    assert units_of(config_of("thp-tuning"))["kubevirt-thp-tune.service"]["Unit"]["After"] in units_of(
        config_of("ksm-zero-only")
    )


@pytest.mark.parametrize("name", ["swap-enable", "psi-enable"])
def test_a_second_configuration_is_not_made_for(name: str) -> None:
    ours = rendered(name, Cluster())
    theirs = ours | {"metadata": ours["metadata"] | {"name": "99-made-by-an-administrator"}}
    known = MachineConfigs((machine_config_facts(msgspec.json.encode(theirs)),))
    assert not is_wanted(name, Cluster(machine_configs=known))
    assert is_wanted(name, Cluster())


def test_what_earlier_releases_left_behind_has_a_tombstone() -> None:
    found = {(stone.ref.kind.name, stone.ref.key.namespace, stone.ref.key.name) for stone in catalog().tombstones}
    assert found >= {("UIPlugin", "", "kubevirt-plugin"), ("NodeHealthCheck", "", "virt-node-health-check")}
