"""Deployments of controllers, ours and those of the Go operators, as far as they are read."""

from __future__ import annotations

import msgspec

from virt_steward.objects.gosyntax import FLAG
from virt_steward.objects.identity import Kind

DEPLOYMENT = Kind("apps", "Deployment", "deployments")


class PodContainer(msgspec.Struct, frozen=True):
    args: tuple[str, ...] = ()
    command: tuple[str, ...] = ()


class PodSpec(msgspec.Struct, frozen=True, rename="camel"):
    containers: tuple[PodContainer, ...] = ()
    service_account_name: str = "default"


class PodTemplate(msgspec.Struct, frozen=True):
    spec: PodSpec = PodSpec()


class DeploymentSpec(msgspec.Struct, frozen=True):
    replicas: int = 1
    template: PodTemplate = PodTemplate()


class DeploymentStatus(msgspec.Struct, frozen=True, rename="camel"):
    ready_replicas: int = 0


class DeploymentMeta(msgspec.Struct, frozen=True):
    name: str
    namespace: str


class Deployment(msgspec.Struct, frozen=True):
    metadata: DeploymentMeta
    spec: DeploymentSpec = DeploymentSpec()
    status: DeploymentStatus = DeploymentStatus()

    @property
    def account(self) -> str:
        return self.spec.template.spec.service_account_name

    @property
    def flags(self) -> dict[str, str]:
        """The flags of its containers by name; a flag without a value has an empty one."""
        return flags_in([word for one in self.spec.template.spec.containers for word in (*one.command, *one.args)])


def flags_in(words: list[str]) -> dict[str, str]:
    """Read `--name=value` and `--name value`."""
    found: dict[str, str] = {}
    for word, following in zip(words, [*words[1:], ""], strict=True):
        if flag := FLAG.fullmatch(word):
            value = flag[2] if flag[2] is not None else "" if following.startswith("-") else following
            found[flag[1]] = value
    return found
