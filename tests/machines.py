"""Builders of Machines and KubevirtConfigs, and a CRD of Machine with the fields that matter."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

from tests.eventually import eventually
from virt_steward.apis.kubevirtconfig import KUBEVIRT_CONFIG
from virt_steward.controllers.placement.observation import CONFIG_ANNOTATION, MACHINE, MACHINE_API, MACHINE_VERSION
from virt_steward.kube.client import Client, Object
from virt_steward.kube.discovery import CUSTOM_RESOURCE_DEFINITION
from virt_steward.kube.errors import Invalid
from virt_steward.objects.identity import Key, Ref

TEXT = {"type": "string"}


def a_schema(**fields: Any) -> Object:
    return {"type": "object", "properties": fields}


CONDITION = a_schema(
    type=TEXT, status=TEXT, reason=TEXT, message=TEXT, lastTransitionTime={"type": "string", "format": "date-time"}
)


def a_definition_of_machines(*, conditions: bool = True) -> Object:
    """The CRD of Machine: conditions are an atomic list; unknown fields are pruned."""
    status = a_schema(phase=TEXT, **({"conditions": {"type": "array", "items": CONDITION}} if conditions else {}))
    spec = a_schema(name=TEXT, providerConfig=a_schema(name=TEXT, region=TEXT))
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{MACHINE.plural}.{MACHINE.group}"},
        "spec": {
            "group": MACHINE.group,
            "names": {"kind": MACHINE.name, "plural": MACHINE.plural},
            "scope": "Namespaced",
            "versions": [
                {
                    "name": MACHINE_VERSION,
                    "served": True,
                    "storage": True,
                    "subresources": {"status": {}},
                    "schema": {"openAPIV3Schema": a_schema(spec=spec, status=status)},
                }
            ],
        },
    }


def a_machine(namespace: str, name: str, *, annotations: dict[str, str] | None = None, **spec: Any) -> Object:
    metadata = {"name": name, "namespace": namespace, "annotations": annotations or {}}
    return {"apiVersion": MACHINE_API, "kind": MACHINE.name, "metadata": metadata, "spec": spec}


def the_machine(namespace: str, name: str) -> Ref:
    return Ref(MACHINE, Key(namespace, name))


def a_config(name: str, secret: Key, *, labels: dict[str, str] | None = None, **spec: Any) -> Object:
    reference = {"kubeconfigSecretRef": secret.name, "secretNamespace": secret.namespace}
    return {
        "apiVersion": f"{KUBEVIRT_CONFIG.group}/v1alpha1",
        "kind": KUBEVIRT_CONFIG.name,
        "metadata": {"name": name, "labels": labels or {}},
        "spec": {"name": name, **reference, **spec},
    }


def the_config(name: str) -> Ref:
    return Ref(KUBEVIRT_CONFIG, Key("", name))


async def cluster_of(client: Client, namespace: str, name: str) -> str:
    """The cluster in the annotation of the Machine."""
    metadata = (await client.get(the_machine(namespace, name)))["metadata"]
    return str(metadata.get("annotations", {}).get(CONFIG_ANNOTATION, ""))


async def placed(client: Client, namespace: str, name: str) -> Object:
    """The condition Placed of the Machine; empty if absent."""
    status = (await client.get(the_machine(namespace, name))).get("status", {})
    return next((one for one in status.get("conditions", []) if one["type"] == "Placed"), {})


@asynccontextmanager
async def any_reference_allowed(client: Client) -> AsyncIterator[None]:
    """The CRD of KubevirtConfig as others install it: without the rule for kubeconfigSecretRef."""
    crd = Ref(CUSTOM_RESOURCE_DEFINITION, Key("", f"{KUBEVIRT_CONFIG.plural}.{KUBEVIRT_CONFIG.group}"))
    schema = "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/kubeconfigSecretRef"
    path = f"{schema}/x-kubernetes-validations"
    spec = (await client.get(crd))["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]
    rules = spec["properties"]["kubeconfigSecretRef"]["x-kubernetes-validations"]
    await client.json_patch(crd, [{"op": "remove", "path": path}])
    assert await eventually(partial(_is_allowed, client, "a=b"))
    try:
        yield
    finally:
        await client.json_patch(crd, [{"op": "add", "path": path, "value": rules}])
        assert await eventually(partial(_is_refused, client, "a=b"))


async def _is_allowed(client: Client, secret: str) -> bool:
    try:
        await client.create(a_config("any-reference", Key("home", secret)), dry_run=True)
    except Invalid:
        return False
    return True


async def _is_refused(client: Client, secret: str) -> bool:
    return not await _is_allowed(client, secret)
