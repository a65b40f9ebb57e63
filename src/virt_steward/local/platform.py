"""The simulated platform: kinds of other systems, as far as the demo and the tests need them, and a story on them."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from virt_steward.controllers.approver.olm import API_VERSION, CLUSTER_SERVICE_VERSION, INSTALL_PLAN, SUBSCRIPTION
from virt_steward.kube.errors import NotServed, Unavailable
from virt_steward.local.errors import LocalError
from virt_steward.objects.identity import Key, Kind, Ref, ref_of
from virt_steward.ssa import managers

if TYPE_CHECKING:
    from collections.abc import Iterable

    from virt_steward.kube.client import Client, Object

SECONDS_TO_SERVE = 60.0


def definition(kind: Kind, version: str, *, scope: str = "Namespaced") -> Object:
    """A definition that accepts anything, with a status of its own."""
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{kind.plural}.{kind.group}"},
        "spec": {
            "group": kind.group,
            "scope": scope,
            "names": {
                "kind": kind.name,
                "listKind": f"{kind.name}List",
                "plural": kind.plural,
                "singular": kind.name.lower(),
            },
            "versions": [
                {
                    "name": version,
                    "served": True,
                    "storage": True,
                    "subresources": {"status": {}},
                    "schema": {"openAPIV3Schema": schema},
                }
            ],
        },
    }


OLM_DEFINITIONS = tuple(definition(kind, "v1alpha1") for kind in (INSTALL_PLAN, SUBSCRIPTION, CLUSTER_SERVICE_VERSION))


async def install(client: Client, definitions: Iterable[Object]) -> None:
    """Apply definitions and wait until the server serves them."""
    wanted = []
    for one in definitions:
        await client.apply(one, manager=managers.INSTALL.name)
        names = one["spec"]["names"]
        wanted.append(Kind(one["spec"]["group"], names["kind"], names["plural"]))
    try:
        async with asyncio.timeout(SECONDS_TO_SERVE):
            for kind in wanted:
                while not await _is_served(client, kind):  # noqa: ASYNC110 - only the server can tell
                    await asyncio.sleep(0.1)
    except TimeoutError:
        raise LocalError(f"the API server does not serve {kind} after {SECONDS_TO_SERVE:g} s: try again") from None


async def _is_served(client: Client, kind: Kind) -> bool:
    try:
        await client.discovery.refresh()
        await client.list(kind)
    except (NotServed, Unavailable):  # a new kind may be absent, or ask for patience, for a moment
        return False
    return True


async def make_namespace(client: Client, name: str) -> None:
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
    await client.apply(namespace, manager=managers.INSTALL.name)


async def offer_operator(client: Client, namespace: str, *, pinned: str, offered: str, installed: str = "") -> Ref:
    """Do what a person and OLM do: subscribe to a pinned version, and offer a plan that waits for approval."""
    package = offered.partition(".")[0]
    await client.apply(_subscription(namespace, package, pinned), manager=managers.INSTALL.name)
    subscription = Ref(SUBSCRIPTION, Key(namespace, package))
    await _set_status(client, subscription, {"currentCSV": offered, "installedCSV": installed})
    plan = _plan(namespace, package, offered)
    await client.apply(plan, manager=managers.INSTALL.name)
    step = {
        "resolving": offered,
        "resource": {"group": INSTALL_PLAN.group, "kind": "ClusterServiceVersion", "name": offered},
    }
    properties = f'{{"properties":[{{"type":"olm.package","value":{{"packageName":"{package}"}}}}]}}'
    lookup = {"identifier": offered, "properties": properties}
    status = {"phase": "RequiresApproval", "plan": [step], "bundleLookups": [lookup]}
    await _set_status(client, ref_of(plan), status)
    return ref_of(plan)


async def _set_status(client: Client, ref: Ref, status: dict[str, Any]) -> None:
    await client.merge_patch(ref, {"status": status}, subresource="status")


def _subscription(namespace: str, package: str, pinned: str) -> Object:
    return {
        "apiVersion": API_VERSION,
        "kind": "Subscription",
        "metadata": {"name": package, "namespace": namespace},
        "spec": {"name": package, "channel": "stable", "startingCSV": pinned, "installPlanApproval": "Manual"},
    }


def _plan(namespace: str, package: str, offered: str) -> Object:
    return {
        "apiVersion": API_VERSION,
        "kind": "InstallPlan",
        "metadata": {"name": f"install-{package}", "namespace": namespace},
        "spec": {"approval": "Manual", "approved": False, "clusterServiceVersionNames": [offered]},
    }
