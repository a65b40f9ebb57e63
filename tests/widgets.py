"""A custom kind for tests, and CRDs of others: built-in kinds have objects that the tests did not create."""

import itertools
from contextlib import suppress
from typing import Any

import msgspec

from tests.eventually import eventually
from virt_steward.kube.client import Client
from virt_steward.kube.errors import AlreadyExists, NotServed, Unavailable
from virt_steward.objects.identity import Key, Kind, Ref
from virt_steward.objects.meta import Meta

GROUP = "tests.virt-steward.example"
WIDGET = Kind(GROUP, "Widget", "widgets")
V1 = f"{GROUP}/v1"

_numbers = itertools.count(1)


class Spec(msgspec.Struct, frozen=True):
    size: int = 0
    colour: str = ""


class Widget(msgspec.Struct, frozen=True):
    """A widget as the informers of tests decode it."""

    metadata: Meta
    spec: Spec = Spec()


def a_widget(namespace: str, name: str = "one", *, labels: dict[str, str] | None = None, **spec: Any) -> dict[str, Any]:
    metadata = {"name": name, "namespace": namespace, **({"labels": labels} if labels else {})}
    return {"apiVersion": V1, "kind": "Widget", "metadata": metadata, "spec": spec}


def the_widget(namespace: str, name: str = "one") -> Ref:
    return Ref(WIDGET, Key(namespace, name))


def a_crd(
    kind: str, *, plural: str = "", versions: tuple[str, ...] = ("v1",), scope: str = "Namespaced"
) -> dict[str, Any]:
    """A CRD with any spec and a status; the last version is the stored one."""
    plural = plural or f"{kind.lower()}s"
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{GROUP}"},
        "spec": {
            "group": GROUP,
            "names": {"kind": kind, "plural": plural},
            "scope": scope,
            "versions": [a_version(name, stored=name == versions[-1]) for name in versions],
        },
    }


def a_version(name: str, *, served: bool = True, stored: bool = False) -> dict[str, Any]:
    free = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    return {
        "name": name,
        "served": served,
        "storage": stored,
        "subresources": {"status": {}},
        "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": free, "status": free}}},
    }


def a_new_kind() -> Kind:
    """A kind that no other test uses."""
    number = next(_numbers)
    return Kind(GROUP, f"Gadget{number}", f"gadget{number}s")


async def install_crd(client: Client, definition: dict[str, Any]) -> None:
    """Create a CRD and wait until the server serves it."""
    with suppress(AlreadyExists):
        await client.create(definition)
    spec = definition["spec"]
    kind = Kind(spec["group"], spec["names"]["kind"])
    assert await eventually(lambda: _is_listed(client, kind), within=20)


async def _is_listed(client: Client, kind: Kind) -> bool:
    try:
        await client.list(kind)
    except (NotServed, Unavailable):
        client.discovery.forget()
        return False
    return True
