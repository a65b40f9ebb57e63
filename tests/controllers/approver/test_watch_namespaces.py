"""The approver limited to some namespaces, with a Role in each of them."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from tests.audit import AuditLog
from tests.controllers.approver.lifecycle import define_all
from tests.eventually import eventually
from tests.grants import Account, an_account
from tests.operators import a_pending_plan, a_subscription, an_approver, create, the_plan
from tests.ports import a_free_port
from virt_steward import app
from virt_steward.apis.installplanapprover import INSTALL_PLAN_APPROVER
from virt_steward.controllers.approver.definition import ACCESS, definition
from virt_steward.controllers.approver.options import ApproverOptions
from virt_steward.kube.client import Client
from virt_steward.objects.corekinds import NAMESPACE
from virt_steward.objects.identity import Key, Kind, Ref
from virt_steward.runtime.access import Installation
from virt_steward.runtime.addresses import Address
from virt_steward.runtime.leader import LeaseTimes
from virt_steward.runtime.probes import Addresses
from virt_steward.settings import Settings
from virt_steward_demo.local.controlplane import ControlPlane

ROLE_BINDING = Kind("rbac.authorization.k8s.io", "RoleBinding")


def targets_of(account: Account) -> str:
    """The name of its Role and RoleBinding in each namespace."""
    return f"{account.user.rpartition(':')[2]}-targets"


@pytest.fixture
async def two(admin: Client, namespace: str) -> tuple[str, str]:
    """Two namespaces, each with a pinned plan; an approver in the first looks after both."""
    await define_all(admin)
    other = f"{namespace}-other"
    await admin.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": other}})
    await create(admin, an_approver(namespace, targetNamespaces=[namespace, other]))
    for name in (namespace, other):
        await create(admin, a_subscription(name, pin="1.0.0", offered="1.0.0"), a_pending_plan(name))
    return namespace, other


@asynccontextmanager
async def running(kubeconfig: Path, namespaces: tuple[str, ...], metrics: Address | None = None) -> AsyncIterator[str]:
    """Gives the address of its probes."""
    port = a_free_port()
    settings = Settings(
        kubeconfig=str(kubeconfig),
        context=None,
        namespace=namespaces[0],
        leader_elect=True,
        lease=LeaseTimes(15, 2.0),
        grace=1.0,
        addresses=Addresses(metrics, None, Address("--test", "127.0.0.1", port)),
        watch_namespaces=namespaces,
    )
    options = ApproverOptions(frozenset({settings.namespace}), settings.namespace)
    stop = asyncio.Event()
    task = asyncio.create_task(app.run(settings, [definition(options)], stop))
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        stop.set()
        await asyncio.wait_for(task, 30)


async def an_account_for(admin: Client, home: str, *targets: str) -> Account:
    return await an_account(admin, ACCESS, Installation(home, prefix=home, target_namespaces=targets))


async def is_ready(probes: str) -> bool:
    async with aiohttp.ClientSession() as session, session.get(f"{probes}/readyz") as answer:
        return answer.status == 200


async def is_approved(admin: Client, namespace: str) -> bool:
    return bool((await admin.get(the_plan(namespace)))["spec"]["approved"])


async def the_condition(admin: Client, namespace: str) -> dict[str, Any]:
    approver = await admin.get(Ref(INSTALL_PLAN_APPROVER, Key(namespace, "approver")))
    conditions = approver.get("status", {}).get("conditions", [])
    return next((one for one in conditions if one["type"] == "NamespacesReadable"), {})


async def test_a_role_in_each_namespace_is_all_that_it_takes(
    admin: Client, control_plane: ControlPlane, audit_log: AuditLog, two: tuple[str, str], tmp_path: Path
) -> None:
    here, there = two
    account = await an_account_for(admin, here, here, there)
    mark = audit_log.mark()
    async with running(account.write_kubeconfig(tmp_path / "config", control_plane), two):
        assert await eventually(lambda: is_approved(admin, here))
        assert await eventually(lambda: is_approved(admin, there))
    assert account.denied(audit_log.since(mark)) == []


async def test_one_namespace_denied_the_other_goes_on_and_a_condition_says_how_to_fix_it(
    admin: Client, control_plane: ControlPlane, two: tuple[str, str], tmp_path: Path
) -> None:
    here, there = two
    account = await an_account_for(admin, here, here)

    async def said(status: str) -> bool:
        return (await the_condition(admin, here)).get("status") == status

    async with running(account.write_kubeconfig(tmp_path / "config", control_plane), two) as probes:
        assert await eventually(lambda: is_approved(admin, here))
        assert await eventually(lambda: said("False"))
        assert await is_ready(probes)
        message = (await the_condition(admin, here))["message"]
        assert f"forbidden (403) to read {there}, so nothing is approved there" in message
        assert f"virt-steward rbac --controllers approver --target-namespaces {there}" in message
        assert not await is_approved(admin, there)

        await an_account_for(admin, here, here, there)
        assert await eventually(lambda: is_approved(admin, there), within=15)
        assert await eventually(lambda: said("True"))


async def test_an_approval_is_not_counted_again_after_its_namespace_was_denied_for_a_while(
    admin: Client, control_plane: ControlPlane, two: tuple[str, str], tmp_path: Path
) -> None:
    here, there = two
    account = await an_account_for(admin, here, here, there)
    kubeconfig = account.write_kubeconfig(tmp_path / "config", control_plane)
    binding = Ref(ROLE_BINDING, Key(there, targets_of(account)))

    async def has_counted(number: int, condition: str) -> bool:
        status = (await admin.get(Ref(INSTALL_PLAN_APPROVER, Key(here, "approver")))).get("status", {})
        known = (await the_condition(admin, here)).get("status", "")
        return (status.get("approvedCount"), known) == (number, condition)

    async with running(kubeconfig, two):
        assert await eventually(lambda: has_counted(2, ""))
    await admin.delete(binding)
    await admin.merge_patch(the_plan(here), {"metadata": {"labels": {"touched": "later"}}})  # newer than the status
    async with running(kubeconfig, two):
        assert await eventually(lambda: has_counted(2, "False"))
        await an_account_for(admin, here, here, there)
        assert await eventually(lambda: has_counted(2, "True"), within=15)


async def test_approvals_in_deleted_namespace_are_no_metric_any_more(
    admin: Client, control_plane: ControlPlane, two: tuple[str, str], tmp_path: Path
) -> None:
    here, there = two
    account = await an_account_for(admin, here, here, there)
    port = a_free_port()

    async def counted() -> list[str]:
        url = f"http://127.0.0.1:{port}/metrics"
        async with aiohttp.ClientSession() as session, session.get(url) as answer:
            lines = (await answer.text()).splitlines()
        approvals = [line for line in lines if line.startswith("installplan_approver_approvals_total{")]
        return [name for name in two if any(f'namespace="{name}"' in line for line in approvals)]

    async def are_counted(*namespaces: str) -> bool:
        return await counted() == list(namespaces)

    kubeconfig = account.write_kubeconfig(tmp_path / "config", control_plane)
    async with running(kubeconfig, two, Address("--test", "127.0.0.1", port)):
        assert await eventually(lambda: is_approved(admin, there))
        assert await eventually(lambda: are_counted(here, there))
        await admin.delete(Ref(NAMESPACE, Key("", there)))
        assert await eventually(lambda: are_counted(here), within=30)


async def test_a_plan_that_is_gone_from_a_watched_namespace_is_no_longer_remembered(
    admin: Client, control_plane: ControlPlane, two: tuple[str, str], tmp_path: Path
) -> None:
    here, there = two
    account = await an_account_for(admin, here, here, there)

    async def remembers(number: int) -> bool:
        status = (await admin.get(Ref(INSTALL_PLAN_APPROVER, Key(here, "approver")))).get("status", {})
        return (status.get("approvedCount"), len(status.get("countedPlans", ()))) == (2, number)

    async with running(account.write_kubeconfig(tmp_path / "config", control_plane), two):
        assert await eventually(lambda: remembers(2))
        await admin.delete(the_plan(there))
        await create(admin, a_pending_plan(there, "2.0.0", name="install-2", generation=2))
        assert await eventually(lambda: remembers(1))


async def test_a_namespace_of_which_one_kind_is_denied_is_not_guessed_at(
    admin: Client, control_plane: ControlPlane, two: tuple[str, str], tmp_path: Path
) -> None:
    here, there = two
    account = await an_account_for(admin, here, here, there)
    role = Ref(Kind("rbac.authorization.k8s.io", "Role"), Key(there, targets_of(account)))
    rules = [
        rule | {"resources": [one for one in rule["resources"] if one != "clusterserviceversions"]}
        for rule in (await admin.get(role))["rules"]
    ]
    await admin.merge_patch(role, {"rules": [rule for rule in rules if rule["resources"]]})

    async def is_pending() -> bool:
        approver = await admin.get(Ref(INSTALL_PLAN_APPROVER, Key(here, "approver")))
        return [one["reason"] for one in approver.get("status", {}).get("pending", [])] == ["NamespaceDenied"]

    async with running(account.write_kubeconfig(tmp_path / "config", control_plane), two):
        assert await eventually(lambda: is_approved(admin, here))
        assert await eventually(is_pending)
        assert not await is_approved(admin, there)
