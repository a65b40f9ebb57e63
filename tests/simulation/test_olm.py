"""The stand-in for OLM: plans in the order and with the habits of the real one."""

import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import pytest

from tests.audit import AuditLog
from tests.eventually import eventually
from virt_steward.controllers.approver.olm import CLUSTER_SERVICE_VERSION, INSTALL_PLAN, SUBSCRIPTION
from virt_steward.kube.client import Client, Selection
from virt_steward.kube.watch import Put, Watch, projection
from virt_steward.objects.identity import Key, Ref
from virt_steward_demo.simulation.control_loop import SimulatedObject, in_background
from virt_steward_demo.simulation.install import install, make_namespace
from virt_steward_demo.simulation.installplans import GENERATED_BY, a_subscription
from virt_steward_demo.simulation.kinds import OLM_KINDS
from virt_steward_demo.simulation.olm import LifecycleManager
from virt_steward_demo.simulation.packages import OlmCatalog, OlmPackage

CATALOG = OlmCatalog(
    [
        OlmPackage("demo", ("1.0.0", "1.1.0")),
        OlmPackage("extra", ("2.0.0", "2.1.0")),
        OlmPackage("app", ("3.0.0",), needs=("demo",)),
        OlmPackage("chain", tuple(f"{number}.0.0" for number in range(1, 8))),
    ]
)


@dataclass(frozen=True, slots=True)
class Namespace:
    client: Client
    name: str

    async def subscribe(self, package: str, **wish: Any) -> None:
        await self.client.create(a_subscription(Key(self.name, package), **wish))

    async def plans(self) -> list[dict[str, Any]]:
        found = await self.client.list(INSTALL_PLAN, Selection(self.name))
        return sorted(found, key=lambda plan: int(plan["spec"]["generation"]))

    async def subscription(self, name: str) -> dict[str, Any]:
        return await self.client.get(Ref(SUBSCRIPTION, Key(self.name, name)))

    async def status(self, name: str) -> dict[str, Any]:
        status: dict[str, Any] = (await self.subscription(name)).get("status", {})
        return status

    async def phases(self) -> dict[str, str]:
        found = await self.client.list(CLUSTER_SERVICE_VERSION, Selection(self.name))
        return {one["metadata"]["name"]: one.get("status", {}).get("phase", "") for one in found}

    async def approve(self, plan: dict[str, Any]) -> None:
        ref = Ref(INSTALL_PLAN, Key(self.name, plan["metadata"]["name"]))
        await self.client.merge_patch(ref, {"spec": {"approved": True}})

    async def waits_for(self, subscription: str, csv: str) -> bool:
        status = await self.status(subscription)
        return (status.get("currentCSV"), status.get("state")) == (csv, "UpgradePending")

    async def has(self, *csvs: str) -> bool:
        return await self.phases() == dict.fromkeys(csvs, "Succeeded")

    async def installs(self, package: str, csv: str, *, pin: str = "") -> None:
        """Subscribe and approve."""
        await self.subscribe(package, pin=pin or csv)
        assert await eventually(lambda: self.waits_for(package, csv))
        await self.approve((await self.plans())[-1])
        assert await eventually(lambda: self._runs(csv))

    async def _runs(self, csv: str) -> bool:
        return (await self.phases()).get(csv) == "Succeeded"


@asynccontextmanager
async def a_place(client: Client, lag: float = 0.01) -> AsyncIterator[Namespace]:
    await install(client, *OLM_KINDS)
    name = f"olm-{uuid.uuid4().hex[:8]}"
    await make_namespace(client, name)
    async with in_background(LifecycleManager(client, CATALOG, lag)):
        yield Namespace(client, name)


@pytest.fixture
async def place(admin: Client) -> AsyncIterator[Namespace]:
    async with a_place(admin) as place:
        yield place


def csvs_of(plan: dict[str, Any]) -> set[str]:
    return set(plan["spec"]["clusterServiceVersionNames"])


async def test_olm_installs_pinned_version_after_approval(place: Namespace) -> None:
    await place.subscribe("demo", pin="demo.v1.0.0")
    assert await eventually(lambda: place.waits_for("demo", "demo.v1.0.0"))
    (plan,) = await place.plans()
    assert plan["status"]["phase"] == "RequiresApproval"
    assert plan["spec"]["approved"] is False
    assert await place.phases() == {}
    await place.approve(plan)
    assert await eventually(lambda: place.has("demo.v1.0.0"))
    assert await eventually(lambda: _has_phase(place, plan, "Complete"))


async def test_olm_writes_plan_then_status_then_subscription(admin: Client, audit_log: AuditLog) -> None:
    lag = 0.3
    mark = audit_log.mark()
    async with a_place(admin, lag) as place:
        await place.subscribe("demo", pin="demo.v1.0.0")
        assert await eventually(lambda: place.waits_for("demo", "demo.v1.0.0"))
    written = [one for one in audit_log.since(mark) if one.namespace == place.name and one.is_write]
    written = [one for one in written if one.resource == "installplans" or one.subresource == "status"]
    assert [(one.verb, one.resource, one.subresource) for one in written] == [
        ("create", "installplans", ""),
        ("patch", "installplans", "status"),
        ("patch", "subscriptions", "status"),
    ]
    assert all((later.received - earlier.received).total_seconds() >= lag for earlier, later in pairwise(written))


