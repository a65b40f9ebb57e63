import tracemalloc
from base64 import b64encode
from gzip import compress
from typing import Any
from urllib.parse import quote

import msgspec
import pytest

from tests.catalog.builders import a_kubelet_config, a_machine_config, a_pool
from virt_steward.platform.machineconfigs import (
    KernelArgument,
    KubeletConfigFacts,
    MachineConfigFacts,
    MachineConfigs,
    effective_kernel_argument,
    machine_config_facts,
)
from virt_steward.platform.pools import Pool

ROLE = "machineconfiguration.openshift.io/role"
KUBELET = "failSwapOn: false\nmemorySwap:\n  swapBehavior: LimitedSwap\n"


def facts(config: dict[str, Any]) -> MachineConfigFacts:
    return machine_config_facts(msgspec.json.encode(config))


def data_url(data: str | bytes) -> str:
    return f"data:;base64,{b64encode(data.encode() if isinstance(data, str) else data).decode()}"


def a_file(source: str, *, path: str = "/etc/openshift/kubelet.conf.d/90-swap.conf", compression: str = "") -> Any:
    contents = {"source": source, "compression": compression}
    return {"storage": {"files": [{"path": path, "contents": contents}]}}


def a_unit(name: str, contents: str | None = None) -> Any:
    return {"systemd": {"units": [{"name": name, "contents": contents}]}}


def test_machine_config_splits_kernel_arguments() -> None:
    assert facts(a_machine_config("theirs", arguments=("psi=1 audit=0", "quiet"))).arguments == (
        "psi=1",
        "audit=0",
        "quiet",
    )


@pytest.mark.parametrize(
    ("rendered", "includes"),
    [
        pytest.param(("quiet", "psi=1"), True, id="it-is-there"),
        pytest.param(("psi=0", "psi=1"), True, id="it-comes-last"),
        pytest.param(("psi=1", "psi=0"), False, id="another-value-comes-last"),
        pytest.param(("quiet",), False, id="it-is-missing"),
    ],
)
def test_rendered_config_includes_kernel_argument(rendered: tuple[str, ...], *, includes: bool) -> None:
    ours = facts(a_machine_config("ours", arguments=("psi=1",)))
    assert facts(a_machine_config("rendered", arguments=rendered)).includes(ours) is includes


def test_effective_argument_is_that_of_the_last_config() -> None:
    merged = [
        facts(a_machine_config("50-on", arguments=("psi=1",))),
        facts(a_machine_config("98-off", arguments=("psi=1", "psi=0"))),
        facts(a_machine_config("99-quiet", arguments=("quiet",))),
    ]
    assert effective_kernel_argument("psi", merged) == KernelArgument("psi=0", "98-off")
    assert effective_kernel_argument("quiet", merged) == KernelArgument("quiet", "99-quiet")
    assert effective_kernel_argument("ps", merged) is None


@pytest.mark.parametrize(
    ("config", "swap"),
    [
        pytest.param(a_unit("dev-sda2.swap"), True, id="a-swap-unit"),
        pytest.param(a_unit("enable.service", "[Service]\nExecStart=/sbin/swapon /dev/sda2\n"), True, id="swapon"),
        pytest.param(a_unit("other.service", "[Service]\nExecStart=/bin/true\n"), False, id="another-unit"),
        pytest.param(a_unit("masked.service"), False, id="a-unit-without-contents"),
        pytest.param(a_file(data_url(KUBELET)), True, id="a-kubelet-file"),
        pytest.param(a_file(f"data:,{quote(KUBELET)}"), True, id="a-kubelet-file-in-percent-form"),
        pytest.param(
            a_file(data_url(compress(KUBELET.encode() * 9)), compression="gzip"), True, id="a-compressed-kubelet-file"
        ),
        pytest.param(a_file(data_url("failSwapOn: true\n")), False, id="a-kubelet-file-without-swap"),
        pytest.param(a_file(data_url(KUBELET), path="/etc/motd"), False, id="another-file"),
        pytest.param(a_file("data:;base64,%%%"), False, id="a-file-that-cannot-be-read"),
        pytest.param(a_file(f"data:;base64,{b64encode(b'x').decode()}", compression="gzip"), False, id="no-gzip"),
        pytest.param(a_file("https://elsewhere.example/file"), False, id="a-file-elsewhere"),
        pytest.param({"systemd": "nonsense"}, False, id="no-ignition"),
        pytest.param(None, False, id="nothing"),
    ],
)
def test_machine_config_turns_on_swap(config: Any, swap: bool) -> None:
    assert facts(a_machine_config("one", config=config)).swap is swap


