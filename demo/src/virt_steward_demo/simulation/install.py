"""Installs CRDs and namespaces on a local control plane."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING

from virt_steward.kube.discovery import CUSTOM_RESOURCE_DEFINITION
from virt_steward.kube.errors import AlreadyExists, NotFound, NotServed, Unavailable
from virt_steward.objects.identity import Key, Kind, Ref, key_of
from virt_steward.ssa import managers
from virt_steward_demo.local import LocalError
from virt_steward_demo.simulation.kinds import definition

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from virt_steward.kube.client import Client, Object

SECONDS_TO_SETTLE = 60.0


async def install(client: Client, *what: str | Object) -> None:
    """Apply CRDs, given as manifests or by the name of the kind, and wait until the server serves them.

    An existing CRD is replaced, as by an upgrade; it is deleted first if it has stored objects in a version that is no
    longer there, which the server would refuse. To apply one takes the server longer than to list them all, so that
    only those are applied that differ.
    """
    definitions = [definition(one) if isinstance(one, str) else one for one in what]
    live = await _live_definitions(client)
    outdated = [one for one in definitions if not _is_current(live.get(key_of(one)), one)]
    await _delete(client, [one for one in outdated if _drops_stored_version(live.get(key_of(one)), one)])
    await asyncio.gather(*(client.apply(one, manager=managers.INSTALL.name, force=True) for one in outdated))
    await _settle(client, definitions, _is_discovered, "does not serve")
    await _settle(client, outdated, _is_listed, "does not serve")


async def uninstall(client: Client, *names: str) -> None:
    """Delete CRDs with all of their objects, and wait until the server no longer serves them."""
    definitions = [definition(name) for name in names]
    live = await _live_definitions(client) if definitions else {}
    await _delete(client, [one for one in definitions if key_of(one) in live])
    await _settle(client, definitions, _is_undiscovered, "still serves")


async def _delete(client: Client, definitions: list[Object]) -> None:
    for one in definitions:
        with suppress(NotFound):
            await client.delete(Ref(CUSTOM_RESOURCE_DEFINITION, key_of(one)))
    await _settle(client, definitions, _is_deleted, "still has")


async def _live_definitions(client: Client) -> dict[Key, Object]:
    return {key_of(one): one for one in await client.list(CUSTOM_RESOURCE_DEFINITION)}


def _is_current(live: Object | None, wanted: Object) -> bool:
    """Whether an apply would change nothing. In doubt it would: the server writes some schemas in another way."""
    if live is None or "deletionTimestamp" in live["metadata"]:
        return False
    spec = {"conversion": {"strategy": "None"}, **wanted["spec"]}
    names = {**live["spec"]["names"], **spec["names"]}  # the server adds the names that are not given
    return bool(live["spec"] == {**spec, "names": names})


def _drops_stored_version(live: Object | None, wanted: Object) -> bool:
    stored = set((live or {}).get("status", {}).get("storedVersions", ()))
    return not stored <= {version["name"] for version in wanted["spec"]["versions"]}


async def _settle(
    client: Client, definitions: list[Object], holds: Callable[[Client, Object], Awaitable[bool]], otherwise: str
) -> None:
    pending = definitions
    try:
        async with asyncio.timeout(SECONDS_TO_SETTLE):
            while pending:
                await client.discovery.refresh()
                answers = await asyncio.gather(*(holds(client, one) for one in pending))
                pending = [one for one, answer in zip(pending, answers, strict=True) if not answer]
                await asyncio.sleep(0.05 if pending else 0)
    except TimeoutError:
        names = ", ".join(one["metadata"]["name"] for one in pending)
        raise LocalError(f"the API server {otherwise} {names} after {SECONDS_TO_SETTLE:g} s: try again") from None


async def make_namespace(client: Client, name: str) -> None:
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
    with suppress(AlreadyExists):
        await client.create(namespace)


async def _is_discovered(client: Client, one: Object) -> bool:
    """Whether the server names exactly the versions of the CRD."""
    spec = one["spec"]
    kind = _kind_of(one)
    try:
        for version in spec["versions"]:
            if version["served"]:
                await client.discovery.resource(kind, version["name"])
            elif await _still_served(client, kind, version["name"]):
                return False
    except NotServed:
        return False
    return True


async def _is_listed(client: Client, one: Object) -> bool:
    try:
        await client.list(_kind_of(one))
    except (NotServed, Unavailable):  # for a moment, a new kind may be not found or unavailable
        return False
    return True


def _kind_of(one: Object) -> Kind:
    return Kind(one["spec"]["group"], one["spec"]["names"]["kind"])


async def _is_deleted(client: Client, one: Object) -> bool:
    try:
        await client.get(Ref(CUSTOM_RESOURCE_DEFINITION, key_of(one)))
    except NotFound:
        return True
    return False


async def _is_undiscovered(client: Client, one: Object) -> bool:
    return not client.discovery.serves(one["spec"]["group"], one["spec"]["names"]["plural"])


async def _still_served(client: Client, kind: Kind, version: str) -> bool:
    try:
        await client.discovery.resource(kind, version)
    except NotServed:
        return False
    return True
