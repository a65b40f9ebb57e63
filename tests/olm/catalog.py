"""The operators that tests install: a file-based catalog with whole bundles, so that nothing has to be unpacked."""

import base64
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import yaml

from virt_steward import __version__

BUNDLE = Path(__file__).parents[2] / "deploy" / "bundle" / "manifests"
CHANNEL = "stable"


@dataclass(frozen=True, slots=True)
class Operator:
    """A package whose versions replace each other in order, and whose API is named after it."""

    package: str
    versions: tuple[str, ...]
    kind: str
    requires: str = ""
    """A kind that another operator must provide."""

    def csv(self, version: str) -> str:
        return f"{self.package}.v{version}"


DEMO = Operator("demo-operator", ("1.0.0", "1.1.0"), "Demo")
EXTRA = Operator("extra-operator", ("2.0.0", "2.1.0"), "Extra")
APP = Operator("app-operator", ("3.0.0",), "App", requires="Demo")
STEPS = Operator("steps-operator", ("1.0.0", "1.0.1", "1.0.2", "1.1.0", "2.0.0"), "Step")
"""Each version replaces the one before and skips none, so OLM goes through all of them."""
BACKUP = Operator("backup-operator", ("2.0.0", "2.1.0"), "Backup")
"""The operator of the tour."""
OPERATORS = (DEMO, EXTRA, APP, STEPS, BACKUP)
STEWARD = Operator("virt-steward", (__version__,), "VirtPlatformConfig")
"""Ourselves, as the bundle in deploy/ has it."""


def write_catalog(folder: Path) -> None:
    folder.mkdir()
    for operator in OPERATORS:
        (folder / f"{operator.package}.json").write_text("\n".join(map(json.dumps, _blobs(operator))))
    (folder / f"{STEWARD.package}.json").write_text("\n".join(map(json.dumps, _shipped(STEWARD))))


def _shipped(operator: Operator) -> Iterator[dict[str, Any]]:
    """The bundle as it is, but with no pods: there is no node to run them on."""
    manifests = [yaml.safe_load(path.read_text()) for path in sorted(BUNDLE.iterdir())]
    [csv] = [one for one in manifests if one["kind"] == "ClusterServiceVersion"]
    for deployment in csv["spec"]["install"]["spec"]["deployments"]:
        deployment["spec"]["replicas"] = 0
    [version] = operator.versions
    properties = [
        {"type": "olm.package", "value": {"packageName": operator.package, "version": version}},
        *(
            {
                "type": "olm.gvk",
                "value": {
                    "group": one["name"].partition(".")[2],
                    "version": one["version"],
                    "kind": one["kind"],
                },
            }
            for one in csv["spec"]["customresourcedefinitions"]["owned"]
        ),
        *_objects(manifests),
    ]
    name = csv["metadata"]["name"]
    yield {"schema": "olm.package", "name": operator.package, "defaultChannel": CHANNEL}
    yield {"schema": "olm.channel", "name": CHANNEL, "package": operator.package, "entries": [{"name": name}]}
    yield {"schema": "olm.bundle", "name": name, "package": operator.package, "properties": properties}


def _objects(manifests: Iterable[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    for manifest in manifests:
        data = base64.b64encode(json.dumps(manifest).encode()).decode()
        yield {"type": "olm.bundle.object", "value": {"data": data}}


def _blobs(operator: Operator) -> Iterator[dict[str, Any]]:
    """One package with one channel, and a bundle for each version."""
    names = [operator.csv(version) for version in operator.versions]
    replaces = dict.fromkeys(names, "") | {new: old for old, new in pairwise(names)}
    entries = [{"name": new, "replaces": old} if old else {"name": new} for new, old in replaces.items()]
    yield {"schema": "olm.package", "name": operator.package, "defaultChannel": CHANNEL}
    yield {"schema": "olm.channel", "name": CHANNEL, "package": operator.package, "entries": entries}
    for version in operator.versions:
        name = operator.csv(version)
        properties = list(_properties(operator, version, replaces[name]))
        yield {"schema": "olm.bundle", "name": name, "package": operator.package, "properties": properties}


def _properties(operator: Operator, version: str, replaces: str) -> Iterator[dict[str, Any]]:
    yield {"type": "olm.package", "value": {"packageName": operator.package, "version": version}}
    yield {"type": "olm.gvk", "value": _api(operator.kind)}
    if operator.requires:
        yield {"type": "olm.gvk.required", "value": _api(operator.requires)}
    yield from _objects((_cluster_service_version(operator, version, replaces), _definition(operator.kind)))


def _api(kind: str) -> dict[str, str]:
    return {"group": f"{kind.lower()}.example.com", "version": "v1", "kind": kind}


def _definition_name(kind: str) -> str:
    return f"{kind.lower()}s.{_api(kind)['group']}"


def _definition(kind: str) -> dict[str, Any]:
    anything = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": anything}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": _definition_name(kind)},
        "spec": {
            "group": _api(kind)["group"],
            "names": {
                "kind": kind,
                "listKind": f"{kind}List",
                "plural": f"{kind.lower()}s",
                "singular": kind.lower(),
            },
            "scope": "Namespaced",
            "versions": [version],
        },
    }


def _cluster_service_version(operator: Operator, version: str, replaces: str) -> dict[str, Any]:
    definitions = {"owned": [_definition_use(operator.kind)]}
    if operator.requires:
        definitions["required"] = [_definition_use(operator.requires)]
    return {
        "apiVersion": "operators.coreos.com/v1alpha1",
        "kind": "ClusterServiceVersion",
        "metadata": {"name": operator.csv(version)},
        "spec": {
            "displayName": operator.package,
            "version": version,
            "installModes": [
                {"type": "OwnNamespace", "supported": True},
                {"type": "SingleNamespace", "supported": True},
                {"type": "MultiNamespace", "supported": False},
                {"type": "AllNamespaces", "supported": True},
            ],
            "customresourcedefinitions": definitions,
            "install": {
                "strategy": "deployment",
                "spec": {"permissions": [_permissions(operator)], "deployments": [_deployment(operator, version)]},
            },
            **({"replaces": replaces} if replaces else {}),
        },
    }


def _definition_use(kind: str) -> dict[str, str]:
    return {"name": _definition_name(kind), "version": "v1", "kind": kind, "displayName": kind, "description": kind}


def _permissions(operator: Operator) -> dict[str, Any]:
    rule = {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get"]}
    return {"serviceAccountName": operator.package, "rules": [rule]}


def _deployment(operator: Operator, version: str) -> dict[str, Any]:
    labels = {"app": operator.package}
    container = {"name": "manager", "image": f"registry.invalid/{operator.package}:v{version}"}
    return {
        "name": operator.package,
        "spec": {
            "replicas": 0,  # available at once, with no node to run anything on
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {"serviceAccountName": operator.package, "containers": [container]},
            },
        },
    }
