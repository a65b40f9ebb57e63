"""MachineConfigs, KubeletConfigs and pools, reduced to who sets which kernel argument, swap, or a pool's kubelet."""

from __future__ import annotations

import binascii
import hashlib
import re
import zlib
from base64 import b64decode
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote_to_bytes

import msgspec

from virt_steward.objects.canonical import canonical
from virt_steward.objects.identity import Kind
from virt_steward.objects.meta import Meta
from virt_steward.objects.selectors import BadSelector, requirement

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

    from virt_steward.platform.pools import Pool

GROUP = "machineconfiguration.openshift.io"
MACHINE_CONFIG = Kind(GROUP, "MachineConfig", "machineconfigs")
MACHINE_CONFIG_POOL = Kind(GROUP, "MachineConfigPool", "machineconfigpools")
KUBELET_CONFIG = Kind(GROUP, "KubeletConfig", "kubeletconfigs")
CONTAINER_RUNTIME_CONFIG = Kind(GROUP, "ContainerRuntimeConfig", "containerruntimeconfigs")
ROLE = f"{GROUP}/role"
POOL_LABEL = f"pools.operator.{GROUP}/"
"""Before the name of a pool: a label that the pools of every cluster carry."""

_GZIP = 16 + zlib.MAX_WBITS
_LARGEST_FILE = 1024 * 1024
_SWAP_ON = re.compile(r"\bswapon\b|LimitedSwap|UnlimitedSwap")
"""In a unit, or in a kubelet's configuration."""

KUBELET_DROP_INS = "/etc/openshift/kubelet.conf.d/"
"""Files there override what a KubeletConfig sets; of several with one setting, the last by name counts."""
KUBELET_SETTINGS = (
    "cpuManagerPolicy",
    "cpuManagerPolicyOptions",
    "cpuManagerReconcilePeriod",
    "kubeReserved",
    "maxPods",
    "nodeStatusMaxImages",
    "reservedSystemCPUs",
    "topologyManagerPolicy",
)
"""Settings of a kubelet that assets write to drop-ins: who else sets them is kept of each MachineConfig."""
_KUBELET_SETTING = re.compile(rf"\b({'|'.join(KUBELET_SETTINGS)})[\"']?\s*:")


class LabelledMeta(Meta, frozen=True):
    labels: dict[str, str] = msgspec.field(default_factory=dict)


class MachineConfigFacts(msgspec.Struct, frozen=True):
    """One MachineConfig. Its files and units are evaluated once and not kept."""

    metadata: LabelledMeta
    arguments: tuple[str, ...] = ()
    swap: bool = False
    kubelet: frozenset[str] = frozenset()
    """Which of KUBELET_SETTINGS its drop-ins of the kubelet set."""
    pieces: frozenset[bytes] = frozenset()
    """Digests of its files and units, which tell whether a rendered configuration has them."""

    @property
    def name(self) -> str:
        return self.metadata.name

    @property
    def effective(self) -> dict[str, str]:
        """Its kernel arguments by their keys. Of several with one key, the last counts."""
        return {argument.partition("=")[0]: argument for argument in self.arguments}

    def includes(self, other: MachineConfigFacts) -> bool:
        """Whether all that the other one sets is in effect in this one, as in a configuration rendered from it."""
        return self.pieces >= other.pieces and self.effective.items() >= other.effective.items()

    def overriding(self, other: MachineConfigFacts) -> tuple[str, ...]:
        """Kernel arguments of this one that override arguments of the other, which it has too."""
        return tuple(
            self.effective[key]
            for key, argument in other.effective.items()
            if argument in self.arguments and self.effective[key] != argument
        )


@dataclass(frozen=True, slots=True)
class KernelArgument:
    """A kernel argument, and the MachineConfig that it comes from."""

    argument: str
    by: str


def effective_kernel_argument(key: str, merged: Iterable[MachineConfigFacts]) -> KernelArgument | None:
    """Return what a node gets for this key from MachineConfigs, given in the order of their names."""
    given = [KernelArgument(one.effective[key], one.name) for one in merged if key in one.effective]
    return given[-1] if given else None


class LenientRequirement(msgspec.Struct, frozen=True):
    """Read more leniently than in our own kinds: an unknown operator selects nothing, and the pool is still read."""

    key: str
    operator: str
    values: tuple[str, ...] = ()

    @property
    def is_readable(self) -> bool:
        try:
            requirement(self.key, self.operator, self.values)
        except BadSelector:
            return False
        return True

    def holds_for(self, labels: dict[str, str]) -> bool:
        return self.is_readable and requirement(self.key, self.operator, self.values).holds_for(labels)


class PoolSelector(msgspec.Struct, frozen=True, rename="camel"):
    """A label selector; an empty one selects nothing here, as in the controller of the pools."""

    match_labels: dict[str, str] = {}
    match_expressions: tuple[LenientRequirement, ...] = ()

    @property
    def keys(self) -> frozenset[str]:
        """The labels that it reads."""
        return frozenset(self.match_labels) | {one.key for one in self.match_expressions}

    @property
    def is_readable(self) -> bool:
        """Whether every operator is known."""
        return all(one.is_readable for one in self.match_expressions)

    def selects(self, labels: dict[str, str]) -> bool:
        if not self.match_labels and not self.match_expressions:
            return False
        return self.match_labels.items() <= labels.items() and all(
            one.holds_for(labels) for one in self.match_expressions
        )


