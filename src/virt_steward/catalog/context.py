"""What is known of a cluster at one moment, and the part of it that one template may read."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

from virt_steward.objects.canonical import canonical
from virt_steward.objects.paths import Pointer
from virt_steward.platform.hco import LIVE_MIGRATION, PREFIX, flatten

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from virt_steward.catalog.asset import Asset
    from virt_steward.catalog.reads import SchemaRead
    from virt_steward.objects.identity import Ref
    from virt_steward.objects.schemafacts import SchemaFacts
    from virt_steward.platform.hco import Hco, LiveMigration
    from virt_steward.platform.machineconfigs import MachineConfigs
    from virt_steward.platform.nodes import Hardware, Nodes
    from virt_steward.platform.storage import Storage
    from virt_steward.platform.topology import Topology


_T = TypeVar("_T")
LARGEST_READ = 64 * 1024
"""Bytes of one value as JSON: what others write into an object must not keep a template busy for long."""


class NotDeclared(LookupError):
    """A template reads what its asset does not declare."""


class ReadTooLarge(ValueError):
    """A value that a template reads is larger than any sensible one."""


@dataclass(frozen=True, slots=True)
class AssetContext:
    """A frozen snapshot of a cluster. None stands for what is unknown, which is not the same as absent."""

    hco: Hco
    nodes: Nodes | None = None
    hardware: Hardware | None = None
    topology: Topology | None = None
    storage: Storage | None = None
    machine_configs: MachineConfigs | None = None
    images: Mapping[str, str] = field(default_factory=dict)
    objects: Mapping[Ref, Mapping[str, Any] | None] = field(default_factory=dict)
    """The declared objects that could be read; None: the object does not exist."""
    schemas: Mapping[str, SchemaFacts | None] = field(default_factory=dict)
    """By CRD; None: it is not installed."""

    def lacks(self, asset: Asset) -> tuple[str, ...]:
        """What the asset reads and is unknown, named for users."""
        reads = asset.reads
        unknown = (
            ("nodes", reads.nodes and (self.nodes is None or self.hardware is None)),
            ("topology", reads.topology and self.topology is None),
            ("storage", reads.storage and self.storage is None),
            *((str(read.ref), read.ref not in self.objects) for read in reads.objects.values()),
            *((f"schema of {read.crd}", read.crd not in self.schemas) for read in reads.schemas.values()),
        )
        return tuple(dict.fromkeys(name for name, lacking in unknown if lacking))

    def for_asset(self, asset: Asset) -> dict[str, Any]:
        """Return the variables of its template: what it declares, and nothing else."""
        return dict(self._declared(asset))

    def _declared(self, asset: Asset) -> Iterator[tuple[str, Any]]:
        reads = asset.reads
        if reads.hco is not None:
            yield "hco", HcoView(self.hco, frozenset(flatten(path) for path in reads.hco_pointers))
        if reads.nodes:
            yield "nodes", self.nodes
            yield "hardware", self.hardware
        if reads.topology:
            yield "topology", self.topology
        if reads.storage:
            yield "storage", self.storage
        if reads.images:
            yield "images", {key: self.images[key] for key in reads.images if key in self.images}
        if reads.objects:
            found = {name: (read, self.objects.get(read.ref)) for name, read in reads.objects.items()}
            yield (
                "objects",
                {
                    name: None if obj is None else _limited(read.select(obj), str(read.ref))
                    for name, (read, obj) in found.items()
                },
            )
        if reads.schemas:
            yield (
                "schemas",
                {name: SchemaView(read, self.schemas.get(read.crd)) for name, read in reads.schemas.items()},
            )


@dataclass(frozen=True, slots=True)
class HcoView:
    """The HyperConverged, as far as an asset declares to read it."""

    _hco: Hco
    _declared: frozenset[Pointer]

    @property
    def name(self) -> str:
        return self._hco.name

    @property
    def namespace(self) -> str:
        return self._hco.namespace

    @property
    def api_version(self) -> str:
        return self._hco.api_version

    @property
    def annotations(self) -> dict[str, str]:
        """Those of the autopilot."""
        return {key: value for key, value in self._hco.annotations.items() if key.startswith(PREFIX)}

    def annotation(self, key: str, default: str = "") -> str:
        return _limited(self.annotations.get(key, default), key)

    def is_true(self, key: str) -> bool:
        return self.annotations.get(key) == "true"

    @property
    def live_migration(self) -> LiveMigration:
        self._refuse_undeclared(LIVE_MIGRATION)
        return self._hco.live_migration

    def value(self, path: str, default: Any = None) -> Any:
        pointer = Pointer.parse(path)
        self._refuse_undeclared(flatten(pointer))
        return _limited(self._hco.value(pointer, default), f"{pointer} of the HyperConverged")

    def _refuse_undeclared(self, pointer: Pointer) -> None:
        if not any(pointer.tokens[: len(path.tokens)] == path.tokens for path in self._declared):
            raise NotDeclared(f"{pointer} of the HyperConverged is not among the declared reads")


@dataclass(frozen=True, slots=True)
class SchemaView:
    """A CRD's schema, as far as an asset declares to read it. A CRD that is not installed has no fields."""

    _read: SchemaRead
    _facts: SchemaFacts | None

    def has(self, path: str) -> bool:
        return self._facts is not None and self._facts.has(self._declared(path))

    def enum(self, path: str) -> tuple[str, ...]:
        return self._facts.enum(self._declared(path)) if self._facts else ()

    def _declared(self, path: str) -> Pointer:
        pointer = Pointer.parse(path)
        if pointer not in self._read.pointers:
            raise NotDeclared(f"{path} of {self._read.crd} is not among the declared reads")
        return pointer


def _limited(value: _T, name: str) -> _T:
    if len(canonical(value)) > LARGEST_READ:
        raise ReadTooLarge(f"{name} is larger than {LARGEST_READ} bytes")
    return value
