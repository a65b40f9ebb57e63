"""Whether the definition of Machine has room for our condition; others wrote it, in more than one version."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from virt_steward.controllers.placement.seen import MACHINE, MACHINE_API
from virt_steward.kube.discovery import CUSTOM_RESOURCE_DEFINITION
from virt_steward.kube.errors import NotFound
from virt_steward.objects.identity import Key, Ref

if TYPE_CHECKING:
    from collections.abc import Mapping

    from virt_steward.kube.client import Reader
    from virt_steward.objects.meta import Existing
    from virt_steward.runtime.store import Store

DEFINITION = Key("", f"{MACHINE.plural}.{MACHINE.group}")
PRESERVES = "x-kubernetes-preserve-unknown-fields"


class _Schema(msgspec.Struct, rename={"root": "openAPIV3Schema"}):
    root: dict[str, Any] = msgspec.field(default_factory=dict)


class _Version(msgspec.Struct):
    name: str
    schema: _Schema = msgspec.field(default_factory=_Schema)
    subresources: dict[str, Any] = msgspec.field(default_factory=dict)


class _Spec(msgspec.Struct):
    versions: list[_Version]


class _Definition(msgspec.Struct):
    spec: _Spec


class MachineSchema:
    """Asks once, and again when the definition has changed."""

    def __init__(self, reader: Reader, definitions: Store[Existing]) -> None:
        self._reader = reader
        self._definitions = definitions
        self._known: tuple[str, bool] | None = None
        """For which version of the definition, and what."""

    async def keeps_conditions(self) -> bool:
        defined = self._definitions.get(DEFINITION)
        version = defined.metadata.resource_version if defined else ""
        if self._known is None or self._known[0] != version:
            self._known = (version, await self._ask())
        return self._known[1]

    async def _ask(self) -> bool:
        try:
            found = await self._reader.get(Ref(CUSTOM_RESOURCE_DEFINITION, DEFINITION), _Definition)
        except NotFound:
            return False
        versions = {f"{MACHINE.group}/{one.name}": one for one in found.spec.versions}
        served = versions.get(MACHINE_API)
        return served is not None and "status" in served.subresources and _keeps(served.schema.root)


def _keeps(root: Mapping[str, Any]) -> bool:
    status = root.get("properties", {}).get("status", {})
    return bool(root.get(PRESERVES) or status.get(PRESERVES) or "conditions" in status.get("properties", {}))
