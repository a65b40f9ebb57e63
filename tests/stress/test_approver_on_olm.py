"""The approver with the real Operator Lifecycle Manager: every promise, where it counts."""

import asyncio
import time
import uuid
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.clients import a_client
from tests.controllers.approver.process import ALONE, Process, a_process
from tests.eventually import eventually
from tests.grants import an_account
from tests.installplans import INSTALL_PLAN
from tests.olm.catalog import APP, DEMO, EXTRA, STEPS
from tests.olm.lifecycle_manager import LifecycleManager
from tests.olm.namespaces import OperatorNamespace
from virt_steward.apis.crds import CRDS
from virt_steward.apis.installplanapprover import INSTALL_PLAN_APPROVER
from virt_steward.controllers.approver.definition import ACCESS
from virt_steward.kube.client import Client
from virt_steward.kube.watch import projection
from virt_steward.objects.identity import Key, Ref
from virt_steward.objects.meta import Meta
from virt_steward.runtime.access import Installation
from virt_steward.runtime.informer import Informer, Source
from virt_steward_demo.simulation.install import install, make_namespace

APPROVER = Key("steward", "everywhere")
CROWD = 20


class PlanSpec(msgspec.Struct, frozen=True):
    approved: bool = False


class PlanStatus(msgspec.Struct, frozen=True):
    phase: str = ""


class SeenPlan(msgspec.Struct, frozen=True):
    metadata: Meta
    spec: PlanSpec = PlanSpec()
    status: PlanStatus = PlanStatus()


@dataclass(frozen=True, slots=True)
class Stage:
    """A cluster with OLM, and our approver at work on it under its generated rights."""

    client: Client
    process: Process
    phases_at_approval: dict[Key, str]
    """The phase in which each plan was when it was approved."""

    async def namespace(self) -> OperatorNamespace:
        return await OperatorNamespace.create(self.client, f"olm-{uuid.uuid4().hex[:8]}")

    async def pending(self, namespace: OperatorNamespace) -> dict[str, str]:
        """Reason by CSVs, of the plans of the namespace that wait."""
        approver = await self.client.get(Ref(INSTALL_PLAN_APPROVER, APPROVER))
        return {
            ",".join(sorted(one["csvs"])): one["reason"]
            for one in approver.get("status", {}).get("pending", [])
            if one["plan"].startswith(f"{namespace.name}/")
        }

    async def waits(self, namespace: OperatorNamespace, reason: str, *csvs: str) -> bool:
        async def does() -> bool:
            return (await self.pending(namespace)).get(",".join(sorted(csvs))) == reason

        return await eventually(does, within=60)

    async def policy(self, **policy: Any) -> None:
        await self.client.merge_patch(Ref(INSTALL_PLAN_APPROVER, APPROVER), {"spec": {"policy": policy}})

    async def turn(self, *, on: bool) -> None:
        await self.client.merge_patch(Ref(INSTALL_PLAN_APPROVER, APPROVER), {"spec": {"autoApprove": on}})


@pytest.fixture
async def stage(olm: LifecycleManager, tmp_path: Path) -> AsyncIterator[Stage]:
    async with a_client(olm.control_plane) as client:
        await install(client, *(crd.manifest() for crd in CRDS))
        await make_namespace(client, APPROVER.namespace)
        account = await an_account(client, ACCESS, Installation(APPROVER.namespace, prefix="steward"))
        kubeconfig = account.write_kubeconfig(tmp_path / "kubeconfig", olm.control_plane)
        await client.apply(_the_approver(), manager="tests")
        await client.merge_patch(Ref(INSTALL_PLAN_APPROVER, APPROVER), {"spec": {"policy": None}})  # of the test before
        approved: dict[Key, str] = {}
        informer = Informer(client, Source(INSTALL_PLAN, projection(SeenPlan)))
        informer.tell(lambda key, before, after: _note(approved, key, before, after))
        watching = asyncio.create_task(informer.run())
        try:
            await informer.settled()
            with a_process(kubeconfig, APPROVER.namespace, *ALONE) as process:
                yield Stage(client, process, approved)
        finally:
            watching.cancel()
            await asyncio.gather(watching, return_exceptions=True)
    olm.check()
    assert set(approved.values()) == {"RequiresApproval"} or not approved


def _note(approved: dict[Key, str], key: Key, before: SeenPlan | None, after: SeenPlan | None) -> None:
    if before and after and after.spec.approved and not before.spec.approved:
        approved[key] = after.status.phase


def _the_approver() -> dict[str, Any]:
    return {
        "apiVersion": f"{INSTALL_PLAN_APPROVER.group}/v1alpha1",
        "kind": INSTALL_PLAN_APPROVER.name,
        "metadata": {"name": APPROVER.name, "namespace": APPROVER.namespace},
    }


