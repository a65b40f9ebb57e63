"""A cluster from a file: the HyperConverged, and any other objects of the cluster that assets may read."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import msgspec

from virt_steward.catalog.context import AssetContext
from virt_steward.catalog.yamlread import BadYaml, documents
from virt_steward.kube.discovery import CUSTOM_RESOURCE_DEFINITION
from virt_steward.objects.corekinds import NODE
from virt_steward.objects.errors import UserError
from virt_steward.objects.identity import Ref, kind_of, ref_of
from virt_steward.objects.installation import NAMESPACE
from virt_steward.objects.schemafacts import definition_facts
from virt_steward.platform.hco import HYPERCONVERGED, Hco
from virt_steward.platform.machineconfigs import (
    KUBELET_CONFIG,
    MACHINE_CONFIG,
    MACHINE_CONFIG_POOL,
    KubeletConfigFacts,
    MachineConfigs,
    machine_config_facts,
)
from virt_steward.platform.nodes import count_nodes, detect_hardware, node_facts
from virt_steward.platform.pools import Pool
from virt_steward.platform.storage import (
    STORAGE_CLASS,
    STORAGE_PROFILE,
    StorageClassFacts,
    profile_facts,
    summarize_storage,
)
from virt_steward.platform.topology import INFRASTRUCTURE, SCHEDULER, Infrastructure, Scheduler, detect_topology

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from virt_steward.catalog.load import Catalog
    from virt_steward.objects.identity import Kind
    from virt_steward.objects.schemafacts import SchemaFacts
    from virt_steward.platform.nodes import NodeFacts
    from virt_steward.platform.storage import Storage
    from virt_steward.platform.topology import Topology

Object = dict[str, Any]


class BadFile(UserError):
    """A file that does not describe a cluster."""


@dataclass(frozen=True, slots=True)
class FileServes:
    """The CRDs of the file. Built-in kinds are always served, and all others too if the file has no CRD at all."""

    definitions: frozenset[str]

    def serves(self, group: str, plural: str) -> bool:
        built_in = "." not in group or group.endswith(".k8s.io")
        return not self.definitions or built_in or f"{plural}.{group}" in self.definitions


@dataclass(frozen=True, slots=True)
class Offline:
    """What a file describes. Objects that it lacks do not exist; nodes, topology and schemas are then unknown."""

    context: AssetContext
    served: FileServes


def offline(text: str, catalog: Catalog, images: Mapping[str, str], namespace: str = NAMESPACE) -> Offline:
    try:
        objects = list(_objects(text))
        return _read(objects, catalog, images, namespace)
    except (BadYaml, msgspec.ValidationError) as error:
        raise BadFile(f"the file is invalid: {error}") from None


def _read(objects: list[Object], catalog: Catalog, images: Mapping[str, str], namespace: str) -> Offline:
    definitions = {obj["metadata"]["name"]: obj for obj in _of(objects, CUSTOM_RESOURCE_DEFINITION)}
    nodes = [node_facts(_json(obj)) for obj in _of(objects, NODE)]
    by_ref = {ref_of(obj): obj for obj in objects}
    hco = _hco(objects)
    return Offline(
        AssetContext(
            hco,
            count_nodes(nodes) if nodes else None,
            detect_hardware(nodes) if nodes else None,
            _topology(objects, nodes),
            _storage(objects),
            _machine_configs(objects, catalog),
            images,
            objects={
                read.ref: by_ref.get(Ref(read.kind, read.key_in(hco.namespace, namespace)))
                for read in catalog.needs.objects
            },
            schemas=_schemas(definitions, catalog),
        ),
        FileServes(frozenset(definitions)),
    )


def _objects(text: str) -> Iterator[Object]:
    """List the objects, also those of a List as `kubectl get -o yaml` writes it."""
    for document in documents(text):
        match document:
            case {"kind": "List", "items": list(items)}:
                yield from (_checked(item) for item in items)
            case _:
                yield _checked(document)


def _checked(obj: Any) -> Object:
    match obj:
        case {"apiVersion": str(), "kind": str(), "metadata": {"name": str()}}:
            return dict(obj)
    raise BadFile("not an object: each document needs apiVersion, kind and metadata.name")


def _hco(objects: list[Object]) -> Hco:
    found = _of(objects, HYPERCONVERGED)
    if len(found) == 1:
        return Hco.of(found[0])
    others = ", ".join(sorted({obj["kind"] for obj in objects})) or "nothing"
    got = f"{len(found)} of them" if found else others
    raise BadFile(f"expected one object of kind {HYPERCONVERGED.name}, got {got}")


def _topology(objects: list[Object], nodes: list[NodeFacts]) -> Topology | None:
    infrastructures = [msgspec.convert(obj, Infrastructure) for obj in _of(objects, INFRASTRUCTURE)]
    schedulers = [msgspec.convert(obj, Scheduler) for obj in _of(objects, SCHEDULER)]
    if not infrastructures and not schedulers and not nodes:
        return None
    return detect_topology(next(iter(infrastructures), None), next(iter(schedulers), None), nodes)


def _storage(objects: list[Object]) -> Storage:
    """Without any class in the file, which one is the default is unknown."""
    profiles = (profile_facts(_json(obj)) for obj in _of(objects, STORAGE_PROFILE))
    classes = [msgspec.convert(obj, StorageClassFacts) for obj in _of(objects, STORAGE_CLASS)]
    return replace(summarize_storage(profiles, classes), knows_classes=bool(classes))


def _machine_configs(objects: list[Object], catalog: Catalog) -> MachineConfigs:
    ours = catalog.names_of(KUBELET_CONFIG)
    kubelets = (msgspec.convert(obj, KubeletConfigFacts) for obj in _of(objects, KUBELET_CONFIG))
    return MachineConfigs(
        tuple(machine_config_facts(_json(obj)) for obj in _of(objects, MACHINE_CONFIG)),
        tuple(msgspec.convert(obj, Pool) for obj in _of(objects, MACHINE_CONFIG_POOL)),
        catalog.names_of(MACHINE_CONFIG),
        tuple(one for one in kubelets if one.name not in ours),
    )


def _schemas(definitions: Mapping[str, Object], catalog: Catalog) -> dict[str, SchemaFacts | None]:
    if not definitions:
        return {}
    return {
        crd: definition_facts(_json(definitions[crd]), paths) if crd in definitions else None
        for crd, paths in catalog.needs.schemas.items()
    }


def _of(objects: list[Object], kind: Kind) -> list[Object]:
    return [obj for obj in objects if kind_of(obj) == kind]


def _json(obj: Object) -> bytes:
    return msgspec.json.encode(obj)
