import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import suppress

import pytest
from aiohttp import web

from tests.audit import AuditLog
from tests.clients import a_client
from tests.cluster import a_control_plane
from tests.eventually import eventually
from tests.fleet import AGENT, Members, a_fleet, a_machine_definition, a_vm, the_vm
from tests.gateway import Gateway, a_status, forwarded
from tests.hostile import HostileMember, beside
from tests.kube.kubeconfigs import SECRET
from tests.proxy import FaultProxy
from tests.runtime.clocks import ManualClock, settle
from tests.widgets import install_crd
from virt_steward.controllers.placement.observation import KubeVirtMissing, Unreachable, VmAbsent, VmFound
from virt_steward.controllers.placement.options import SearchTimeouts
from virt_steward.controllers.placement.search import Search
from virt_steward.controllers.placement.verdicts import PlacementReason
from virt_steward.kube.client import Client
from virt_steward_demo.local.controlplane import ControlPlane

NOW = 1000.0
"""When the manual clock starts."""

Lists = Callable[[], int]
Unready = Callable[[], web.Response | None]


@pytest.fixture
async def vms(admin: Client, namespace: str) -> str:
    """A namespace that may hold VMs."""
    await install_crd(admin, a_machine_definition())
    return namespace


@pytest.fixture
async def members(
    control_plane: ControlPlane, admin: Client, vms: str, clock: ManualClock, hostile_member: HostileMember
) -> AsyncIterator[Members]:
    async with a_fleet(control_plane, admin, vms, clock=clock) as started, beside(started, hostile_member):
        yield started


@pytest.fixture
def search(members: Members, clock: ManualClock) -> Search:
    return Search(members.fleet, SearchTimeouts(), clock)


@pytest.fixture
def lists(audit_log: AuditLog, vms: str) -> Lists:
    """How often VMs of the test's namespace were listed since it began."""
    begin = audit_log.mark()
    return lambda: sum(
        (one.verb, one.resource, one.namespace, one.user_agent) == ("list", "virtualmachines", vms, AGENT)
        for one in audit_log.since(begin)
    )


async def test_each_cluster_says_whether_it_has_the_vm(
    members: Members, search: Search, admin: Client, gateway: Gateway, proxy: FaultProxy
) -> None:
    await admin.create(a_vm(members.namespace, "vm-web"))

    async def without(request: web.BaseRequest) -> web.StreamResponse | None:
        vm = {"metadata": {"name": "vm-other", "namespace": members.namespace}}
        listed = {"kind": "PartialObjectMetadataList", "metadata": {}, "items": [vm]}
        return web.json_response(listed) if request.path.endswith("/virtualmachines") else None

    gateway.intercept = without
    await proxy.refuse()
    await members.join("has")
    await members.join("has-not", server=gateway.secure_server)
    await members.join("down", server=proxy.server)
    findings = await search.find(members.namespace, ("vm-web",), ["has", "has-not", "down", "unheard-of"], since=NOW)
    down, unknown = findings.pop("down"), findings.pop("unheard-of")
    assert findings == {"has": VmFound(), "has-not": VmAbsent()}
    assert isinstance(down, Unreachable)
    assert "cluster down: unreachable: " in down.message
    assert unknown == Unreachable("KubevirtConfig unheard-of not found", PlacementReason.CONFIG_NOT_FOUND)
    assert await search.find(members.namespace, ("vm-web",), [], since=NOW) == {}


async def test_a_hundred_machines_that_wait_share_one_list(
    members: Members, search: Search, admin: Client, vms: str, lists: Lists
) -> None:
    await admin.create(a_vm(vms, "vm-7"))
    await members.join("east")
    found = await asyncio.gather(*(search.find(vms, (f"vm-{number}",), ["east"], since=NOW) for number in range(100)))
    assert [number for number, findings in enumerate(found) if findings == {"east": VmFound()}] == [7]
    assert all(findings in ({"east": VmFound()}, {"east": VmAbsent()}) for findings in found)
    assert await search.find(vms, ("vm-late",), ["east"], since=NOW) == {"east": VmAbsent()}
    assert lists() == 1


async def test_only_metadata_is_asked_for(members: Members, search: Search, gateway: Gateway, vms: str) -> None:
    await members.join("east", server=gateway.secure_server)
    await search.find(vms, ("vm-web",), ["east"], since=NOW)
    [asked] = [request for request in gateway.requests if request.path.endswith("/virtualmachines")]
    assert "as=PartialObjectMetadataList" in asked.headers["Accept"]


