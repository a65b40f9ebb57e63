"""Objects that the console shows, created without any controller."""

from typing import Any

from virt_steward.apis.crds import CRDS
from virt_steward.apis.profiles import LOAD_AWARE
from virt_steward.apis.virtplatformconfig import API_VERSION, VIRT_PLATFORM_CONFIG
from virt_steward.controllers.approver.olm import INSTALL_PLAN
from virt_steward.controllers.autopilot.options import HCO
from virt_steward.kube.client import Client, Object
from virt_steward.kube.errors import AlreadyExists, NotFound
from virt_steward.objects.identity import Key, Ref, ref_of
from virt_steward.plans.fingerprint import fields_hash
from virt_steward_demo.simulation.install import install, make_namespace
from virt_steward_demo.simulation.kinds import NAMES

PLAN = "1" * 64
OTHER_PLAN = "2" * 64
MOMENT = "2026-03-01T12:00:00Z"


def the_config(name: str = LOAD_AWARE) -> Ref:
    return Ref(VIRT_PLATFORM_CONFIG, Key("", name))


def an_item(name: str = "configure-descheduler", **changes: Any) -> Object:
    target = {"apiVersion": "operator.openshift.io/v1", "kind": "KubeDescheduler", "name": "cluster"}
    return {
        "name": name,
        "targetRef": target,
        "impactSeverity": "Medium",
        "state": "Pending",
        "message": "KubeDescheduler 'cluster' will be configured",
        "diff": "--- live\n+++ planned\n@@ -1,2 +1,2 @@\n kind: KubeDescheduler\n-  interval: 30\n+  interval: 60\n",
        **changes,
    }


def a_condition(type_: str, message: str = "", *, status: str = "True", reason: str = "PlanReady") -> Object:
    return {"type": type_, "status": status, "reason": reason, "message": message, "lastTransitionTime": MOMENT}


def a_review(*items: Object, plan: str = PLAN, message: str = "The plan is ready for review") -> Object:
    """A status with a plan that is ready for review."""
    return {
        "phase": "ReviewRequired",
        "impactSeverity": "Medium",
        "planHash": plan,
        "items": list(items or (an_item(),)),
        "conditions": [a_condition("ReviewRequired", message)],
    }


def a_drift(applied: Object, *fields: str, plan: str = PLAN) -> Object:
    """A status that reports drift."""
    metadata = applied["metadata"]
    target = {"apiVersion": applied["apiVersion"], "kind": applied["kind"], **metadata}
    item = an_item(
        targetRef=target,
        state="Completed",
        message="Others have changed it since it was applied",
        desiredState=applied,
        managedFields=list(fields),
        plannedHash=fields_hash(applied, fields),
    )
    condition = a_condition(
        "Drifted",
        "Drifted: configure-descheduler",
        reason="DriftDetected",
    )
    return {**a_review(item, plan=plan), "phase": "Drifted", "planAction": "Apply", "conditions": [condition]}


async def put_config(
    client: Client, status: Object, name: str = LOAD_AWARE, *, action: str = "DryRun", **metadata: Any
) -> None:
    """Create the config with this status, or replace the status and the annotations that another test has left."""
    ref, spec = the_config(name), {"profile": name, "action": action}
    config = {"apiVersion": API_VERSION, "kind": VIRT_PLATFORM_CONFIG.name, "metadata": {"name": name, **metadata}}
    try:
        live = await client.create({**config, "spec": spec})
    except AlreadyExists:
        notes = {"op": "add", "path": "/metadata/annotations", "value": metadata.pop("annotations", {})}
        await client.json_patch(ref, [notes])
        live = await client.merge_patch(ref, {"metadata": metadata, "spec": spec})
    whole = {"observedGeneration": live["metadata"]["generation"], **status}
    await client.json_patch(ref, [{"op": "add", "path": "/status", "value": whole}], subresource="status")


async def put(client: Client, obj: Object) -> None:
    """Create or update an object."""
    await client.apply(obj, manager="tests", force=True)


async def no_config(client: Client, name: str = LOAD_AWARE) -> None:
    try:
        await client.delete(the_config(name))
    except NotFound:
        return


async def define_all(client: Client) -> None:
    """Define all kinds that the console shows; other tests may have deleted some."""
    await install(client, *NAMES, *(crd.manifest() for crd in CRDS))
    await make_namespace(client, HCO.namespace)


async def no_approved_plans(client: Client) -> None:
    """Delete approved plans of other tests, which the simulated OLM could not install."""
    for plan in await client.list(INSTALL_PLAN):
        if plan["spec"].get("approved"):
            await client.delete(ref_of(plan))
