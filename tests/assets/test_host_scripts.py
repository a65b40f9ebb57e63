"""The scripts that MachineConfigs put on hosts, run against a folder that stands for a host."""

import ast
import sys
from pathlib import Path

import pytest

from tests.assets.hosts import SCRIPTS, FakeHost

WATERMARKS = "kubevirt-tune-watermarks.py"
LATENCY = "kubevirt-io-latency-setup.py"
KSM = "kubevirt-ksm-tune.py"
THP = "kubevirt-thp-tune.py"

EMPTY_PAGES = "sys/kernel/mm/transparent_hugepage/khugepaged/max_ptes_none"
SCALE = "proc/sys/vm/watermark_scale_factor"
KUBELET = "etc/kubernetes/kubelet.conf"
DROP_IN = "etc/openshift/kubelet.conf.d/90-eviction.conf"


@pytest.fixture
def host(tmp_path: Path) -> FakeHost:
    return FakeHost(tmp_path)


@pytest.mark.parametrize("name", sorted(SCRIPTS))
def test_a_script_runs_on_the_python_of_hosts_with_nothing_but_its_library(name: str) -> None:
    tree = ast.parse(SCRIPTS[name].read_text(), feature_version=(3, 9))
    imported = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    imported |= {str(node.module) for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert {module.partition(".")[0] for module in imported} <= sys.stdlib_module_names
    assert "__future__" in imported, "types are written as newer versions have it"


def with_zones(host: FakeHost, gib: float, lowest_mib: int) -> None:
    """Two zones, each with half of the memory and half of the minimum watermark."""
    zone = f"        min      {lowest_mib * 128}\n        low      9\n        managed  {int(gib * 2**17)}\n"
    host.has_memory(gib)
    host.write("proc/zoneinfo", f"Node 0, zone    DMA\n{zone}Node 0, zone   Normal\n{zone}")
    host.write(SCALE, "10\n")


@pytest.mark.parametrize(
    ("gib", "files", "scale"),
    [
        pytest.param(64, {}, 105, id="the-usual-threshold-and-one-percent-of-the-memory"),
        pytest.param(4, {}, 712, id="at-least-256-MiB-on-a-small-node"),
        pytest.param(1, {}, 1000, id="no-more-than-the-kernel-takes"),
        pytest.param(
            64, {KUBELET: "evictionHard:\n  nodefs.available: 10%\n  memory.available: 500Mi\n"}, 166, id="yaml"
        ),
        pytest.param(64, {KUBELET: '{"evictionHard": {"memory.available": "500Mi"}}'}, 166, id="json"),
        pytest.param(64, {KUBELET: 'evictionHard:\n  "memory.available": "5%"  # of all\n'}, 590, id="a-percentage"),
        pytest.param(64, {KUBELET: "evictionSoft:\n  memory.available: 9Gi\n"}, 105, id="not-the-soft-threshold"),
        pytest.param(64, {KUBELET: "evictionHard:\n  memory.available: lots\n"}, 105, id="the-usual-one-for-nonsense"),
        pytest.param(
            64,
            {
                KUBELET: '{"evictionHard": {"memory.available": "2Gi"}}',
                DROP_IN: "evictionHard:\n  memory.available: 500Mi",
            },
            166,
            id="of-a-drop-in-before-the-main-file",
        ),
    ],
)
def test_the_node_begins_to_swap_above_the_eviction_threshold(
    host: FakeHost, gib: float, files: dict[str, str], scale: int
) -> None:
    with_zones(host, gib, lowest_mib=64)
    for path, text in files.items():
        host.write(path, text)
    done = host.run(WATERMARKS)
    assert (done.returncode, host.read(SCALE)) == (0, str(scale)), done.stderr


def test_a_low_watermark_that_is_high_enough_is_left_to_the_kernel(host: FakeHost) -> None:
    with_zones(host, 64, lowest_mib=2048)
    assert host.run(WATERMARKS).returncode == 0
    assert host.read(SCALE) == "10"


@pytest.mark.parametrize("missing", [SCALE, "proc/zoneinfo", "proc/meminfo"])
def test_watermarks_stay_as_they_are_and_it_is_said_without(host: FakeHost, missing: str) -> None:
    with_zones(host, 64, lowest_mib=64)
    (host.root / missing).unlink()
    done = host.run(WATERMARKS)
    assert done.returncode == 0
    assert "stay as they are" in done.stderr
    assert not (host.root / SCALE).exists() or host.read(SCALE) == "10"


def with_block_device(host: FakeHost, number: str, path: str, *, partition: bool = False) -> Path:
    """A device as sysfs has it: a folder, and links to it by number and by name."""
    folder = host.root / "sys/devices" / path
    host.write(f"sys/devices/{path}/dev", f"{number}\n")
    if partition:
        host.write(f"sys/devices/{path}/partition", "1\n")
    for link in (f"sys/dev/block/{number}", f"sys/class/block/{folder.name}"):
        (host.root / link).parent.mkdir(parents=True, exist_ok=True)
        (host.root / link).symlink_to(folder)
    return folder


def with_disks(host: FakeHost) -> None:
    """The root on a partition of sda, a mapped device on two NVMe partitions, and a disk that nobody swaps to."""
    with_block_device(host, "8:0", "pci/block/sda")
    with_block_device(host, "8:4", "pci/block/sda/sda4", partition=True)
    with_block_device(host, "8:16", "pci/block/sdb")
    mapped = with_block_device(host, "253:0", "virtual/block/dm-0")
    (mapped / "slaves").mkdir()
    for index in (0, 1):
        with_block_device(host, f"259:{index}", f"pci/nvme/nvme{index}n1")
        part = with_block_device(host, f"259:{index + 2}", f"pci/nvme/nvme{index}n1/nvme{index}n1p1", partition=True)
        (mapped / "slaves" / part.name).symlink_to(part)
    host.write(
        "proc/self/mountinfo",
        "1 0 0:30 / / rw - overlay overlay rw\n"
        "2 1 8:4 / /sysroot ro - xfs /dev/sda4 rw\n"
        "3 1 253:0 / /var/tmp rw shared:4 - xfs /dev/mapper/tmp rw\n",
    )
    host.write("proc/swaps", "Filename Type Size Used Priority\n")
    host.has_program("systemctl", 'for argument; do echo "$argument"; done >> "$root/asked"')


def targets(latency: str, *disks: str) -> str:
    return "".join(f"IODeviceLatencyTargetSec=/dev/{disk} {latency}\n" for disk in disks)


@pytest.mark.parametrize(
    ("swaps", "disks"),
    [
        pytest.param("", ["sda"], id="the-root"),
        pytest.param("/dev/sdb partition 1 0 100\n", ["sda", "sdb"], id="a-whole-disk-of-swap"),
        pytest.param("/dev/nvme0n1p1 partition 1 0 100\n", ["nvme0n1", "sda"], id="a-partition-of-swap"),
        pytest.param("/dev/dm-0 partition 1 0 100\n", ["nvme0n1", "nvme1n1", "sda"], id="disks-below-a-mapped-device"),
        pytest.param(
            "/var/tmp/ocpswap.file file 1 0 10\n", ["nvme0n1", "nvme1n1", "sda"], id="disks-below-a-swap-file"
        ),
        pytest.param("/dev/gone partition 1 0 10\n", ["sda"], id="what-is-left-when-a-device-went"),
    ],
)
def test_the_system_is_served_before_pods_on(host: FakeHost, swaps: str, disks: list[str]) -> None:
    with_disks(host)
    host.write("proc/swaps", f"Filename Type Size Used Priority\n{swaps}")
    done = host.run(LATENCY)
    assert done.returncode == 0, done.stderr
    system = f"set-property\n--runtime\nsystem.slice\n{targets('5ms', *disks)}"
    pods = f"set-property\n--runtime\nkubepods.slice\n{targets('50ms', *disks)}"
    assert (host.root / "asked").read_text() == system + pods


def test_no_latency_target_is_set_without_a_physical_disk(host: FakeHost) -> None:
    host.write("proc/self/mountinfo", "1 0 0:30 / / rw - overlay overlay rw\n")
    done = host.run(LATENCY)
    assert done.returncode == 0
    assert "no physical disk" in done.stderr


def test_a_latency_target_that_is_refused_fails_the_unit_and_does_not_stop_the_other(host: FakeHost) -> None:
    with_disks(host)
    host.has_program("systemctl", 'echo "$3" >> "$root/asked"; test "$3" != system.slice')
    assert host.run(LATENCY).returncode == 1
    assert host.read("asked").split() == ["system.slice", "kubepods.slice"]


def with_ksm(host: FakeHost, gib: float) -> None:
    host.has_memory(gib)
    for knob in ("redhat_only_zero_pages", "pages_to_scan", "sleep_millisecs", "run"):
        host.write(f"sys/kernel/mm/ksm/{knob}", "0\n")
    host.write(EMPTY_PAGES, "7\n")


@pytest.mark.parametrize(
    ("gib", "sleep"),
    [
        pytest.param(64, 50, id="a-small-node-sleeps-longest"),
        pytest.param(1024, 25, id="by-its-memory"),
        pytest.param(6144, 10, id="a-large-node-sleeps-shortest"),
    ],
)
def test_pages_of_zeros_are_merged_at_a_pace_that_suits(host: FakeHost, gib: float, sleep: int) -> None:
    with_ksm(host, gib)
    done = host.run(KSM)
    assert done.returncode == 0, done.stderr
    knobs = {path.name: path.read_text().strip() for path in (host.root / "sys/kernel/mm/ksm").iterdir()}
    assert knobs == {"redhat_only_zero_pages": "1", "pages_to_scan": "1000", "sleep_millisecs": str(sleep), "run": "1"}
    assert host.read(EMPTY_PAGES) == "0"


def test_nothing_is_merged_by_a_kernel_that_cannot_keep_to_zeros(host: FakeHost) -> None:
    with_ksm(host, 64)
    (host.root / "sys/kernel/mm/ksm/redhat_only_zero_pages").unlink()
    done = host.run(KSM)
    assert (done.returncode, host.read("sys/kernel/mm/ksm/run")) == (0, "0")
    assert "nothing is merged" in done.stderr
    assert host.read(EMPTY_PAGES) == "511"


def test_pages_are_merged_by_a_kernel_without_huge_pages(host: FakeHost) -> None:
    with_ksm(host, 64)
    (host.root / EMPTY_PAGES).unlink()
    done = host.run(KSM)
    assert (done.returncode, host.read("sys/kernel/mm/ksm/run")) == (0, "1")
    assert "max_ptes_none is missing" in done.stderr


def test_nothing_is_merged_while_the_limit_to_zeros_is_refused(host: FakeHost) -> None:
    with_ksm(host, 64)
    limit = host.root / "sys/kernel/mm/ksm/redhat_only_zero_pages"
    limit.unlink()
    limit.mkdir()
    assert host.run(KSM).returncode != 0
    assert host.read("sys/kernel/mm/ksm/run") == "0"


THP_KNOBS = (
    "enabled",
    "defrag",
    "shmem_enabled",
    "shrink_underused",
    "khugepaged/pages_to_scan",
    "khugepaged/scan_sleep_millisecs",
    "khugepaged/max_ptes_none",
)


def with_thp(host: FakeHost, gib: float) -> None:
    host.has_memory(gib)
    for knob in THP_KNOBS:
        host.write(f"sys/kernel/mm/transparent_hugepage/{knob}", "0\n")


@pytest.mark.parametrize(("gib", "sleep"), [(64, "2000"), (256, "1250")])
@pytest.mark.parametrize(("merges", "empty"), [("1\n", "0"), ("0\n", "511"), (None, "511")])
def test_huge_pages_go_to_those_who_ask_and_larger_nodes_look_more_often(
    host: FakeHost, gib: float, sleep: str, merges: str | None, empty: str
) -> None:
    with_thp(host, gib)
    if merges is not None:
        host.write("sys/kernel/mm/ksm/run", merges)
    done = host.run(THP)
    assert done.returncode == 0, done.stderr
    found = [host.read(f"sys/kernel/mm/transparent_hugepage/{knob}") for knob in THP_KNOBS]
    assert found == ["madvise", "madvise", "advise", "0", "130000", sleep, empty]


def test_a_knob_for_huge_pages_that_is_missing_is_said_and_the_others_are_turned(host: FakeHost) -> None:
    with_thp(host, 64)
    for knob in ("enabled", "shrink_underused"):
        (host.root / "sys/kernel/mm/transparent_hugepage" / knob).unlink()
    done = host.run(THP)
    assert done.returncode == 0
    assert "enabled is missing" in done.stderr
    assert host.read("sys/kernel/mm/transparent_hugepage/khugepaged/pages_to_scan") == "130000"