async def test_an_absence_from_before_the_machine_waited_is_asked_for_anew(
    members: Members, search: Search, admin: Client, clock: ManualClock, lists: Lists
) -> None:
    await members.join("east")
    assert await search.find(members.namespace, ("vm-web",), ["east"], since=NOW) == {"east": VmAbsent()}
    await admin.create(a_vm(members.namespace, "vm-web"))
    await clock.advance(5)
    assert await search.find(members.namespace, ("vm-web",), ["east"], since=NOW) == {"east": VmAbsent()}
    assert lists() == 1
    assert await search.find(members.namespace, ("vm-web",), ["east"], since=NOW + 1) == {"east": VmFound()}
    assert lists() == 2


async def test_a_presence_from_before_the_machine_waited_is_asked_for_anew(
    members: Members, search: Search, admin: Client, clock: ManualClock, lists: Lists
) -> None:
    await admin.create(a_vm(members.namespace, "vm-web"))
    await members.join("east")
    assert await search.find(members.namespace, ("vm-web",), ["east"], since=NOW) == {"east": VmFound()}
    await admin.delete(the_vm(members.namespace, "vm-web"))
    await clock.advance(5)
    assert await search.find(members.namespace, ("vm-web",), ["east"], since=NOW) == {"east": VmFound()}
    assert lists() == 1
    assert await search.find(members.namespace, ("vm-web",), ["east"], since=NOW + 1) == {"east": VmAbsent()}
    assert lists() == 2


async def test_what_was_found_is_remembered_for_a_while(
    members: Members, search: Search, admin: Client, clock: ManualClock, lists: Lists
) -> None:
    await admin.create(a_vm(members.namespace, "vm-web"))
    await members.join("east")
    assert await search.find(members.namespace, ("vm-web",), ["east"], since=NOW) == {"east": VmFound()}
    await admin.delete(the_vm(members.namespace, "vm-web"))
    await clock.advance(14.9)
    assert await search.find(members.namespace, ("vm-web",), ["east"], since=NOW) == {"east": VmFound()}
    assert lists() == 1
    await clock.advance(0.1)
    assert await search.find(members.namespace, ("vm-web",), ["east"], since=NOW) == {"east": VmAbsent()}


async def test_machines_that_come_one_after_the_other_gather_for_the_next_list(
    members: Members, search: Search, clock: ManualClock, vms: str, lists: Lists
) -> None:
    await members.join("east")
    await search.find(vms, ("vm-0",), ["east"], since=NOW)
    waiting = []
    for number in range(1, 10):
        await clock.advance(0.1)
        waiting.append(asyncio.create_task(search.find(vms, (f"vm-{number}",), ["east"], since=clock.now())))
        await settle()
    assert lists() == 1
    await clock.advance(0.1)
    assert await asyncio.gather(*waiting) == [{"east": VmAbsent()}] * 9
    assert lists() == 2


async def test_a_machine_that_comes_while_a_list_is_under_way_waits_for_the_next_one(
    members: Members, search: Search, clock: ManualClock, proxy: FaultProxy, lists: Lists
) -> None:
    await members.join("east", server=proxy.server)
    await members.fleet.probe("east")
    proxy.freeze()
    early = asyncio.create_task(search.find(members.namespace, ("vm-early",), ["east"], since=NOW))
    await settle()
    await clock.advance(0.5)
    late = asyncio.create_task(search.find(members.namespace, ("vm-late",), ["east"], since=clock.now()))
    await settle()
    proxy.thaw()
    assert await early == {"east": VmAbsent()}
    assert lists() == 1
    assert not late.done()
    await clock.advance(0.5)
    assert await late == {"east": VmAbsent()}
    assert lists() == 2


async def test_one_who_gives_up_does_not_take_the_list_from_the_others(
    members: Members, search: Search, proxy: FaultProxy, vms: str, lists: Lists
) -> None:
    await members.join("east", server=proxy.server)
    proxy.freeze()
    asking = [asyncio.create_task(search.find(vms, (f"vm-{number}",), ["east"], since=NOW)) for number in range(3)]
    await settle()
    for impatient in asking[:2]:  # the one who began, and one who joined
        impatient.cancel()
        with suppress(asyncio.CancelledError):
            await impatient
    proxy.thaw()
    assert await asking[2] == {"east": VmAbsent()}
    assert lists() == 1


