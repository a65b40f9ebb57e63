"""Member clusters of a fleet, each with its own API server, and the secrets in their kubeconfigs."""

import asyncio
import base64
import os
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

import yaml

from tests.audit import AuditLog, Mark
from tests.clients import a_client
from tests.fleet import a_machine_definition, a_vm, the_vm
from tests.grants import Account, an_account
from tests.kube.kubeconfigs import b64
from tests.widgets import install_crd
from virt_steward.controllers.placement.search import VIRTUAL_MACHINE
from virt_steward.kube.client import Client
from virt_steward.kube.errors import AlreadyExists
from virt_steward.runtime.access import Access, Grant, Installation
from virt_steward_demo.local.accounts import kubeconfig_for
from virt_steward_demo.local.binaries import find_or_build
from virt_steward_demo.local.controlplane import ControlPlane
from virt_steward_demo.local.progress import ProgressPrinter

HOME = "fleet"
LISTS_VMS = Access("reader", (Grant(VIRTUAL_MACHINE, ("list",), "to search for VMs"),))


class Member:
    """A member cluster, and a user with the right to list VMs."""

    def __init__(self, control_plane: ControlPlane, account: Account) -> None:
        self.control_plane = control_plane
        self.account = account
        self._audit_log = AuditLog(control_plane.audit_log)

    @property
    def kubeconfig(self) -> str:
        return kubeconfig_for(self.control_plane, self.account.token)

    def with_token(self, token: str) -> str:
        """The kubeconfig with another token."""
        return kubeconfig_for(self.control_plane, token)

    def with_certificate(self) -> str:
        """The kubeconfig with a client certificate of the same user."""
        config = yaml.safe_load(self.kubeconfig)
        identity = self.control_plane.authority.client(self.account.user)
        config["users"][0]["user"] = {
            "client-certificate-data": b64(identity.certificate),
            "client-key-data": b64(identity.key),
        }
        return str(yaml.safe_dump(config))

    async def run_vm(self, namespace: str, name: str) -> None:
        async with a_client(self.control_plane) as client:
            await _have_namespace(client, namespace)
            await client.create(a_vm(namespace, name))

    async def remove_vm(self, namespace: str, name: str) -> None:
        async with a_client(self.control_plane) as client:
            await client.delete(the_vm(namespace, name))

    def mark(self) -> Mark:
        return self._audit_log.mark()

    def was_searched(self, since: Mark) -> bool:
        """Whether its user has listed VMs."""
        asked = (one for one in self._audit_log.since(since) if one.user == self.account.user)
        return any(one.resource == VIRTUAL_MACHINE.plural for one in asked)


@contextmanager
def a_fleet_of(number: int, folder: Path) -> Iterator[tuple[Member, ...]]:
    """Start all members together; each has only etcd and an API server."""
    binaries = find_or_build(os.environ, ProgressPrinter())
    with ExitStack() as stack:
        started = [ControlPlane(binaries, folder / str(one)) for one in range(number)]
        for control_plane in started:
            stack.callback(control_plane.stop)
            control_plane.launch()
        for control_plane in started:
            control_plane.wait_until_ready()
        yield asyncio.run(_prepared(started))


async def _prepared(control_planes: Sequence[ControlPlane]) -> tuple[Member, ...]:
    return tuple(await asyncio.gather(*map(_member, control_planes)))


async def _member(control_plane: ControlPlane) -> Member:
    async with a_client(control_plane) as client:
        await install_crd(client, a_machine_definition())
        await _have_namespace(client, HOME)
        return Member(control_plane, await an_account(client, LISTS_VMS, Installation(HOME, prefix="member")))


async def _have_namespace(client: Client, name: str) -> None:
    try:
        await client.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    except AlreadyExists:
        return


def secrets_in(kubeconfig: str) -> set[str]:
    """The secrets of a kubeconfig in every form: tokens, keys and certificates, encoded or not, whole or by line."""
    config = yaml.safe_load(kubeconfig)
    found: set[str] = set()
    for entry in (config["users"][0]["user"], config["clusters"][0]["cluster"]):
        for name, value in entry.items():
            if name.endswith("-data"):
                pem = base64.b64decode(value).decode()
                found |= {
                    value,
                    *(line for line in pem.splitlines() if len(line) > 16 and not line.startswith("-----")),
                }
            elif name in {"token", "password"}:
                found |= {value, b64(value)}
    return found
