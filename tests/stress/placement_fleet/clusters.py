"""Machines on one server, and KubevirtConfigs that stand for clusters with servers of their own."""

from typing import Any

from tests.controllers.placement.scene import Scene
from tests.fleet import the_secret
from tests.members import Member
from virt_steward.kube.client import Client, Selection
from virt_steward.runtime.access import SECRET
from virt_steward_demo.local.controlplane import ControlPlane

FIVE = ("a", "b", "c", "d", "e")
"""Configs."""


class Fleet(Scene):
    """Machines here, and clusters whose configs a test makes."""

    def __init__(self, scene: tuple[Client, ControlPlane, str, str], members: tuple[Member, ...]) -> None:
        super().__init__(*scene)
        self.members = members
        self.stands_for: dict[str, Member] = {}
        self._marks = {member: member.mark() for member in members}

    async def connect(self, config: str, member: Member, **spec: Any) -> None:
        """A config for that cluster."""
        self.stands_for[config] = member
        await self.join_secret(config, member.kubeconfig)
        await self.configure(config, **spec)

    async def connect_all(self, *configs: str, **spec: Any) -> None:
        """Each stands for a cluster of its own."""
        for config, member in zip(configs, self.members, strict=False):
            await self.connect(config, member, **spec)

    async def run_vm(self, config: str, name: str) -> None:
        await self.stands_for[config].run_vm(self.namespace, name)

    def searched(self) -> set[str]:
        """Whose clusters were asked for VMs since the test began."""
        return {name for name, one in self.stands_for.items() if one.was_searched(self._marks[one])}

    async def counts(self, config: str, machines: int) -> bool:
        return bool((await self.status(config)).get("machines", 0) == machines)

    async def says(self, machine: str, reason: str, words: str) -> bool:
        """Whether the machine's condition gives that reason, in those words among others."""
        condition = await self.condition(machine)
        return condition.get("reason") == reason and words in condition["message"]

    async def has_event(self, machine: str, reason: str, note: str) -> bool:
        return (reason, note) in {(one["reason"], one["note"]) for one in await self.events(machine)}

    async def is_confirmed(self, machine: str) -> bool:
        return (await self.condition(machine)).get("status") == "True"

    async def is_somewhere(self, machine: str) -> bool:
        return bool(await self.cluster_of(machine))

    async def is_in(self, phase: str, config: str) -> bool:
        return bool((await self.status(config)).get("phase") == phase)

    async def has_note(self, machine: str, beginning: str) -> bool:
        return any(one["note"].startswith(beginning) for one in await self.events(machine))

    async def clear(self) -> None:
        """Secrets too whose configs have gone before."""
        await super().clear()
        for secret in await self.client.list(SECRET, Selection(self.secrets)):
            await self.client.delete(the_secret(self.secrets, secret["metadata"]["name"]))
