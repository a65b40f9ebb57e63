"""Fixtures: a cluster with OLM's kinds and ours, and the rights under which the approver runs."""

import asyncio
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from tests.audit import AuditLog, Request
from tests.controllers.approver.lifecycle import Lifecycle, a_lifecycle, define_all
from tests.controllers.approver.process import Process, a_process, an_installation, home_of
from tests.grants import Account
from tests.leftovers import delete_all
from virt_steward.apis.installplanapprover import INSTALL_PLAN_APPROVER
from virt_steward.kube.client import Client
from virt_steward_demo.local.controlplane import ControlPlane

Lifecycles = Callable[[], Awaitable[Lifecycle]]
Start = Callable[..., AbstractContextManager[Process]]
Asked = Callable[..., list[Request]]


@pytest.fixture(scope="session")
def account(control_plane: ControlPlane) -> Account:
    """The approver's, cluster-wide."""
    return asyncio.run(an_installation(control_plane))


@pytest.fixture
def home(account: Account) -> str:
    """The namespace in which the approver runs."""
    return home_of(account)


@pytest.fixture
def start(control_plane: ControlPlane, account: Account, home: str, tmp_path: Path) -> Start:
    """Start the approver with options, a fault, or by way of another `server`."""

    def started(*options: str, fault: str = "", server: str = "") -> AbstractContextManager[Process]:
        kubeconfig = account.write_kubeconfig(tmp_path / "kubeconfig", control_plane, server)
        return a_process(kubeconfig, home, *options, fault=fault)

    return started


@pytest.fixture
def asked(audit_log: AuditLog, account: Account) -> Asked:
    """What the approver has asked of the server since the test began, or since a mark."""
    begin = audit_log.mark()
    return lambda mark=begin: [one for one in audit_log.since(mark) if one.user == account.user]


@pytest.fixture
async def cluster(admin: Client, account: Account) -> AsyncIterator[Client]:
    """An admin's client; no approver of another test counts, and none outlives the test that made it."""
    assert account
    await define_all(admin)
    await delete_all(admin, INSTALL_PLAN_APPROVER)
    yield admin
    await delete_all(admin, INSTALL_PLAN_APPROVER)


@pytest.fixture
def lifecycles(cluster: Client) -> Lifecycles:
    """A new namespace with OLM at work, as often as asked."""

    async def one_more() -> Lifecycle:
        return await a_lifecycle(cluster, f"test-{uuid.uuid4().hex[:8]}")

    return one_more


@pytest.fixture
async def olm(lifecycles: Lifecycles) -> Lifecycle:
    return await lifecycles()


@pytest.fixture
def approver(start: Start) -> Iterator[Process]:
    """At work, alone."""
    with start() as started:
        yield started
