"""What the approver asks of the server: one request per approval, nothing when all is done, nothing it may not."""

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from tests.audit import Request
from tests.clients import a_client
from tests.cluster import a_control_plane
from tests.controllers.approver.builders import V1, V2, package_of
from tests.controllers.approver.conftest import Asked, Lifecycles, Start
from tests.controllers.approver.lifecycle import (
    OLM_DEFINITIONS,
    Lifecycle,
    a_lifecycle,
    an_approver,
    at_once,
    define_all,
    status_of,
)
from tests.controllers.approver.process import ALONE, FREQUENT_RENEWALS, a_process
from tests.eventually import eventually
from tests.gateway import Gateway
from tests.grants import Account, an_account
from tests.installplans import INSTALL_PLAN
from tests.leftovers import delete_all
from tests.widgets import install_crd
from virt_steward.apis.installplanapprover import INSTALL_PLAN_APPROVER_CRD
from virt_steward.controllers.approver.definition import ACCESS
from virt_steward.controllers.approver.events import EACH
from virt_steward.kube.client import Client, Object, Selection
from virt_steward.kube.errors import NotFound
from virt_steward.kube.events import EVENT
from virt_steward.objects.identity import Key, Ref, ref_of
from virt_steward.runtime.access import LEASE, Installation

NAMESPACES = 5
PLANS = 8
"""In each of them."""


async def has_counted(client: Client, namespace: str, number: int) -> bool:
    return bool((await status_of(client, namespace)).get("approvedCount", 0) == number)


async def a_namespace_with_wishes(lifecycles: Lifecycles) -> Lifecycle:
    olm = await lifecycles()
    for number in range(PLANS):
        await olm.subscribe(f"op-{number}", f"op-{number}.v1.0.0")
    return olm


def patches_of_plans(requests: list[Request]) -> list[Request]:
    return [one for one in requests if one.resource == "installplans" and one.verb == "patch"]


def is_silent(requests: list[Request]) -> bool:
    """Nothing but renewals of the lease for so many tenths of a second."""
    return [one.resource for one in requests[-15:]] == ["leases"] * 15


async def test_each_approval_takes_one_request_and_then_there_is_silence(
    cluster: Client, lifecycles: Lifecycles, start: Start, account: Account, asked: Asked
) -> None:
    places = [await a_namespace_with_wishes(lifecycles) for _ in range(NAMESPACES)]
    await an_approver(cluster, places[0].namespace, targetNamespaces=[one.namespace for one in places])
    jobs = [partial(olm.offer, f"op-{number}.v1.0.0") for olm in places for number in range(PLANS)]
    await delete_all(cluster, LEASE)  # so that it creates its own
    with start(*FREQUENT_RENEWALS, f"--policy-namespaces={places[0].namespace}") as process:
        assert await eventually(lambda: process.said("leading"))
        await at_once(jobs)
        assert await eventually(lambda: has_counted(cluster, places[0].namespace, len(jobs)), within=20)
        assert await eventually(lambda: is_silent(asked()))
    requests = asked()
    assert sorted((one.namespace, one.name, one.code) for one in patches_of_plans(requests)) == sorted(
        (olm.namespace, f"install-{number}", 200) for olm in places for number in range(1, PLANS + 1)
    )
    here = {olm.namespace for olm in places}  # plans of other tests in this cluster have events, too
    events = [one for one in requests if one.resource == "events" and one.namespace in here]
    assert sum(one.name.startswith("ann.") for one in events) >= 1  # the rest, by its number
    assert sum(one.name.startswith("install-") for one in events) == EACH.capacity < len(jobs)
    assert {one.resource for one in requests if one.verb in {"get", "list"}} <= {"", "leases"}  # "" is discovery
    seconds = (requests[-1].time - requests[0].time).total_seconds()
    assert sum(one.subresource == "status" for one in requests) <= seconds + 1
    assert account.denied(requests) == []
    assert account.unused(requests) == []


@dataclass(frozen=True, slots=True)
class Meddling:
    """What somebody does to a plan while its approval is on the way, and whether it should still be approved."""

    change: dict[str, Any]
    approved: bool


