"""A fleet for tests: one real API server behind any number of KubevirtConfigs and proxies."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any

from tests.kube.kubeconfigs import b64
from tests.widgets import a_version
from virt_steward.apis.kubevirtconfig import KubevirtConfigSpec
from virt_steward.controllers.placement.fleet import Fleet, connections_to_members
from virt_steward.controllers.placement.options import FleetTimeouts
from virt_steward.controllers.placement.search import VIRTUAL_MACHINE
from virt_steward.controllers.placement.secrets import Secrets
from virt_steward.kube.client import Client, Reader
from virt_steward.objects.identity import Key, Ref
from virt_steward.runtime.access import SECRET
from virt_steward.runtime.clock import Clock, SystemClock
from virt_steward_demo.local.controlplane import ControlPlane

PATIENCE = 30
AGENT = "fleet"
"""The user agent of requests to member clusters."""


def a_machine_definition() -> dict[str, Any]:
    """A CRD in place of the one of KubeVirt."""
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{VIRTUAL_MACHINE.plural}.{VIRTUAL_MACHINE.group}"},
        "spec": {
            "group": VIRTUAL_MACHINE.group,
            "names": {"kind": VIRTUAL_MACHINE.name, "plural": VIRTUAL_MACHINE.plural},
            "scope": "Namespaced",
            "versions": [a_version("v1", stored=True)],
        },
    }


def a_vm(namespace: str, name: str) -> dict[str, Any]:
    return {
        "apiVersion": f"{VIRTUAL_MACHINE.group}/v1",
        "kind": VIRTUAL_MACHINE.name,
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"template": {}},  # required by the CRD of the simulated platform
    }


def the_vm(namespace: str, name: str) -> Ref:
    return Ref(VIRTUAL_MACHINE, Key(namespace, name))


def a_secret(namespace: str, name: str, kubeconfig: str | None, *, key: str = "kubeconfig") -> dict[str, Any]:
    data = {} if kubeconfig is None else {key: b64(kubeconfig)}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name, "namespace": namespace}, "data": data}


def the_secret(namespace: str, name: str) -> Ref:
    return Ref(SECRET, Key(namespace, name))


def a_spec(namespace: str, secret: str) -> KubevirtConfigSpec:
    return KubevirtConfigSpec(kubeconfig_secret_ref=secret, secret_namespace=namespace)


class Members:
    """A fleet, and the Secrets of its KubevirtConfigs, with the same names."""

    def __init__(self, fleet: Fleet, admin: Client, namespace: str, control_plane: ControlPlane) -> None:
        self.fleet = fleet
        self.namespace = namespace
        self.observed: list[tuple[str, bool]] = []
        """The configs that were queried, and whether they answered."""
        self._admin = admin
        self._control_plane = control_plane

    def kubeconfig(self, server: str = "", token: str = "") -> str:
        """A kubeconfig of the control plane, with another server or another token."""
        text = self._control_plane.kubeconfig.read_text()
        text = text.replace(self._control_plane.token, token or self._control_plane.token)
        return text.replace(self._control_plane.server, server or self._control_plane.server)

    async def join(self, *configs: str, kubeconfig: str | None = "", server: str = "") -> None:
        """Create Secrets and configs, and wait until the fleet knows them. None means a Secret without the key."""
        text = self.kubeconfig(server) if kubeconfig == "" else kubeconfig
        for config in configs:
            await self._admin.create(a_secret(self.namespace, config, text))
            self.fleet.follow(config, a_spec(self.namespace, config))
        await asyncio.wait_for(self.fleet.settled(), PATIENCE)

    async def rotate(self, config: str, kubeconfig: str) -> None:
        patch = {"data": {"kubeconfig": b64(kubeconfig)}}
        await self._admin.merge_patch(the_secret(self.namespace, config), patch)

    def observe(self, config: str, seconds: float, *, answered: bool) -> None:
        assert seconds >= 0
        if config != "hostile":  # that one is asked beside every test
            self.observed.append((config, answered))


@asynccontextmanager
async def a_fleet(
    control_plane: ControlPlane,
    admin: Client,
    namespace: str,
    *,
    clock: Clock | None = None,
    limits: FleetTimeouts | None = None,
) -> AsyncIterator[Members]:
    def observe(config: str, seconds: float, *, answered: bool) -> None:
        members.observe(config, seconds, answered=answered)

    fleet = Fleet(
        Secrets(Reader(admin.connection, admin.discovery), changed=lambda _: None),
        limits=limits or FleetTimeouts(),
        clock=clock or SystemClock(),
        connect=connections_to_members(AGENT),
        observe=observe,
    )
    members = Members(fleet, admin, namespace, control_plane)
    async with at_work(fleet):
        yield members


@asynccontextmanager
async def at_work(runs: Fleet | Secrets) -> AsyncIterator[None]:
    task = asyncio.create_task(runs.run())
    try:
        yield
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
