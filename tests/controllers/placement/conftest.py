"""Fixtures: machines, clusters and the rights under which the placement runs."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path

import pytest

from tests.audit import AuditLog, Request
from tests.controllers.approver.process import ALONE, Process, a_process, home_of
from tests.controllers.placement.scene import Scene, an_installation
from tests.fleet import Members, a_fleet
from tests.grants import Account
from tests.hostile import CHANGING, HostileMember, a_hostile_member, beside
from tests.runtime.clocks import ManualClock
from virt_steward.controllers.placement.options import FleetTimeouts
from virt_steward.kube.client import Client
from virt_steward_demo.local.controlplane import ControlPlane

Start = Callable[..., AbstractContextManager[Process]]
Asked = Callable[..., list[Request]]

SOON = 2.0
"""Seconds that the fleet of a test waits for one answer."""


@pytest.fixture(scope="session")
def account(control_plane: ControlPlane) -> Account:
    """The placement's, on all machines, and on Secrets where it lives itself."""
    return asyncio.run(an_installation(control_plane))


@pytest.fixture
def start(control_plane: ControlPlane, account: Account, tmp_path: Path) -> Start:
    """Start the placement with options, a fault, or by way of another `server`; alone, unless told otherwise."""

    def started(*options: str, election: tuple[str, ...] = ALONE, **ways: str) -> AbstractContextManager[Process]:
        kubeconfig = account.write_kubeconfig(tmp_path / "kubeconfig", control_plane, ways.pop("server", ""))
        begin = partial(a_process, kubeconfig, home_of(account), controller="placement", **ways)
        return begin(*election, *options)

    return started


@pytest.fixture
def asked(audit_log: AuditLog, account: Account) -> Asked:
    """What the placement has asked of its own server since the test began, or since a mark."""
    begin = audit_log.mark()
    return lambda mark=begin: [one for one in audit_log.since(mark) if one.user == account.user]


@pytest.fixture
async def scene(admin: Client, control_plane: ControlPlane, account: Account, namespace: str) -> AsyncIterator[Scene]:
    scene = Scene(admin, control_plane, namespace, home_of(account))
    await scene.install_crds()  # other tests share this cluster
    await scene.clear()
    yield scene
    await scene.clear()


@pytest.fixture(scope="session")
def hostile_server(control_plane: ControlPlane) -> Iterator[HostileMember]:
    with a_hostile_member(control_plane) as member:
        yield member


@pytest.fixture
def hostile_member(hostile_server: HostileMember) -> HostileMember:
    """A member cluster whose API server misbehaves, differently with each request unless told how."""
    hostile_server.behaviour = CHANGING
    return hostile_server


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
async def members(
    control_plane: ControlPlane, admin: Client, namespace: str, clock: ManualClock, hostile_member: HostileMember
) -> AsyncIterator[Members]:
    """A fleet with a hostile member, which is asked all the time."""
    limits = FleetTimeouts(timeout=SOON)
    fleet = a_fleet(control_plane, admin, namespace, clock=clock, limits=limits)
    async with fleet as started, beside(started, hostile_member):
        yield started
