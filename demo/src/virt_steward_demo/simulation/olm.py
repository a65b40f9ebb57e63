"""Simulates the Operator Lifecycle Manager: creates InstallPlans and executes them once they are approved."""

from __future__ import annotations

import asyncio
import uuid
from contextlib import suppress
from typing import TYPE_CHECKING

import msgspec

from virt_steward.controllers.approver.olm import CLUSTER_SERVICE_VERSION, INSTALL_PLAN, SUBSCRIPTION
from virt_steward.kube.errors import AlreadyExists, Conflict, NotFound
from virt_steward.objects.identity import Key, Ref, ref_of
from virt_steward.runtime.informer import Informer
from virt_steward_demo.simulation.control_loop import in_order, reconcile_on_change, source_of
from virt_steward_demo.simulation.installplans import an_install_plan, object_of_step, pending_status, steps_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from virt_steward.kube.client import Client, Object
    from virt_steward_demo.simulation.control_loop import SimulatedObject
    from virt_steward_demo.simulation.packages import Offer, OlmCatalog

MANAGER = "catalog"
KEPT_PLANS = 5
WRITE_TIMEOUT = 5.0


class LifecycleManager:
    """Reconciles all namespaces on every change, one write after the other.

    `lag` is the time between two writes, as in the real OLM: the status of an InstallPlan follows the InstallPlan, and
    the status of the Subscription follows that.
    """

    def __init__(self, client: Client, catalog: OlmCatalog, lag: float) -> None:
        self._client = client
        self._catalog = catalog
        self._lag = lag
        self._subscriptions, self._plans, self._csvs = self._informers = [
            Informer(client, source_of(kind)) for kind in (SUBSCRIPTION, INSTALL_PLAN, CLUSTER_SERVICE_VERSION)
        ]
        self._changed = asyncio.Event()
        self._deleted: set[Key] = set()

    async def run(self) -> None:
        """Ends by cancellation only."""
        self._plans.tell(self._note_deletion)
        await reconcile_on_change(self._informers, self._changed, self._reconcile, "plans")

    def _note_deletion(self, key: Key, _before: SimulatedObject | None, after: SimulatedObject | None) -> None:
        if after is None:
            self._deleted.add(key)

    async def _reconcile(self, _group: asyncio.TaskGroup) -> None:
        for plan in in_order(self._plans.store):
            if plan.spec.get("approved") and plan.status.get("phase") in ("RequiresApproval", "Installing"):
                await self._execute(plan)
        for namespace in sorted({one.metadata.namespace for one in self._subscriptions.store}):
            await self._forget_deleted_plans(namespace)
            installed = frozenset(one.name for one in _of(self._csvs, namespace))
            offer = self._catalog.offer(_of(self._subscriptions, namespace), installed)
            if offer:
                await self._make_plan(namespace, offer)
            await self._remove_old_plans(namespace)

    async def _make_plan(self, namespace: str, offer: Offer) -> None:
        plans, subscriptions = _of(self._plans, namespace), _of(self._subscriptions, namespace)
        known = [plan.spec.get("generation", 0) for plan in plans]
        generation = 1 + max([*known, *(one.status.get("installPlanGeneration", 0) for one in subscriptions)])
        key = Key(namespace, f"install-{uuid.uuid4().hex[:5]}")
        created = await self._client.create(an_install_plan(key, generation, offer, subscriptions))
        await asyncio.sleep(self._lag)
        phase = "Installing" if created["spec"]["approved"] else "RequiresApproval"
        status = {"phase": phase, "plan": steps_of(offer, namespace), "bundleLookups": []}
        observed = {"resourceVersion": created["metadata"]["resourceVersion"]}
        plan = Ref(INSTALL_PLAN, key)
        try:
            await self._client.merge_patch(
                plan, {"metadata": observed, "status": status}, subresource="status", manager=MANAGER
            )
        except Conflict:  # approved before it had a status: OLM abandons it and makes another one
            await self._until(lambda: self._plans.store.get(key) is not None)
            return
        await asyncio.sleep(self._lag)
        for name, csv in offer.targets.items():
            await self._set_subscription_status(Key(namespace, name), pending_status(key, csv, generation))

    async def _execute(self, plan: SimulatedObject) -> None:
        ref = Ref(INSTALL_PLAN, plan.key)
        await self._set_status(ref, {"phase": "Installing"})
        try:
            created = [object_of_step(step, plan.key) for step in plan.status.get("plan", ())]
        except msgspec.DecodeError:  # a manifest that is not JSON
            await self._set_status(ref, {"phase": "Failed"})
            return
        for obj in created:
            await self._create(obj)
        await asyncio.sleep(self._lag)
        csvs = [obj for obj in created if obj["kind"] == CLUSTER_SERVICE_VERSION.name]
        for csv in csvs:
            await self._succeed(csv)
        await self._set_status(ref, {"phase": "Complete"})
        await self._until(lambda: self._phase(plan.key) == "Complete" and all(self._has(csv) for csv in csvs))

    async def _create(self, obj: Object) -> None:
        with suppress(AlreadyExists):
            await self._client.create(obj)
        ref = ref_of(obj)
        if ref.kind == CLUSTER_SERVICE_VERSION:
            await self._set_status(ref, {"phase": "Pending"})
            await self._mark_installed(ref.key)
        else:  # the Subscription of a dependency of this plan
            csv = obj["spec"]["startingCSV"]
            await self._set_status(ref, {"currentCSV": csv, "installedCSV": csv, "state": "AtLatestKnown"})

    async def _mark_installed(self, csv: Key) -> None:
        """A CSV counts as installed as soon as it exists, before it has succeeded."""
        for one in _of(self._subscriptions, csv.namespace):
            if one.status.get("currentCSV") == csv.name:
                done = {"installedCSV": csv.name, "state": "AtLatestKnown", "conditions": None}
                await self._set_subscription_status(one.key, done)

    async def _succeed(self, csv: Object) -> None:
        """Mark the new CSV as Succeeded, and delete the one that it replaces."""
        ref = ref_of(csv)
        await self._set_status(ref, {"phase": "Succeeded"})
        if replaces := csv["spec"].get("replaces"):
            with suppress(NotFound):
                await self._client.delete(Ref(CLUSTER_SERVICE_VERSION, Key(ref.key.namespace, replaces)))

    async def _forget_deleted_plans(self, namespace: str) -> None:
        """After somebody deleted a pending InstallPlan, OLM makes a new one."""
        for one in _of(self._subscriptions, namespace):
            plan = Key(namespace, (one.status.get("installPlanRef") or {}).get("name", ""))
            pending = one.status.get("currentCSV") != one.status.get("installedCSV")
            if pending and plan in self._deleted:
                installed = one.status.get("installedCSV")
                await self._set_subscription_status(
                    one.key, {"currentCSV": installed, "state": None, "installPlanRef": None}
                )

    async def _remove_old_plans(self, namespace: str) -> None:
        by_age = sorted(_of(self._plans, namespace), key=lambda plan: plan.spec.get("generation", 0))
        for plan in by_age[:-KEPT_PLANS]:
            with suppress(NotFound):
                await self._client.delete(Ref(INSTALL_PLAN, plan.key))

    async def _set_subscription_status(self, subscription: Key, status: Object) -> None:
        """Write the status of a Subscription and wait until the watch shows it: a stale one would be offered twice."""
        try:
            await self._set_status(Ref(SUBSCRIPTION, subscription), status)
        except NotFound:
            return
        await self._until(lambda: self._shows(subscription, status))

    def _shows(self, subscription: Key, status: Object) -> bool:
        one = self._subscriptions.store.get(subscription)
        return one is None or all(one.status.get(name) == value for name, value in status.items())

    def _phase(self, plan: Key) -> str:
        found = self._plans.store.get(plan)
        return found.status.get("phase", "") if found else "Complete"

    def _has(self, csv: Object) -> bool:
        return self._csvs.store.get(ref_of(csv).key) is not None

    async def _until(self, holds: Callable[[], bool]) -> None:
        with suppress(TimeoutError):  # another writer has overwritten it
            async with asyncio.timeout(WRITE_TIMEOUT):
                while not holds():
                    await self._changed.wait()
                    self._changed.clear()
        self._changed.set()

    async def _set_status(self, ref: Ref, status: Object) -> None:
        await self._client.merge_patch(ref, {"status": status}, subresource="status", manager=MANAGER)


def _of(informer: Informer[SimulatedObject], namespace: str) -> list[SimulatedObject]:
    return [one for one in in_order(informer.store) if one.metadata.namespace == namespace]
