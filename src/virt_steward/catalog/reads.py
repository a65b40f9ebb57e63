"""What assets declare to read: templates have access to nothing else, and watches and RBAC follow from it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import msgspec

from virt_steward.objects.identity import Key, Kind, Ref
from virt_steward.objects.paths import NothingThere, Pointer, get, with_value

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


HCO_NAMESPACE = "@hco"
"""As a namespace: where the HCO is."""
INSTALLATION_NAMESPACE = "@installation"
"""As a namespace: where the autopilot itself is installed."""


class _Read(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, rename="camel"):
    paths: tuple[str, ...]
    """JSON pointers."""

    def __post_init__(self) -> None:
        _ = self.pointers  # raises on an invalid pointer

    @property
    def pointers(self) -> tuple[Pointer, ...]:
        return tuple(Pointer.parse(path) for path in self.paths)


class ObjectRead(_Read, frozen=True, kw_only=True):
    """A named object, of which the template reads these paths."""

    api_version: str
    kind_name: str = msgspec.field(name="kind")
    plural: str
    name: str
    namespace: str = ""

    @property
    def kind(self) -> Kind:
        return kind_in(self.api_version, self.kind_name, self.plural)

    @property
    def ref(self) -> Ref:
        return Ref(self.kind, Key(self.namespace, self.name))

    def key_in(self, hco: str, installation: str) -> Key:
        """Where the object is, if the HCO and the autopilot are in these namespaces."""
        places = {HCO_NAMESPACE: hco, INSTALLATION_NAMESPACE: installation}
        return Key(places.get(self.namespace, self.namespace), self.name)

    def select(self, obj: Mapping[str, Any]) -> dict[str, Any]:
        """Return the object with nothing but these paths."""
        kept: dict[str, Any] = {}
        for path in self.pointers:
            try:
                kept = with_value(kept, path, get(obj, path))
            except NothingThere:
                continue
        return kept


KUBEVIRT_GATES = ObjectRead(
    api_version="kubevirt.io/v1",
    kind_name="KubeVirt",
    plural="kubevirts",
    namespace=HCO_NAMESPACE,
    name="kubevirt-kubevirt-hyperconverged",
    paths=("/spec/configuration/developerConfiguration/featureGates",),
)
"""The feature gates of the one KubeVirt that the HCO creates."""


METRICS_SERVICE = ObjectRead(
    api_version="v1",
    kind_name="Service",
    plural="services",
    namespace=INSTALLATION_NAMESPACE,
    name="virt-steward-metrics",
    paths=("/metadata/namespace",),
)
"""The Service of the metrics that our manifests install beside the controllers."""


class SchemaRead(_Read, frozen=True, kw_only=True):
    """Fields of a CRD's schema whose presence and enums the template reads."""

    crd: str


class Reads(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """All that one template reads besides its own asset."""

    hco: tuple[str, ...] | None = None
    """None: nothing of the HCO; empty: its name, namespace, version and our annotations."""
    nodes: bool = False
    topology: bool = False
    storage: bool = False
    images: tuple[str, ...] = ()
    objects: dict[str, ObjectRead] = {}
    schemas: dict[str, SchemaRead] = {}

    def __post_init__(self) -> None:
        _ = self.hco_pointers  # raises on an invalid pointer

    @property
    def hco_pointers(self) -> tuple[Pointer, ...]:
        return tuple(Pointer.parse(path) for path in self.hco or ())


NOTHING = Reads()


@dataclass(frozen=True, slots=True)
class Needs:
    """What several assets read together, templates and conditions alike."""

    hco: frozenset[Pointer] = frozenset()
    nodes: bool = False
    topology: bool = False
    machine_configs: bool = False
    images: frozenset[str] = frozenset()
    objects: tuple[ObjectRead, ...] = ()
    """One for each object, with all paths that any asset reads."""
    schemas: Mapping[str, frozenset[Pointer]] = field(default_factory=dict)
    """By CRD."""

    @classmethod
    def of(cls, reads: Reads) -> Needs:
        return cls(
            hco=frozenset(reads.hco_pointers),
            nodes=reads.nodes,
            topology=reads.topology,
            images=frozenset(reads.images),
            objects=_by_object(reads.objects.values()),
            schemas=_by_crd((read.crd, frozenset(read.pointers)) for read in reads.schemas.values()),
        )

    @classmethod
    def union(cls, several: Iterable[Needs]) -> Needs:
        all_of_them = tuple(several)
        return cls(
            hco=frozenset(path for one in all_of_them for path in one.hco),
            nodes=any(one.nodes for one in all_of_them),
            topology=any(one.topology for one in all_of_them),
            machine_configs=any(one.machine_configs for one in all_of_them),
            images=frozenset(image for one in all_of_them for image in one.images),
            objects=_by_object(read for one in all_of_them for read in one.objects),
            schemas=_by_crd(item for one in all_of_them for item in one.schemas.items()),
        )


def kind_in(api_version: str, name: str, plural: str) -> Kind:
    group, slash, _ = api_version.partition("/")
    return Kind(group if slash else "", name, plural)


def _by_object(reads: Iterable[ObjectRead]) -> tuple[ObjectRead, ...]:
    found: dict[Ref, ObjectRead] = {}
    for read in reads:
        known = found.get(read.ref, read)
        paths = tuple(sorted({*known.paths, *read.paths}))
        found[read.ref] = msgspec.structs.replace(known, paths=paths)
    return tuple(found[ref] for ref in sorted(found))


def _by_crd(reads: Iterable[tuple[str, frozenset[Pointer]]]) -> dict[str, frozenset[Pointer]]:
    found: dict[str, frozenset[Pointer]] = {}
    for crd, paths in reads:
        found[crd] = found.get(crd, frozenset()) | paths
    return found