async def test_approver_on_olm_approves_upgrade_after_moved_pin(stage: Stage) -> None:
    namespace = await stage.namespace()
    await namespace.subscribe(DEMO, pin="1.0.0")
    await namespace.wait_until_installed(DEMO.csv("1.0.0"))
    upgrade = await namespace.wait_for_plan(DEMO.csv("1.1.0"))
    assert await stage.waits(namespace, "NotPinned", DEMO.csv("1.1.0"))
    assert (await stage.client.get(_ref(upgrade)))["spec"]["approved"] is False

    moved = time.monotonic()
    await namespace.move_pin(DEMO, "1.1.0")
    key = Key(namespace.name, upgrade["metadata"]["name"])
    assert await eventually(lambda: key in stage.phases_at_approval, within=5)
    seconds = time.monotonic() - moved
    print(f"\ntime from a moved pin to the approval: {seconds * 1000:.0f} ms")
    assert seconds <= 1
    await namespace.wait_until_installed(DEMO.csv("1.1.0"))


async def test_approver_on_olm_refuses_unpinned_upgrade_in_same_plan(stage: Stage) -> None:
    namespace = await stage.namespace()
    await namespace.subscribe(DEMO, pin="1.0.0")
    await namespace.wait_until_installed(DEMO.csv("1.0.0"))
    await namespace.wait_for_plan(DEMO.csv("1.1.0"))
    await namespace.subscribe(EXTRA, pin="2.0.0")
    together = (DEMO.csv("1.1.0"), EXTRA.csv("2.0.0"))
    combined = await namespace.wait_for_plan(*together)
    assert await stage.waits(namespace, "UnpinnedUpgradeRidesAlong", *together)
    assert (await stage.client.get(_ref(combined)))["spec"]["approved"] is False
    assert await namespace.phase(DEMO.csv("1.1.0")) == ""


async def test_approver_on_olm_installs_new_dependency(stage: Stage) -> None:
    namespace = await stage.namespace()
    await namespace.subscribe(APP, pin="3.0.0")
    await namespace.wait_until_installed(APP.csv("3.0.0"), DEMO.csv("1.1.0"))


async def test_approver_on_olm_skips_superseded_plan_after_reverted_pin(stage: Stage) -> None:
    namespace = await stage.namespace()
    await stage.turn(on=False)
    await namespace.subscribe(DEMO, pin="1.0.0")
    first = await namespace.wait_for_plan(DEMO.csv("1.0.0"))
    await namespace.subscribe(EXTRA, pin="2.0.0")
    await namespace.approve(await namespace.wait_for_plan(DEMO.csv("1.0.0"), EXTRA.csv("2.0.0")))
    await namespace.wait_until_installed(DEMO.csv("1.0.0"), EXTRA.csv("2.0.0"))
    await namespace.approve(await namespace.wait_for_plan(DEMO.csv("1.1.0"), EXTRA.csv("2.1.0")))
    await namespace.wait_until_installed(DEMO.csv("1.1.0"), EXTRA.csv("2.1.0"))
    await namespace.move_pin(DEMO, "1.1.0")
    await stage.turn(on=True)
    await namespace.move_pin(DEMO, "1.0.0")
    await namespace.subscribe(APP, pin="3.0.0")  # seen after the move, and approved: by then, the move has been judged
    await namespace.wait_until_installed(APP.csv("3.0.0"))

    assert await stage.waits(namespace, "Superseded", DEMO.csv("1.0.0"))
    assert (await stage.client.get(_ref(first)))["spec"]["approved"] is False


async def test_approver_on_olm_follows_range_without_moved_pin(stage: Stage) -> None:
    await stage.policy(withinRange=True, versions=[{"operator": STEPS.package, "range": "~1.0"}])
    namespace = await stage.namespace()
    await namespace.subscribe(STEPS, pin="1.0.0")
    await namespace.wait_until_installed(STEPS.csv("1.0.2"))
    assert await stage.waits(namespace, "VersionOutOfRange", STEPS.csv("1.1.0"))


async def test_approver_on_olm_goes_through_versions_to_pin(stage: Stage) -> None:
    namespace = await stage.namespace()
    await namespace.subscribe(STEPS, pin="1.0.0")
    await namespace.wait_until_installed(STEPS.csv("1.0.0"))
    await namespace.move_pin(STEPS, "1.1.0")
    assert await stage.waits(namespace, "IntermediateVersion", STEPS.csv("1.0.1"))
    await stage.policy(allowIntermediate=True)
    await namespace.wait_until_installed(STEPS.csv("1.1.0"))
    assert await stage.waits(namespace, "NotPinned", STEPS.csv("2.0.0"))


async def test_approver_on_olm_handles_20_namespaces_at_once(stage: Stage) -> None:
    before = await _count(stage)
    namespaces = [await stage.namespace() for _ in range(CROWD)]
    started = time.monotonic()
    await asyncio.gather(*(namespace.subscribe(DEMO, pin="1.0.0") for namespace in namespaces))
    await asyncio.gather(*(namespace.wait_until_installed(DEMO.csv("1.0.0"), within=300) for namespace in namespaces))
    print(f"\npinned operators installed in {CROWD} namespaces: {time.monotonic() - started:.0f} s")

    async def counted() -> bool:
        return await _count(stage) == before + CROWD

    assert await eventually(counted)


async def _count(stage: Stage) -> int:
    approver = await stage.client.get(Ref(INSTALL_PLAN_APPROVER, APPROVER))
    return int(approver.get("status", {}).get("approvedCount", 0))


def _ref(plan: dict[str, Any]) -> Ref:
    return Ref(INSTALL_PLAN, Key(plan["metadata"]["namespace"], plan["metadata"]["name"]))
