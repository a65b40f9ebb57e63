"""A custom resource with every type of list, and other objects to apply."""

import asyncio
import time
from collections.abc import Callable
from itertools import count
from typing import Any

from virt_steward.kube.client import Client
from virt_steward.kube.errors import Claim, KubeError, NotServed, TooManyRequests
from virt_steward.objects.identity import ref_of

Object = dict[str, Any]
Build = Callable[..., Object]

_numbers = count(1)

_TEXT = {"type": "string"}
_NAMED = {"type": "object", "required": ["name"], "properties": {"name": _TEXT, "port": {"type": "integer"}}}
_SPEC = {
    "size": {"type": "integer"},
    "color": _TEXT,
    "args": {"type": "array", "items": _TEXT},
    "ports": {
        "type": "array",
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["name"],
        "items": _NAMED,
    },
    "tags": {"type": "array", "x-kubernetes-list-type": "set", "items": _TEXT},
    "limits": {"type": "object", "x-kubernetes-map-type": "atomic", "additionalProperties": _TEXT},
    "mode": {**_TEXT, "default": "Automatic"},
}
_STATUS = {
    "phase": _TEXT,
    "conditions": {"type": "array", "items": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
    "ports": _SPEC["ports"],
    "summary": _SPEC["limits"],
}
_SCHEMA = {
    "type": "object",
    "properties": {
        "spec": {"type": "object", "properties": _SPEC},
        "status": {"type": "object", "properties": _STATUS},
    },
}
CRD: Object = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "gadgets.ssa.example.com"},
    "spec": {
        "group": "ssa.example.com",
        "scope": "Cluster",
        "names": {"kind": "Gadget", "plural": "gadgets"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": _SCHEMA},
            }
        ],
    },
}


def a_name() -> str:
    return f"ssa-{next(_numbers)}"


def a_gadget(name: str, **spec: Any) -> Object:
    return {"apiVersion": "ssa.example.com/v1", "kind": "Gadget", "metadata": {"name": name}, "spec": spec}


def a_gadget_status(name: str, **status: Any) -> Object:
    return {"apiVersion": "ssa.example.com/v1", "kind": "Gadget", "metadata": {"name": name}, "status": status}


def a_config_map(name: str, **data: str) -> Object:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "default"}, "data": data}


def a_service(name: str, **ports: int) -> Object:
    """Leaves the protocol, which is one of the two keys of a port, to the server."""
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"ports": [{"name": port, "port": number} for port, number in ports.items()]},
    }


def a_pod_template(name: str, **images: str) -> Object:
    """As a workload has one, but without a controller that writes to it."""
    containers = [{"name": container, "image": image} for container, image in images.items()]
    return {
        "apiVersion": "v1",
        "kind": "PodTemplate",
        "metadata": {"name": name, "namespace": "default"},
        "template": {"spec": {"containers": containers}},
    }


def annotated(obj: Object, **annotations: str) -> Object:
    return {**obj, "metadata": {**obj["metadata"], "annotations": annotations}}


def claims(**fields: str) -> frozenset[Claim]:
    """Of one manager per field: `claims(size="kubectl")` for .spec.size."""
    return frozenset(Claim(manager, f".spec.{field}") for field, manager in fields.items())


async def written(client: Client, obj: Object, *, by: str) -> Object:
    """Apply as somebody else would, and return what the server now has."""
    subresource = "status" if "status" in obj else ""
    return (await client.apply(obj, manager=by, force=True, subresource=subresource)).object


async def live(client: Client, obj: Object) -> Object:
    return await client.get(ref_of(obj))


def managers_of(obj: Object) -> list[str]:
    return [entry["manager"] for entry in obj["metadata"].get("managedFields", [])]


async def serve_gadgets(client: Client) -> None:
    """Install the CRD, and wait until its objects can be written."""
    await client.apply(CRD, manager="tests", force=True)
    deadline = time.monotonic() + 10
    while True:
        try:
            await client.discovery.refresh()
            await client.apply(a_gadget("probe", size=1), manager="tests", dry_run=True)
        except (NotServed, TooManyRequests) as error:
            _still_time(deadline, error)
            await asyncio.sleep(0.02)
        else:
            return


def _still_time(deadline: float, error: KubeError) -> None:
    if time.monotonic() > deadline:
        raise error