async def test_olm_offers_upgrade_after_installation(place: Namespace) -> None:
    await place.installs("demo", "demo.v1.0.0")
    assert await eventually(lambda: place.waits_for("demo", "demo.v1.1.0"))
    status = await place.status("demo")
    old, new = await place.plans()
    assert status["installedCSV"] == "demo.v1.0.0"
    assert status["installPlanRef"]["name"] == new["metadata"]["name"]
    assert (old["spec"]["generation"], new["spec"]["generation"]) == (1, 2)
    await place.approve(new)
    assert await eventually(lambda: place.has("demo.v1.1.0"))


async def test_olm_ignores_moved_pin(place: Namespace) -> None:
    await place.installs("demo", "demo.v1.0.0")
    assert await eventually(lambda: place.waits_for("demo", "demo.v1.1.0"))
    before = await place.status("demo"), [plan["metadata"]["name"] for plan in await place.plans()]
    ref = Ref(SUBSCRIPTION, Key(place.name, "demo"))
    await place.client.merge_patch(ref, {"spec": {"startingCSV": "demo.v1.1.0"}})
    await place.subscribe("extra")  # whose plan shows that the pin was seen before
    assert await eventually(lambda: place.waits_for("extra", "extra.v2.1.0"))
    assert (await place.status("demo"), [plan["metadata"]["name"] for plan in (await place.plans())[:2]]) == before


async def test_olm_puts_two_subscriptions_into_one_plan(place: Namespace) -> None:
    """The first keeps its reference to the older plan, which stays as it is."""
    await place.installs("demo", "demo.v1.0.0")
    assert await eventually(lambda: place.waits_for("demo", "demo.v1.1.0"))
    await place.subscribe("extra", pin="extra.v2.0.0")
    assert await eventually(lambda: place.waits_for("extra", "extra.v2.0.0"))
    _, older, combined = await place.plans()
    assert csvs_of(combined) == {"demo.v1.1.0", "extra.v2.0.0"}
    assert (await place.status("demo"))["installPlanRef"]["name"] == older["metadata"]["name"]
    await place.approve(combined)
    assert await eventually(lambda: place.has("demo.v1.1.0", "extra.v2.0.0"))
    assert await _has_phase(place, older, "RequiresApproval")


async def test_olm_creates_subscription_for_dependency(place: Namespace) -> None:
    await place.subscribe("app")
    assert await eventually(lambda: place.waits_for("app", "app.v3.0.0"))
    (plan,) = await place.plans()
    assert csvs_of(plan) == {"app.v3.0.0", "demo.v1.1.0"}
    await place.approve(plan)
    assert await eventually(lambda: place.has("app.v3.0.0", "demo.v1.1.0"))
    generated = await place.subscription("demo-stable-simulated-catalog-openshift-marketplace")
    assert generated["metadata"]["annotations"] == {GENERATED_BY: plan["metadata"]["name"]}
    assert generated["spec"]["installPlanApproval"] == "Automatic"


async def test_olm_installs_automatic_subscription_at_once(place: Namespace) -> None:
    await place.subscribe("demo", pin="demo.v1.0.0", approval="Automatic")
    assert await eventually(lambda: place.has("demo.v1.1.0"))


async def test_olm_keeps_latest_plans_only(place: Namespace) -> None:
    await place.subscribe("chain", pin="chain.v1.0.0", approval="Automatic")
    assert await eventually(lambda: place.has("chain.v7.0.0"), within=30)
    assert await eventually(lambda: _has_generations(place, [3, 4, 5, 6, 7]))


async def test_olm_never_executes_plan_approved_too_early(admin: Client) -> None:
    """Another one is made for the same, and the first stays without a status."""
    async with a_place(admin, lag=0.3) as place:
        resource = await admin.discovery.resource(INSTALL_PLAN)
        watch = Watch(admin, INSTALL_PLAN, projection(SimulatedObject), selection=Selection(place.name))
        await place.subscribe("demo", pin="demo.v1.0.0")
        async for event in watch.events(resource):
            if isinstance(event, Put):
                await admin.merge_patch(Ref(INSTALL_PLAN, event.object.key), {"spec": {"approved": True}})
                break
        assert await eventually(lambda: place.waits_for("demo", "demo.v1.0.0"))
        first, second = await place.plans()
        assert "status" not in first
        assert csvs_of(first) == csvs_of(second)
        assert second["status"]["phase"] == "RequiresApproval"


async def test_olm_replaces_deleted_plan_by_current_pin(place: Namespace) -> None:
    await place.subscribe("demo", pin="demo.v1.0.0")
    assert await eventually(lambda: place.waits_for("demo", "demo.v1.0.0"))
    ref = Ref(SUBSCRIPTION, Key(place.name, "demo"))
    await place.client.merge_patch(ref, {"spec": {"startingCSV": "demo.v1.1.0"}})
    (plan,) = await place.plans()
    await place.client.delete(Ref(INSTALL_PLAN, Key(place.name, plan["metadata"]["name"])))
    assert await eventually(lambda: place.waits_for("demo", "demo.v1.1.0"))
    (again,) = await place.plans()
    assert again["spec"]["generation"] == 2


async def _has_generations(place: Namespace, generations: list[int]) -> bool:
    return [plan["spec"]["generation"] for plan in await place.plans()] == generations


async def _has_phase(place: Namespace, plan: dict[str, Any], phase: str) -> bool:
    ref = Ref(INSTALL_PLAN, Key(place.name, plan["metadata"]["name"]))
    return bool((await place.client.get(ref))["status"]["phase"] == phase)
