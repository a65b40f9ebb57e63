"""An installation as an OLM bundle: a ClusterServiceVersion with the same Deployments and RBAC, and our CRDs."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from virt_steward import __version__
from virt_steward.apis.crds import CRDS
from virt_steward.controllers import NAMES
from virt_steward.objects.identity import Key, ref_of
from virt_steward.packaging.monitoring import of_operators, on_every_cluster
from virt_steward.packaging.parts import NOTICE, InstallOptions, Object, documents, installed, namespace
from virt_steward.runtime.access import ALL_IN_ONE

if TYPE_CHECKING:
    from collections.abc import Iterator

    from virt_steward.apis.crd import Crd

PACKAGE = "virt-steward"
CHANNEL = "stable"
CSV = f"{PACKAGE}.v{__version__}"


def bundle(options: InstallOptions) -> dict[str, str]:
    """The files of the bundle: text by path."""
    manifests = {f"{PACKAGE}.clusterserviceversion": cluster_service_version(options)}
    parts, chosen = installed(replace(options, console=False)), (options.installation, options.monitoring)
    manifests |= {obj["metadata"]["name"]: obj for obj in parts["crds"]}
    monitored = {**on_every_cluster(*chosen), **of_operators(*chosen)}
    topics = ("roles", "aggregated-roles", "operation", "network")
    besides = [obj for topic in topics for obj in parts.get(topic, ())]
    besides += [obj for obj in _of_controllers(options) if obj["kind"] == "PodDisruptionBudget"]
    besides += [obj for objects in monitored.values() for obj in objects]
    manifests |= {_file_name(obj): _without_namespace(obj) for obj in besides}
    return {
        **{f"manifests/{name}.yaml": NOTICE + documents([obj]) for name, obj in manifests.items()},
        "metadata/annotations.yaml": NOTICE + documents([{"annotations": dict(_annotations())}]),
    }


def cluster_service_version(options: InstallOptions) -> Object:
    objects = _of_controllers(options)
    return {
        "apiVersion": "operators.coreos.com/v1alpha1",
        "kind": "ClusterServiceVersion",
        "metadata": {
            "name": CSV,
            "annotations": {
                "capabilities": "Auto Pilot",
                "categories": "Cloud Provider",
                "operatorframework.io/suggested-namespace": options.installation.namespace,
                "operatorframework.io/suggested-namespace-template": json.dumps(namespace(options.installation)),
                "operatorframework.io/cluster-monitoring": "true",
            },
        },
        "spec": {
            "displayName": PACKAGE,
            "description": _DESCRIPTION,
            "version": __version__,
            "minKubeVersion": "1.27.0",
            "maturity": "alpha",
            "provider": {"name": PACKAGE},
            "keywords": ["kubevirt", "virtualization"],
            "installModes": [
                {"type": mode, "supported": mode == "AllNamespaces"}
                for mode in ("OwnNamespace", "SingleNamespace", "MultiNamespace", "AllNamespaces")
            ],
            "relatedImages": [{"name": PACKAGE, "image": options.image}],
            "customresourcedefinitions": {"owned": [_owned(crd) for crd in CRDS]},
            "install": {
                "strategy": "deployment",
                "spec": {
                    "clusterPermissions": list(_permissions(objects, "ClusterRole")),
                    "permissions": list(_permissions(objects, "Role")),
                    "deployments": [_deployment(obj) for obj in objects if obj["kind"] == "Deployment"],
                },
            },
        },
    }


_DESCRIPTION = """\
Four controllers around KubeVirt. The advisor plans a tuning, previews it and applies it once it is approved. The
autopilot keeps the platform at its best practice. The approver approves exactly the operator versions that Git pins.
The placement chooses the cluster that runs a Machine. Nothing changes until somebody requests it, and every decision
has a reason.

OLM installs no admission policies: `virt-steward policies | kubectl apply -f -` adds those that check who decides.
"""


def _of_controllers(options: InstallOptions) -> list[Object]:
    parts = installed(options)
    return [obj for name in (*NAMES, ALL_IN_ONE) for obj in parts.get(name, ())]


def _owned(crd: Crd) -> Object:
    manifest = crd.manifest()
    names, [version] = manifest["spec"]["names"], manifest["spec"]["versions"]
    return {
        "name": manifest["metadata"]["name"],
        "kind": names["kind"],
        "version": version["name"],
        "displayName": names["kind"],
        "description": version["schema"]["openAPIV3Schema"]["description"],
    }


def _permissions(objects: list[Object], kind: str) -> Iterator[Object]:
    """The rules of the roles of this kind, each with the ServiceAccount to which it is bound."""
    roles = {(obj["kind"], ref_of(obj).key): obj["rules"] for obj in objects if obj["kind"] == kind}
    for obj in objects:
        if obj["kind"] == f"{kind}Binding":
            [subject] = obj["subjects"]
            role = Key(ref_of(obj).key.namespace, obj["roleRef"]["name"])
            yield {"serviceAccountName": subject["name"], "rules": roles[kind, role]}


def _deployment(obj: Object) -> Object:
    return {"name": obj["metadata"]["name"], "label": obj["metadata"]["labels"], "spec": obj["spec"]}


def _file_name(obj: Object) -> str:
    """Several objects of one name are of different kinds: a role and its binding."""
    return f"{obj['metadata']['name']}.{obj['kind'].lower()}"


def _without_namespace(obj: Object) -> Object:
    """OLM sets the namespace into which it installs."""
    metadata: dict[str, Any] = {name: value for name, value in obj["metadata"].items() if name != "namespace"}
    return {**obj, "metadata": metadata}


def _annotations() -> Iterator[tuple[str, str]]:
    prefix = "operators.operatorframework.io.bundle"
    yield f"{prefix}.mediatype.v1", "registry+v1"
    yield f"{prefix}.manifests.v1", "manifests/"
    yield f"{prefix}.metadata.v1", "metadata/"
    yield f"{prefix}.package.v1", PACKAGE
    yield f"{prefix}.channels.v1", CHANNEL
    yield f"{prefix}.channel.default.v1", CHANNEL
