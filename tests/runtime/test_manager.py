"""Controllers in this process: what they wait for and what they report."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import aiohttp
import pytest
from aiohttp import web

from tests.audit import AuditLog
from tests.eventually import eventually
from tests.gateway import Gateway, a_status, forwarded
from tests.grants import Account, an_account
from tests.ports import a_free_port
from tests.runtime.managers import (
    WATCHER,
    Watcher,
    a_source,
    a_watcher,
    an_election,
    holder,
    nothing,
    running,
    the_lease,
)
from tests.stamper import CONFIG_MAP, COUNT, a_paper, a_stamper
from tests.widgets import a_new_kind
from virt_steward import app
from virt_steward.kube.client import Client
from virt_steward.kube.errors import ServerUnreachable
from virt_steward.objects.identity import Key, Ref
from virt_steward.runtime.access import SECRET, Installation
from virt_steward.runtime.addresses import Address
from virt_steward.runtime.controller import ControllerDefinition, Toolbox
from virt_steward.runtime.informer import InformerState
from virt_steward.runtime.leader import LeaseTimes
from virt_steward.runtime.outcomes import Done, Outcome
from virt_steward.runtime.probes import Addresses
from virt_steward.settings import Settings
from virt_steward_demo.local.controlplane import ControlPlane


def the_settings(kubeconfig: Path, namespace: str) -> Settings:
    metrics, health = (Address("--test", "127.0.0.1", a_free_port()) for _ in range(2))
    return Settings(
        kubeconfig=str(kubeconfig),
        context=None,
        namespace=namespace,
        leader_elect=True,
        lease=LeaseTimes(duration=5, retry=0.5),
        grace=5.0,
        addresses=Addresses(metrics, None, health),
    )


@asynccontextmanager
async def the_process(settings: Settings, definition: ControllerDefinition) -> AsyncIterator[None]:
    """All that a process does, but within this one."""
    stop = asyncio.Event()
    task = asyncio.create_task(app.run(settings, (definition,), stop))
    try:
        yield
    finally:
        stop.set()
        await asyncio.wait_for(task, timeout=30)


async def fetch(address: Address | None, path: str) -> tuple[int, str]:
    """Status and text; the status is 0 while nobody listens."""
    with suppress(aiohttp.ClientConnectorError):
        async with aiohttp.ClientSession() as session, session.get(f"http://{address}{path}") as answer:
            return answer.status, await answer.text()
    return 0, ""


@pytest.fixture
async def account(admin: Client, namespace: str) -> Account:
    installation = Installation(namespace, target_namespaces=(namespace,))
    return await an_account(admin, a_stamper(namespace).access, installation)


@pytest.fixture
def settings(control_plane: ControlPlane, account: Account, namespace: str, tmp_path: Path) -> Settings:
    return the_settings(account.write_kubeconfig(tmp_path / "kubeconfig", control_plane), namespace)


async def test_controller_runs_with_declared_access(
    admin: Client, namespace: str, account: Account, settings: Settings, audit_log: AuditLog
) -> None:
    begin = audit_log.mark()
    await admin.create(a_paper(namespace, "early"))
    async with the_process(settings, a_stamper(namespace)):
        assert await eventually(lambda: stamps(admin, namespace, "early", "1"))
        await admin.create(a_paper(namespace, "late"))
        assert await eventually(lambda: stamps(admin, namespace, "late", "1"))
        await admin.merge_patch(Ref(CONFIG_MAP, Key(namespace, "late")), {"data": {"content": "changed"}})
        assert await eventually(lambda: stamps(admin, namespace, "late", "2"))
    assert await holder(admin, the_lease(namespace, account.access)) == ""
    requests = audit_log.since(begin)
    assert account.denied(requests) == []
    assert account.unused(requests) == []


async def stamps(admin: Client, namespace: str, name: str, count: str) -> bool:
    paper = await admin.get(Ref(CONFIG_MAP, Key(namespace, name)))
    return bool(paper["metadata"].get("annotations", {}).get(COUNT) == count)


async def test_manager_exports_metrics(admin: Client, namespace: str, settings: Settings) -> None:
    await admin.create(a_paper(namespace, "one"))
    async with the_process(settings, a_stamper(namespace)):
        assert await eventually(lambda: stamps(admin, namespace, "one", "1"))
        _, text = await fetch(settings.addresses.metrics, "/metrics")
    series = {line.rpartition(" ")[0]: float(line.rpartition(" ")[2]) for line in text.splitlines() if line[0] != "#"}
    assert series['leader_election_master_status{name="stamper"}'] == 1
    assert series['virt_steward_events_dropped{controller="stamper"}'] == 0
    assert series['controller_runtime_reconcile_total{controller="stamper",result="success"}'] >= 1
    assert series['workqueue_adds_total{name="stamper"}'] >= 1
    assert series['workqueue_depth{name="stamper"}'] == 0
    assert series['rest_client_requests_total{code="200",verb="apply"}'] >= 1


async def test_manager_is_ready_after_sync(
    control_plane: ControlPlane, namespace: str, account: Account, gateway: Gateway, tmp_path: Path
) -> None:
    async def unavailable(request: web.BaseRequest) -> web.StreamResponse | None:
        return a_status(503, "ServiceUnavailable", "not yet") if "configmaps" in request.path else None

    gateway.intercept = unavailable
    kubeconfig = account.write_kubeconfig(tmp_path / "kubeconfig", control_plane, gateway.server)
    settings = the_settings(kubeconfig, namespace)
    async with the_process(settings, a_stamper(namespace)):
        health = settings.addresses.health

        async def is_ready() -> bool:
            return (await fetch(health, "/readyz"))[0] == 200

        async def says_why() -> bool:
            status, text = await fetch(health, "/readyz")
            return status == 503 and "ConfigMap watch ConfigMap" in text and "not yet" in text

        assert await eventually(says_why)
        checks = "[+] controllers\n[+] console\n[+] notifications\nok\n"
        assert await fetch(health, "/healthz?verbose") == (200, checks), "an unreachable API server needs no restart"
        gateway.intercept = forwarded
        assert await eventually(is_ready)


async def test_run_reports_unreachable_server_at_start(
    control_plane: ControlPlane, account: Account, namespace: str, tmp_path: Path
) -> None:
    nowhere = f"https://127.0.0.1:{a_free_port()}"
    kubeconfig = account.write_kubeconfig(tmp_path / "kubeconfig", control_plane, nowhere)
    with pytest.raises(ServerUnreachable, match=nowhere):
        await app.run(the_settings(kubeconfig, namespace), (a_stamper(namespace),), asyncio.Event())


async def test_manager_is_ready_without_unserved_kind(control_plane: ControlPlane, namespace: str) -> None:
    definition = a_watcher(namespace, nothing, kind=a_new_kind())
    async with running(control_plane, definition, election=an_election(namespace)) as process:
        assert process.manager.not_ready() is not None
        assert await eventually(lambda: process.manager.not_ready() is None)


async def test_manager_reconciles_after_caches_are_complete(
    control_plane: ControlPlane, admin: Client, namespace: str, gateway: Gateway
) -> None:
    secrets, papers = a_source(SECRET, namespace), a_source(CONFIG_MAP, namespace)
    known: list[int] = []

    def build(tools: Toolbox) -> Watcher:
        store = tools.store(secrets)

        async def count(_tools: Toolbox, _key: Key) -> Outcome:
            known.append(len(store))
            return Done()

        return Watcher(tools, papers, count)

    refused = 0

    async def unavailable(request: web.BaseRequest) -> web.StreamResponse | None:
        nonlocal refused
        if "secrets" not in request.path or refused == 2:
            return None
        refused += 1
        return a_status(503, "ServiceUnavailable")

    gateway.intercept = unavailable
    metadata = {"name": "one", "namespace": namespace, "labels": {"stamp": "wanted"}}
    await admin.create({"apiVersion": "v1", "kind": "Secret", "metadata": metadata})
    await admin.create(a_paper(namespace, "one"))
    async with running(
        control_plane, ControllerDefinition("watcher", WATCHER, build), server=gateway.server
    ) as process:
        assert await eventually(lambda: bool(known))
        assert all(informer.state is InformerState.SYNCED for informer in process.manager.informers)
    assert known == [1]


async def test_manager_standby_is_ready_and_queues_nothing(
    control_plane: ControlPlane, admin: Client, namespace: str
) -> None:
    metadata = {"name": WATCHER.lease, "namespace": namespace}
    spec = {"holderIdentity": "bob", "leaseDurationSeconds": 3600}
    await admin.create({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": metadata, "spec": spec})
    async with running(control_plane, a_watcher(namespace, nothing), election=an_election(namespace)) as process:
        await admin.create(a_paper(namespace, "one"))
        (unit,) = process.manager.units
        papers = next(one for one in process.manager.informers if one.source.kind == CONFIG_MAP)
        assert await eventually(lambda: len(papers.store) == 1 and process.manager.not_ready() is None)
        assert len(unit.queue) == 0
        assert b'leader_election_master_status{name="watcher"} 0.0' in process.metrics.exposition()


async def test_manager_is_not_ready_without_lease_access(
    control_plane: ControlPlane, namespace: str, gateway: Gateway
) -> None:
    async def forbidden(request: web.BaseRequest) -> web.StreamResponse | None:
        return a_status(403, "Forbidden", "no leases for you") if "leases" in request.path else None

    gateway.intercept = forbidden
    definition = a_watcher(namespace, nothing)
    async with running(control_plane, definition, election=an_election(namespace), server=gateway.server) as process:
        assert await eventually(lambda: "no leases for you" in (process.manager.not_ready() or ""))
