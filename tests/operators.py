"""Builders of the objects of an operator, as OLM writes them while an InstallPlan is pending."""

import json
from typing import Any

from virt_steward.apis.installplanapprover import INSTALL_PLAN_APPROVER
from virt_steward.controllers.approver.olm import API_VERSION, CLUSTER_SERVICE_VERSION, INSTALL_PLAN, SUBSCRIPTION
from virt_steward.kube.client import Client
from virt_steward.objects.identity import Key, Ref, ref_of

Object = dict[str, Any]

PACKAGE = "demo-operator"


async def create(client: Client, *objects: Object) -> None:
    """Create objects with their status, in order."""
    for obj in objects:
        await client.create(obj)
        if "status" in obj:
            await client.merge_patch(ref_of(obj), {"status": obj["status"]}, subresource="status")


def csv_of(version: str, package: str = PACKAGE) -> str:
    return f"{package}.v{version}"


def a_pending_plan(
    namespace: str, version: str = "1.0.0", *, name: str = "install-1", phase: str = "RequiresApproval", **spec: Any
) -> Object:
    """A plan for one version of the demo operator, with the name of its package in the bundle lookups."""
    csv = csv_of(version)
    package = {"type": "olm.package", "value": {"packageName": PACKAGE, "version": version}}
    lookup = {"identifier": csv, "properties": json.dumps({"properties": [package]})}
    return {
        "apiVersion": API_VERSION,
        "kind": INSTALL_PLAN.name,
        "metadata": {"name": name, "namespace": namespace},
        "spec": {
            "approval": "Manual",
            "approved": False,
            "generation": 1,
            "clusterServiceVersionNames": [csv],
            **spec,
        },
        "status": {"phase": phase, "bundleLookups": [lookup], "plan": []},
    }


def a_subscription(namespace: str, *, pin: str, offered: str, installed: str = "") -> Object:
    """A Subscription with Manual approval; arguments are versions."""
    status = {"currentCSV": csv_of(offered), "installPlanGeneration": 1}
    return {
        "apiVersion": API_VERSION,
        "kind": SUBSCRIPTION.name,
        "metadata": {"name": PACKAGE, "namespace": namespace},
        "spec": {"name": PACKAGE, "startingCSV": csv_of(pin), "installPlanApproval": "Manual"},
        "status": status | ({"installedCSV": csv_of(installed)} if installed else {}),
    }


def a_csv(namespace: str, version: str, phase: str, message: str = "") -> Object:
    return {
        "apiVersion": API_VERSION,
        "kind": CLUSTER_SERVICE_VERSION.name,
        "metadata": {"name": csv_of(version), "namespace": namespace},
        "status": {"phase": phase, "message": message},
    }


def an_approver(namespace: str, name: str = "approver", **spec: Any) -> Object:
    """An InstallPlanApprover of its own namespace, unless `spec` says otherwise."""
    return {
        "apiVersion": f"{INSTALL_PLAN_APPROVER.group}/v1alpha1",
        "kind": INSTALL_PLAN_APPROVER.name,
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"targetNamespaces": [namespace], **spec},
    }


def the_plan(namespace: str, name: str = "install-1") -> Ref:
    return Ref(INSTALL_PLAN, Key(namespace, name))


def the_csv(namespace: str, version: str) -> Ref:
    return Ref(CLUSTER_SERVICE_VERSION, Key(namespace, csv_of(version)))
