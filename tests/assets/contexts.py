"""Clusters as assets see them, and what the shipped assets make of them."""

import json
from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from virt_steward.catalog.asset import Asset
from virt_steward.catalog.conditions import Met
from virt_steward.catalog.context import AssetContext
from virt_steward.catalog.load import Catalog, load
from virt_steward.catalog.render import Rendered, Renderer, Rendering
from virt_steward.objects.schemafacts import definition_facts
from virt_steward.platform.hco import Hco
from virt_steward.platform.machineconfigs import MachineConfigs
from virt_steward.platform.nodes import Hardware, Nodes
from virt_steward.platform.storage import Storage
from virt_steward.platform.topology import Topology
from virt_steward_demo.simulation.kinds import STUBS

Object = dict[str, Any]
OURS = "platform.kubevirt.io/"


@dataclass(frozen=True, slots=True)
class Cluster:
    """A cluster of six nodes with every operator installed, and nothing that anybody has set."""

    annotations: Mapping[str, str] = field(default_factory=dict)
    """Of the HCO, without their common prefix."""
    spec: Mapping[str, Any] = field(default_factory=dict)
    """Of the HCO."""
    nodes: int = 6
    topology: Topology = field(default_factory=lambda: Topology(platform="AWS"))
    hardware: Hardware = field(default_factory=Hardware)
    storage: Storage = field(default_factory=lambda: Storage(default="fast"))
    machine_configs: MachineConfigs = field(default_factory=MachineConfigs)
    objects: Mapping[str, Object] = field(default_factory=dict)
    """What exists of the objects that assets read, by name."""
    definitions: Mapping[str, Object] = field(default_factory=dict)
    """CRDs in another form than their latest, by name."""

    def context(self) -> AssetContext:
        needs = catalog().needs
        return AssetContext(
            Hco.of(an_hco(self.annotations, self.spec)),
            nodes=Nodes(self.nodes, self.nodes, 0),
            hardware=self.hardware,
            topology=self.topology,
            storage=self.storage,
            machine_configs=self.machine_configs,
            images={image: f"registry.example/{image}:1" for image in needs.images},
            objects={read.ref: self.objects.get(read.name) for read in needs.objects},
            schemas={
                crd: definition_facts(json.dumps(self.definitions.get(crd) or stub(crd)).encode(), paths)
                for crd, paths in needs.schemas.items()
            },
        )


def an_hco(annotations: Mapping[str, str], spec: Mapping[str, Any]) -> Object:
    return {
        "apiVersion": "hco.kubevirt.io/v1",
        "kind": "HyperConverged",
        "metadata": {
            "name": "kubevirt-hyperconverged",
            "namespace": "openshift-cnv",
            "annotations": {f"{OURS}{key}": value for key, value in annotations.items()},
        },
        "spec": dict(spec),
    }


@cache
def catalog() -> Catalog:
    return load()


@cache
def _renderer() -> Renderer:
    return Renderer(catalog())


def stub(crd: str) -> Object:
    """A copy, which a test may change: the simulated platform installs the original."""
    return deepcopy(_definition(crd))


def _definition(crd: str) -> Object:
    return next(known.definition() for known in STUBS if f"{known.kind.plural}.{known.kind.group}" == crd)


def an_asset(name: str) -> Asset:
    found = catalog().find(name)
    assert found, name
    return found


def rendering(name: str, cluster: Cluster) -> Rendering:
    return _renderer().render(an_asset(name), cluster.context())


def rendered(name: str, cluster: Cluster) -> Object:
    made = rendering(name, cluster)
    assert isinstance(made, Rendered), made
    return made.object


def is_wanted(name: str, cluster: Cluster) -> bool:
    """Whether all conditions of the asset are met; `rendered` does not look at them."""
    context, conditions = cluster.context(), an_asset(name).conditions
    assert conditions
    return all(condition.check(context) == Met() for condition in conditions)