def test_machine_config_with_compressed_bomb_is_read_in_part() -> None:
    bomb = compress(KUBELET.encode() + b" " * 50_000_000)
    tracemalloc.start()
    assert facts(a_machine_config("one", config=a_file(data_url(bomb), compression="gzip"))).swap
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 10_000_000


@pytest.mark.parametrize(
    ("selector", "selected"),
    [
        pytest.param({"matchLabels": {ROLE: "worker"}}, ["by-worker"], id="a-label"),
        pytest.param(
            {"matchExpressions": [{"key": ROLE, "operator": "In", "values": ["worker", "gpu"]}]},
            ["by-gpu", "by-worker"],
            id="one-of-several-values",
        ),
        pytest.param(
            {"matchExpressions": [{"key": ROLE, "operator": "NotIn", "values": ["worker"]}]}, ["by-gpu"], id="no-value"
        ),
        pytest.param({"matchExpressions": [{"key": ROLE, "operator": "Exists"}]}, ["by-gpu", "by-worker"], id="a-key"),
        pytest.param({"matchExpressions": [{"key": ROLE, "operator": "DoesNotExist"}]}, [], id="no-key"),
        pytest.param({"matchExpressions": [{"key": ROLE, "operator": "Like"}]}, [], id="what-nobody-knows"),
        pytest.param({"matchLabels": {}}, [], id="nothing"),
    ],
)
def test_pool_selects_machine_configs(selector: dict[str, Any], selected: list[str]) -> None:
    configs = (a_machine_config("by-worker"), a_machine_config("by-gpu", role="gpu"), a_machine_config("ours"))
    pool = msgspec.convert(a_pool("pool", selector), Pool)
    known = MachineConfigs(tuple(facts(config) for config in configs), (pool,), frozenset({"ours"}))
    assert [one.name for one in known.others("pool")] == selected


@pytest.mark.parametrize(
    ("selector", "selects"),
    [
        pytest.param({"matchLabels": {"size": "big"}}, True, id="a-label-that-it-has"),
        pytest.param({"matchLabels": {"size": "small"}}, False, id="a-label-that-it-has-not"),
        pytest.param({"matchExpressions": [{"key": "size", "operator": "Exists"}]}, True, id="a-key"),
        pytest.param({}, False, id="nothing"),
    ],
)
def test_kubelet_config_selects_pools(selector: dict[str, Any], *, selects: bool) -> None:
    theirs = a_kubelet_config("theirs") | {"spec": {"machineConfigPoolSelector": selector}}
    pool = msgspec.convert({"metadata": {"name": "worker", "labels": {"size": "big"}}}, Pool)
    known = MachineConfigs(pools=(pool,), kubelets=(msgspec.convert(theirs, KubeletConfigFacts),))
    assert known.other_kubelets("worker", ()) == (("theirs",) if selects else ())


@pytest.mark.parametrize(
    ("text", "settings"),
    [
        pytest.param("maxPods: 1\ncpuManagerPolicy : static\n", {"maxPods", "cpuManagerPolicy"}, id="yaml"),
        pytest.param('{"maxPods": 1, "x": {"kubeReserved":{}}}', {"maxPods", "kubeReserved"}, id="json"),
        pytest.param("'maxPods': 1", {"maxPods"}, id="quoted"),
        pytest.param("# maxPods is 250\nmyMaxPods: 1\nfailSwapOn: false\n", set(), id="others"),
    ],
)
def test_machine_config_tells_kubelet_settings_of_drop_ins(text: str, settings: set[str]) -> None:
    assert facts(a_machine_config("one", config=a_file(data_url(text)))).kubelet == settings
    assert not facts(a_machine_config("one", config=a_file(data_url(text), path="/etc/motd"))).kubelet


def test_missing_pool_selects_by_role() -> None:
    known = MachineConfigs((facts(a_machine_config("one")), facts(a_machine_config("two", role="gpu"))))
    assert [one.name for one in known.others("gpu")] == ["two"]
