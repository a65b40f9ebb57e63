"""Reads and writes of a VirtPlatformConfig on behalf of a person."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from virt_steward.apis.virtplatformconfig import VIRT_PLATFORM_CONFIG
from virt_steward.controllers.advisor.observation import VirtPlatformConfig
from virt_steward.kube.errors import Conflict
from virt_steward.objects.identity import Key, Ref
from virt_steward.ssa.managers import CONSOLE

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from virt_steward.kube.client import Client

T = TypeVar("T")

ATTEMPTS = 3
"""How often a decision is tried while the controller updates the status at the same moment."""


def config_ref(profile: str) -> Ref:
    return Ref(VIRT_PLATFORM_CONFIG, Key("", profile))


async def read_config(client: Client, profile: str) -> VirtPlatformConfig:
    """Ask the API server, with the person's credentials: a cache may be behind."""
    return await client.get(config_ref(profile), VirtPlatformConfig)


async def patch_config(
    client: Client, config: VirtPlatformConfig, annotations: Mapping[str, str | None], spec: Mapping[str, Any]
) -> bool:
    """Write to exactly the version that was read. Returns whether the spec has changed; raises Conflict."""
    metadata: dict[str, Any] = {"resourceVersion": config.metadata.resource_version}
    if annotations:
        metadata["annotations"] = dict(annotations)
    patch = {"metadata": metadata, "spec": dict(spec)}
    after = await client.merge_patch(config_ref(config.metadata.name), patch, manager=CONSOLE.name)
    return bool(after["metadata"]["generation"] != config.metadata.generation)


def plan_changed(current: str) -> str:
    return f"the plan has changed since you reviewed it; review the current one: {current or 'none'}"


async def retry_on_conflict(attempt: Callable[[], Awaitable[T]]) -> T:
    """Read and decide again if the config changed in between. Raises the last Conflict."""
    for _ in range(ATTEMPTS - 1):
        try:
            return await attempt()
        except Conflict:
            continue
    return await attempt()