class _KubeletSpec(msgspec.Struct, frozen=True, rename="camel"):
    machine_config_pool_selector: PoolSelector = PoolSelector()


class KubeletConfigFacts(msgspec.Struct, frozen=True):
    """One KubeletConfig: for which pools it is. Of several for one pool, only the newest counts."""

    metadata: LabelledMeta
    spec: _KubeletSpec = _KubeletSpec()

    @property
    def name(self) -> str:
        return self.metadata.name


@dataclass(frozen=True, slots=True)
class MachineConfigs:
    """All MachineConfigs and pools of a cluster, and which of them are ours."""

    configs: tuple[MachineConfigFacts, ...] = ()
    pools: tuple[Pool, ...] = ()
    ours: frozenset[str] = frozenset()
    kubelets: tuple[KubeletConfigFacts, ...] = ()
    """Those of others."""

    def others(self, pool: str) -> tuple[MachineConfigFacts, ...]:
        """MachineConfigs that the pool selects and we did not create, by name."""
        selector = _selector(self.pools, pool)
        found = (one for one in self.configs if one.name not in self.ours and selector.selects(one.metadata.labels))
        return tuple(sorted(found, key=lambda one: one.name))

    def other_kubelets(self, pool: str, settings: Collection[str]) -> tuple[str, ...]:
        """Who else configures the kubelets of the pool: KubeletConfigs, and drop-ins with one of these settings.

        Any KubeletConfig counts: what it leaves out is the choice of its author, too.
        """
        found = next((one for one in self.pools if one.metadata.name == pool), None)
        labels = found.metadata.labels if found else {f"{POOL_LABEL}{pool}": ""}
        configs = (one.name for one in self.kubelets if one.spec.machine_config_pool_selector.selects(labels))
        return (*sorted(configs), *(one.name for one in self.others(pool) if one.kubelet & set(settings)))


def machine_config_facts(raw: bytes) -> MachineConfigFacts:
    """Decode a MachineConfig."""
    config = _DECODER.decode(raw)
    ignition = _ignition(config.spec.config)
    arguments = tuple(one for entry in config.spec.kernel_arguments or () for one in entry.split())
    return MachineConfigFacts(
        config.metadata,
        arguments,
        _turns_on_swap(ignition),
        frozenset(_kubelet_settings(ignition)),
        frozenset(_pieces(ignition)),
    )


def _selector(pools: Iterable[Pool], name: str) -> PoolSelector:
    """A pool that does not exist yet will select by role, as the two do that every cluster has."""
    found = next((pool for pool in pools if pool.metadata.name == name), None)
    return found.spec.machine_config_selector if found else PoolSelector(match_labels={ROLE: name})


def _ignition(config: Any) -> _Ignition:
    try:
        return msgspec.convert(config, _Ignition)
    except msgspec.ValidationError:
        return _Ignition()  # no node would accept it


def _pieces(ignition: _Ignition) -> Iterator[bytes]:
    for piece in (*ignition.storage.files, *ignition.systemd.units):
        yield hashlib.blake2b(canonical(piece), digest_size=8).digest()


def _turns_on_swap(ignition: _Ignition) -> bool:
    return any(
        unit.name.endswith(".swap") or _SWAP_ON.search(unit.contents or "") for unit in ignition.systemd.units
    ) or any("kubelet" in file.path and _SWAP_ON.search(_text(file.contents)) for file in ignition.storage.files)


def _kubelet_settings(ignition: _Ignition) -> Iterator[str]:
    """List the settings of all drop-ins, in whatever syntax and at whatever depth: rather one too many."""
    for file in ignition.storage.files:
        if file.path.startswith(KUBELET_DROP_INS):
            yield from _KUBELET_SETTING.findall(_text(file.contents))


def _text(contents: _Contents) -> str:
    """Return the content of a data URL; empty if it is invalid."""
    head, comma, body = (contents.source or "").partition(",")
    if not comma or not head.startswith("data:"):
        return ""
    try:
        data = b64decode(body) if head.endswith(";base64") else unquote_to_bytes(body)
        return (_decompressed(data) if contents.compression == "gzip" else data).decode(errors="replace")
    except (binascii.Error, ValueError, zlib.error):
        return ""


def _decompressed(data: bytes) -> bytes:
    """At most the first megabyte: a small file could otherwise grow to gigabytes."""
    return zlib.decompressobj(wbits=_GZIP).decompress(data, _LARGEST_FILE)


class _Contents(msgspec.Struct):
    source: str | None = None
    compression: str | None = None


class _File(msgspec.Struct):
    path: str = ""
    contents: _Contents = msgspec.field(default_factory=_Contents)


class _Unit(msgspec.Struct):
    name: str = ""
    contents: str | None = None


class _Systemd(msgspec.Struct):
    units: list[_Unit] = []


class _Storage(msgspec.Struct):
    files: list[_File] = []


class _Ignition(msgspec.Struct):
    systemd: _Systemd = msgspec.field(default_factory=_Systemd)
    storage: _Storage = msgspec.field(default_factory=_Storage)


class _MachineConfigSpec(msgspec.Struct, rename="camel"):
    kernel_arguments: tuple[str, ...] | None = None
    config: Any = None


class _MachineConfig(msgspec.Struct):
    metadata: LabelledMeta
    spec: _MachineConfigSpec = msgspec.field(default_factory=_MachineConfigSpec)


_DECODER = msgspec.json.Decoder(_MachineConfig)
