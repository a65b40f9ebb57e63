"""InstallPlans, their steps and the objects that they create, as the Operator Lifecycle Manager writes them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from virt_steward.controllers.approver.olm import API_VERSION
from virt_steward_demo.simulation.packages import CATALOG, CATALOG_NAMESPACE, CHANNEL

if TYPE_CHECKING:
    from collections.abc import Sequence

    from virt_steward.kube.client import Object
    from virt_steward.objects.identity import Key
    from virt_steward_demo.simulation.control_loop import SimulatedObject
    from virt_steward_demo.simulation.packages import Bundle, Offer

GROUP, VERSION = API_VERSION.split("/")
GENERATED_BY = "olm.generated-by"


def a_subscription(key: Key, *, pin: str = "", approval: str = "Manual") -> Object:
    """A Subscription to the package of that name, as an admin writes it."""
    spec = {
        "name": key.name,
        "channel": CHANNEL,
        "source": CATALOG,
        "sourceNamespace": CATALOG_NAMESPACE,
        "installPlanApproval": approval,
        **({"startingCSV": pin} if pin else {}),
    }
    metadata = {"name": key.name, "namespace": key.namespace}
    return {"apiVersion": API_VERSION, "kind": "Subscription", "metadata": metadata, "spec": spec}


def an_install_plan(key: Key, generation: int, offer: Offer, subscriptions: Sequence[SimulatedObject]) -> Object:
    """A new InstallPlan without a status. Like in OLM, all Subscriptions of the namespace own it."""
    manual = any(one.spec.get("installPlanApproval") == "Manual" for one in subscriptions)
    owners = [
        {
            "apiVersion": API_VERSION,
            "kind": "Subscription",
            "name": one.name,
            "uid": one.metadata.uid,
            "controller": False,
            "blockOwnerDeletion": False,
        }
        for one in subscriptions
    ]
    return {
        "apiVersion": API_VERSION,
        "kind": "InstallPlan",
        "metadata": {"name": key.name, "namespace": key.namespace, "ownerReferences": owners},
        "spec": {
            "approval": "Manual" if manual else "Automatic",
            "approved": not manual,
            "clusterServiceVersionNames": [bundle.csv for bundle in offer.bundles],
            "generation": generation,
        },
    }


def steps_of(offer: Offer, namespace: str) -> list[Object]:
    csvs = [csv_step(bundle.csv, bundle.package.name, bundle.version, bundle.replaces) for bundle in offer.bundles]
    return [*csvs, *(_subscription_step(bundle, namespace) for bundle in offer.dependencies)]


def csv_step(csv: str, package: str, version: str, replaces: str = "") -> Object:
    """The step of one operator: its CSV as text, with the name of the package."""
    manifest: Object = {"metadata": {"name": csv, "annotations": properties(package, version)}}
    if replaces:
        manifest["spec"] = {"replaces": replaces}
    return _step(csv, "ClusterServiceVersion", csv, manifest)


def properties(package: str, version: str) -> dict[str, str]:
    """The annotation of a CSV that names its package."""
    listed = {"properties": [{"type": "olm.package", "value": {"packageName": package, "version": version}}]}
    return {"operatorframework.io/properties": msgspec.json.encode(listed).decode()}


def _subscription_step(bundle: Bundle, namespace: str) -> Object:
    name = f"{bundle.package.name}-{CHANNEL}-{CATALOG}-{CATALOG_NAMESPACE}"
    spec = {
        "source": CATALOG,
        "sourceNamespace": CATALOG_NAMESPACE,
        "name": bundle.package.name,
        "channel": CHANNEL,
        "startingCSV": bundle.csv,
        "installPlanApproval": "Automatic",
    }
    manifest = {"metadata": {"name": name, "namespace": namespace}, "spec": spec}
    return _step(bundle.csv, "Subscription", name, manifest)


def _step(resolving: str, kind: str, name: str, manifest: Object) -> Object:
    resource = {
        "group": GROUP,
        "version": VERSION,
        "kind": kind,
        "name": name,
        "sourceName": CATALOG,
        "sourceNamespace": CATALOG_NAMESPACE,
        "manifest": msgspec.json.encode(manifest).decode(),
    }
    return {"resolving": resolving, "resource": resource, "status": "Unknown"}


def object_of_step(step: Object, plan: Key) -> Object:
    """The object that OLM creates for a step."""
    resource = step["resource"]
    manifest = msgspec.json.decode(resource["manifest"])
    metadata = {**manifest["metadata"], "namespace": plan.namespace, "labels": {"olm.managed": "true"}}
    if resource["kind"] == "Subscription":
        metadata["annotations"] = {GENERATED_BY: plan.name}
    return {"apiVersion": API_VERSION, "kind": resource["kind"], "metadata": metadata, "spec": manifest.get("spec", {})}


def pending_status(plan: Key, csv: str, generation: int) -> Object:
    """The status of a Subscription while its InstallPlan is pending."""
    reference = {"apiVersion": API_VERSION, "kind": "InstallPlan", "name": plan.name, "namespace": plan.namespace}
    return {
        "currentCSV": csv,
        "state": "UpgradePending",
        "installPlanGeneration": generation,
        "installPlanRef": reference,
        "conditions": [{"type": "InstallPlanPending", "status": "True", "reason": "RequiresApproval"}],
    }