async def test_a_changed_secret_makes_what_was_remembered_void(
    members: Members, search: Search, admin: Client, vms: str, gateway: Gateway
) -> None:
    await admin.create(a_vm(vms, "vm-web"))
    await members.join("east", server=gateway.secure_server)
    assert await search.find(vms, ("vm-web",), ["east"], since=NOW) == {"east": VmFound()}
    edition = members.fleet.edition("east")
    await members.rotate("east", members.kubeconfig(token=SECRET))
    assert await eventually(lambda: members.fleet.edition("east") != edition)
    assert isinstance((await search.find(vms, ("vm-web",), ["east"], since=NOW))["east"], Unreachable)


async def test_an_answer_of_the_cluster_that_a_name_stood_for_before_does_not_count(
    members: Members, search: Search, admin: Client, vms: str, gateway: Gateway
) -> None:
    await admin.create(a_vm(vms, "vm-web"))
    asked, answered = asyncio.Event(), asyncio.Event()

    async def empty_after_a_while(request: web.BaseRequest) -> web.StreamResponse | None:
        if not request.path.endswith("/virtualmachines"):
            return None
        asked.set()
        await answered.wait()
        return web.json_response({"metadata": {}, "items": []})

    gateway.intercept = empty_after_a_while
    await members.join("east", server=gateway.secure_server)
    finding = asyncio.create_task(search.find(vms, ("vm-web",), ["east"], since=NOW))
    await asyncio.wait_for(asked.wait(), 30)
    edition = members.fleet.edition("east")
    await members.rotate("east", members.kubeconfig())
    assert await eventually(lambda: members.fleet.edition("east") != edition)
    answered.set()
    assert await finding == {"east": VmFound()}


async def test_a_cluster_without_kubevirt_says_so_until_it_has_it(
    members: Members, search: Search, clock: ManualClock, tmp_path_factory: pytest.TempPathFactory
) -> None:
    with a_control_plane(tmp_path_factory.mktemp("bare")) as bare:
        await members.join("bare", kubeconfig=bare.kubeconfig.read_text())
        assert await search.find("default", ("vm-web",), ["bare"], since=NOW) == {"bare": KubeVirtMissing()}
        async with a_client(bare) as admin:
            await install_crd(admin, a_machine_definition())
            await admin.create(a_vm("default", "vm-web"))
        await clock.advance(1)
        assert await search.find("default", ("vm-web",), ["bare"], since=clock.now()) == {"bare": VmFound()}


@pytest.mark.parametrize(
    "unready",
    [
        pytest.param(lambda: None, id="serves what it does not list yet"),
        pytest.param(lambda: a_status(503, "ServiceUnavailable"), id="does not know yet what it serves"),
    ],
)
async def test_a_server_that_starts_is_silent_while_it(
    unready: Unready, members: Members, search: Search, gateway: Gateway, clock: ManualClock
) -> None:
    async def starting(request: web.BaseRequest) -> web.StreamResponse | None:
        if request.path == "/apis":
            return web.json_response({"kind": "APIGroupDiscoveryList", "items": []})
        return unready() if request.path.endswith("/virtualmachines") else None

    gateway.intercept = starting
    await members.join("east", server=gateway.secure_server)
    assert await search.find(members.namespace, ("vm-web",), ["east"], since=NOW) == {
        "east": Unreachable("cluster east: unreachable: its API server fails; see the logs of that server")
    }
    gateway.intercept = forwarded
    await clock.advance(1)
    assert await search.find(members.namespace, ("vm-web",), ["east"], since=NOW) == {"east": VmAbsent()}


async def test_a_cluster_that_is_slower_than_the_deadline_counts_as_silent(
    members: Members, proxy: FaultProxy, clock: ManualClock, vms: str
) -> None:
    await members.join("slow", server=proxy.server)
    await members.join("quick")
    proxy.freeze()
    search = Search(members.fleet, SearchTimeouts(deadline=1), clock)
    assert await search.find(vms, ("vm-web",), ["slow", "quick"], since=NOW) == {
        "slow": Unreachable("cluster slow: unreachable: timed out after 1 s"),
        "quick": VmAbsent(),
    }


async def test_places_where_nobody_looks_any_more_are_forgotten(
    members: Members, search: Search, clock: ManualClock
) -> None:
    await members.join("east")
    for number in range(5):
        await search.find(f"namespace-{number}", ("vm-web",), ["east"], since=clock.now())
        await clock.advance(15)
    assert len(search._places) == 1
