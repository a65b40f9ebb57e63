"""Assets, contexts and objects with sane defaults."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from virt_steward.catalog.asset import Asset, Declaration
from virt_steward.catalog.context import AssetContext
from virt_steward.catalog.load import Catalog
from virt_steward.catalog.render import Renderer, Rendering
from virt_steward.objects.yamltext import yaml_text
from virt_steward.platform.hco import Hco

DESCHEDULERS = "kubedeschedulers.operator.openshift.io"
TUNING = {"apiVersion": "tuning.example/v1", "kind": "Tuning", "plural": "tunings", "name": "fast"}
TEMPLATE = """\
apiVersion: tuning.example/v1
kind: Tuning
metadata:
  name: fast
"""


def a_declaration(name: str = "fast", **more: Any) -> dict[str, Any]:
    return {"name": name, "summary": "Makes it fast.", "object": TUNING, **more}


def an_asset(template: str = TEMPLATE, *, contents: Mapping[str, str] | None = None, **more: Any) -> Asset:
    declared = msgspec.convert(a_declaration(**more), Declaration)
    path = f"{declared.name}/object.yaml.j2"
    return Asset(**msgspec.structs.asdict(declared), template=template, contents=dict(contents or {}), path=path)


def an_hco_object(*, version: str = "v1", annotations: Mapping[str, str] | None = None, **spec: Any) -> dict[str, Any]:
    metadata = {"name": "kubevirt-hyperconverged", "namespace": "openshift-cnv", "annotations": dict(annotations or {})}
    return {"apiVersion": f"hco.kubevirt.io/{version}", "kind": "HyperConverged", "metadata": metadata, "spec": spec}


def an_hco(**more: Any) -> Hco:
    return Hco.of(an_hco_object(**more))


def a_context(**more: Any) -> AssetContext:
    return AssetContext(**{"hco": an_hco(), **more})


def rendering(asset: Asset, context: AssetContext | None = None) -> Rendering:
    return Renderer(Catalog((asset,))).render(asset, context or a_context())


def write_asset(folder: Path, *, template: str = TEMPLATE, **declared: Any) -> None:
    """Make an asset's folder, named for the asset unless the declaration says otherwise."""
    folder.mkdir(parents=True)
    (folder / "asset.yaml").write_text(yaml_text(a_declaration(**{"name": folder.name, **declared})))
    (folder / "object.yaml.j2").write_text(template)


def a_node(
    name: str = "node-1",
    *,
    roles: tuple[str, ...] = ("worker",),
    labels: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
    capacity: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    plain = {"cpu": "8", "memory": "32Gi", "pods": "250", "ephemeral-storage": "100Gi", "hugepages-2Mi": "0"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "labels": {f"node-role.kubernetes.io/{role}": "" for role in roles} | dict(labels or {}),
            "annotations": dict(annotations or {}),
        },
        "status": {"capacity": plain | dict(capacity or {})},
    }


def a_machine_config(
    name: str, *, role: str = "worker", arguments: tuple[str, ...] = (), config: Any = None
) -> dict[str, Any]:
    return {
        "apiVersion": "machineconfiguration.openshift.io/v1",
        "kind": "MachineConfig",
        "metadata": {"name": name, "labels": {"machineconfiguration.openshift.io/role": role}},
        "spec": {"kernelArguments": list(arguments), "config": config},
    }


def a_kubelet_config(name: str, *, pool: str = "worker") -> dict[str, Any]:
    label = f"pools.operator.machineconfiguration.openshift.io/{pool}"
    return {
        "apiVersion": "machineconfiguration.openshift.io/v1",
        "kind": "KubeletConfig",
        "metadata": {"name": name},
        "spec": {"machineConfigPoolSelector": {"matchLabels": {label: ""}}, "kubeletConfig": {"maxPods": 300}},
    }


def a_pool(name: str = "worker", selector: Mapping[str, Any] | None = None) -> dict[str, Any]:
    usual = {"matchLabels": {"machineconfiguration.openshift.io/role": name}}
    return {
        "apiVersion": "machineconfiguration.openshift.io/v1",
        "kind": "MachineConfigPool",
        "metadata": {"name": name},
        "spec": {"machineConfigSelector": dict(selector or usual)},
    }


def a_crd(name: str = DESCHEDULERS, *, profiles: tuple[str, ...] = ("LongLifecycle",)) -> dict[str, Any]:
    plural, _, group = name.partition(".")
    listed = {"type": "array", "items": {"type": "string", "enum": list(profiles)}}
    spec = {"type": "object", "properties": {"profiles": listed}}
    schema = {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": name},
        "spec": {
            "group": group,
            "names": {"plural": plural, "kind": "KubeDescheduler"},
            "scope": "Namespaced",
            "versions": [{"name": "v1", "served": True, "storage": True, "schema": schema}],
        },
    }


def documents_of(*objects: Mapping[str, Any]) -> str:
    return "---\n".join(yaml_text(obj) for obj in objects)
