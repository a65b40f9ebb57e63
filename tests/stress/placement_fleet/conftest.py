"""Fixtures: five clusters, the rights under which the placement runs, and a way to start it."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from tests.audit import AuditLog
from tests.controllers.approver.process import ALONE, Process, a_process, home_of
from tests.controllers.placement.scene import an_installation
from tests.grants import Account
from tests.members import Member, a_fleet_of
from tests.stress.placement_fleet.clusters import FIVE, Fleet
from virt_steward.kube.client import Client
from virt_steward_demo.local.controlplane import ControlPlane

QUICK = ("--cluster-timeout=1", "--cluster-retry=0.5", "--search-memory=0.2", "--probe-interval=0.5")

Start = Callable[..., AbstractContextManager[Process]]
Written = Callable[[str], list[str]]


@pytest.fixture(scope="session")
def members(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Member, ...]]:
    with a_fleet_of(len(FIVE), tmp_path_factory.mktemp("members")) as started:
        yield started


@pytest.fixture(scope="session")
def account(control_plane: ControlPlane) -> Account:
    return asyncio.run(an_installation(control_plane))


@pytest.fixture
def start(control_plane: ControlPlane, account: Account, tmp_path: Path, audit_log: AuditLog) -> Iterator[Start]:
    """Start the placement under its own rights, which must do."""
    begin = audit_log.mark()
    kubeconfig = account.write_kubeconfig(tmp_path / "kubeconfig", control_plane)
    yield lambda *options: a_process(
        kubeconfig, home_of(account), *ALONE, *QUICK, *options, controller="placement", measured=True
    )
    assert account.denied(audit_log.since(begin)) == []


@pytest.fixture
async def fleet(
    admin: Client, control_plane: ControlPlane, account: Account, namespace: str, members: tuple[Member, ...]
) -> AsyncIterator[Fleet]:
    fleet = Fleet((admin, control_plane, namespace, home_of(account)), members)
    yield fleet
    await fleet.clear()


@pytest.fixture
def written(audit_log: AuditLog, account: Account) -> Written:
    """What the placement has written of a machine since the test began: its subresources, in order."""
    begin = audit_log.mark()

    def writes(machine: str) -> list[str]:
        mine = [one for one in audit_log.since(begin) if (one.user, one.resource) == (account.user, "machines")]
        return [one.subresource for one in mine if one.is_write and one.name == machine]

    return writes
