"""A stand-in for OLM: its kinds under small definitions of our own, and its writes in OLM's order."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import count
from typing import Any

from tests.controllers.approver.builders import package_of
from tests.installplans import GROUP, INSTALL_PLAN
from tests.widgets import install_crd
from virt_steward.apis.installplanapprover import INSTALL_PLAN_APPROVER, INSTALL_PLAN_APPROVER_CRD
from virt_steward.controllers.approver.olm import SUBSCRIPTION
from virt_steward.kube.client import Client, Object
from virt_steward.objects.identity import Key, Ref
from virt_steward_demo.simulation.installplans import csv_step
from virt_steward_demo.simulation.kinds import OLM_KINDS, definition

API = f"{GROUP}/v1alpha1"
AT_ONCE = 8


OLM_DEFINITIONS = tuple(map(definition, OLM_KINDS))


async def define_all(client: Client) -> None:
    for one in (*OLM_DEFINITIONS, INSTALL_PLAN_APPROVER_CRD.manifest()):
        await install_crd(client, one)


async def at_once(jobs: Iterable[Callable[[], Awaitable[object]]]) -> None:
    """Several at a time, as the connection allows."""
    gate = asyncio.Semaphore(AT_ONCE)

    async def run(job: Callable[[], Awaitable[object]]) -> None:
        async with gate:
            await job()

    async with asyncio.TaskGroup() as group:
        for job in jobs:
            group.create_task(run(job))


def a_step(csv: str) -> Object:
    return csv_step(csv, package_of(csv), "1.0.0")


def ballast(size: int) -> Object:
    """The rest of a plan: a definition of so many bytes."""
    group = "apiextensions.k8s.io"
    return {"resource": {"group": group, "kind": "CustomResourceDefinition", "name": "big", "manifest": "x" * size}}


@dataclass(frozen=True, slots=True)
class Lifecycle:
    """What OLM does in one namespace."""

    client: Client
    namespace: str
    numbers: Iterator[int]
    """Generations of plans, also in their names."""

    async def subscribe(self, package: str, pin: str = "", **spec: Any) -> Object:
        """A person's wish."""
        wish = {"name": package, "installPlanApproval": "Manual", **({"startingCSV": pin} if pin else {}), **spec}
        metadata = {"name": package, "namespace": self.namespace}
        return await self.client.create({"apiVersion": API, "kind": "Subscription", "metadata": metadata, "spec": wish})

    async def pin(self, package: str, csv: str) -> None:
        await self.client.merge_patch(self._subscription(package), {"spec": {"startingCSV": csv}})

    async def plan(self, *csvs: str) -> Key:
        """Write a plan without status, as it is at first."""
        generation = next(self.numbers)
        metadata = {"name": f"install-{generation}", "namespace": self.namespace}
        spec = {"approval": "Manual", "approved": False, "clusterServiceVersionNames": csvs, "generation": generation}
        await self.client.create({"apiVersion": API, "kind": "InstallPlan", "metadata": metadata, "spec": spec})
        return Key(self.namespace, metadata["name"])

    async def set_phase(self, plan: Key, phase: str, *csvs: str, size: int = 0) -> Object:
        steps = [*(a_step(csv) for csv in csvs), *([ballast(size)] if size else [])]
        status = {"status": {"phase": phase, **({"plan": steps} if steps else {})}}
        return await self.client.merge_patch(Ref(INSTALL_PLAN, plan), status, subresource="status")

    async def catch_up(self, plan: Key, *csvs: str) -> None:
        """Write into the Subscriptions what the plan offers them."""
        generation = int(plan.name.removeprefix("install-"))
        for csv in csvs:
            status = {"status": {"currentCSV": csv, "installPlanGeneration": generation}}
            await self.client.merge_patch(self._subscription(package_of(csv)), status, subresource="status")

    async def offer(self, *csvs: str, size: int = 0) -> Key:
        """All that OLM writes until a plan waits for approval."""
        plan = await self.plan(*csvs)
        await self.set_phase(plan, "RequiresApproval", *csvs, size=size)
        await self.catch_up(plan, *csvs)
        return plan

    async def offer_alone(self, *csvs: str) -> Key:
        """A plan that waits for approval, without any Subscription."""
        plan = await self.plan(*csvs)
        await self.set_phase(plan, "RequiresApproval", *csvs)
        return plan

    async def is_approved(self, plan: Key) -> bool:
        return bool((await self.client.get(Ref(INSTALL_PLAN, plan)))["spec"]["approved"])

    def _subscription(self, package: str) -> Ref:
        return Ref(SUBSCRIPTION, Key(self.namespace, package))


async def a_lifecycle(client: Client, namespace: str) -> Lifecycle:
    """In a new namespace of that name."""
    await client.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}})
    return Lifecycle(client, namespace, count(1))


async def an_approver(client: Client, namespace: str, name: str = "ann", **spec: Any) -> Object:
    return await client.create(
        {
            "apiVersion": f"{INSTALL_PLAN_APPROVER.group}/v1alpha1",
            "kind": INSTALL_PLAN_APPROVER.name,
            "metadata": {"name": name, "namespace": namespace},
            "spec": spec,
        }
    )


async def status_of(client: Client, namespace: str, name: str = "ann") -> Object:
    status: Object = (await client.get(Ref(INSTALL_PLAN_APPROVER, Key(namespace, name)))).get("status", {})
    return status