@pytest.mark.parametrize(
    "meddling",
    [
        pytest.param(Meddling({"metadata": {"labels": {"touched": "yes"}}}, approved=True), id="approved-if-it-should"),
        pytest.param(
            Meddling({"spec": {"clusterServiceVersionNames": [V2]}}, approved=False), id="not-if-it-should-not"
        ),
    ],
)
async def test_a_plan_that_changes_on_the_way_is_judged_again_and(
    olm: Lifecycle, gateway: Gateway, start: Start, asked: Asked, meddling: Meddling
) -> None:
    meddled: list[str] = []

    async def meddle(request: web.BaseRequest) -> web.StreamResponse | None:
        if request.method == "PATCH" and "/installplans/" in request.path and not meddled:
            meddled.append(request.path)
            await olm.client.merge_patch(Ref(INSTALL_PLAN, Key(olm.namespace, "install-1")), meddling.change)
        return None

    gateway.intercept = meddle
    await an_approver(olm.client, olm.namespace, targetNamespaces=[olm.namespace])
    await olm.subscribe("db", V1)
    with start(server=gateway.server):
        plan = await olm.offer(V1)

        async def is_judged_again() -> bool:
            waits = (await status_of(olm.client, olm.namespace)).get("pendingCount", 0)
            return await olm.is_approved(plan) if meddling.approved else bool(meddled) and waits == 1

        assert await eventually(is_judged_again)
    codes = [one.code for one in patches_of_plans(asked())]
    assert codes[0] == 409
    assert (codes[-1] == 200) == meddling.approved
    assert await olm.is_approved(plan) == meddling.approved


POINTS = ("approver.approve.before", "approver.approve.after#2", "approver.status.before", "approver.status.after")


@pytest.mark.parametrize("point", POINTS)
async def test_counts_are_exact_though_the_process_is_killed_at(
    cluster: Client, lifecycles: Lifecycles, start: Start, point: str
) -> None:
    olm, unpinned = await lifecycles(), await lifecycles()
    await an_approver(cluster, olm.namespace, targetNamespaces=[olm.namespace, unpinned.namespace])
    csvs = [f"op-{number}.v1.0.0" for number in range(4)]
    for csv in csvs:
        await olm.subscribe(package_of(csv), csv)
    plans = [await olm.offer(csv) for csv in csvs[:3]]
    await unpinned.subscribe("db", V1)
    refused = await unpinned.offer(V2)

    async def all_is_told() -> bool:
        status = await status_of(cluster, olm.namespace)
        return (status.get("approvedCount", 0), status.get("pendingCount", 0)) == (4, 1)

    options = (*ALONE, f"--policy-namespaces={olm.namespace}")
    with start(*options, fault=f"{point}:kill") as first:
        assert await eventually(lambda: first.was_killed)
    with start(*options):
        plans.append(await olm.offer(csvs[3]))  # so that what the first process did is counted before the end
        assert await eventually(all_is_told)
    status = await status_of(cluster, olm.namespace)
    assert sorted(one["plan"] for one in status["history"]) == sorted(map(str, plans))
    assert len(status["countedPlans"]) == 4
    assert sorted(await approved_by_events(cluster, olm.namespace)) == sorted(plan.name for plan in plans)
    assert [await olm.is_approved(plan) for plan in plans] == [True] * 4
    assert not await unpinned.is_approved(refused)


async def approved_by_events(client: Client, namespace: str) -> list[str]:
    """Plans, as often as they are told."""
    found = await client.list(EVENT, Selection(namespace))
    return [one["regarding"]["name"] for one in found if one["reason"] == "Approved"]


async def test_olm_may_come_late_go_and_come_again(tmp_path: Path) -> None:
    with a_control_plane(tmp_path / "controlplane") as control_plane:
        async with a_client(control_plane) as client:
            await client.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "steward"}})
            account = await an_account(client, ACCESS, Installation("steward"))
            kubeconfig = account.write_kubeconfig(tmp_path / "kubeconfig", control_plane)
            with a_process(kubeconfig, "steward", *FREQUENT_RENEWALS, "--policy-namespaces=default") as process:
                assert await eventually(lambda: process.said("leading"))
                await install_crd(client, INSTALL_PLAN_APPROVER_CRD.manifest())
                await an_approver(client, "default")
                assert await eventually(lambda: is_reported(client))
                for number, name in enumerate(("first", "second"), start=1):
                    await define_all(client)
                    olm = await a_lifecycle(client, name)
                    await olm.subscribe("db", V1)
                    plan = await olm.offer(V1)
                    assert await eventually(partial(olm.is_approved, plan))
                    assert await eventually(partial(has_counted, client, "default", number))
                    await remove_olm(client)
                    assert process.alive
                errors = [entry for entry in process.log() if entry["level"] == "error"]
                assert errors == []


async def is_reported(client: Client) -> bool:
    return "conditions" in await status_of(client, "default")


async def remove_olm(client: Client) -> None:
    """Return when all of it is gone: a definition that is on its way out cannot be written anew."""
    for definition in OLM_DEFINITIONS:
        await client.delete(ref_of(definition))

    async def is_gone(definition: Object) -> bool:
        try:
            await client.get(ref_of(definition))
        except NotFound:
            return True
        return False

    for definition in OLM_DEFINITIONS:
        assert await eventually(partial(is_gone, definition))
    client.discovery.forget()
