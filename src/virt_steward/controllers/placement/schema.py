"""Whether the definition of Machine has room for our condition; others wrote it, in more than one version."""

from __future__ import annotations

from typing import TYPE_CHECKING

from virt_steward.controllers.placement.observation import MACHINE, MACHINE_VERSION
from virt_steward.kube.discovery import CUSTOM_RESOURCE_DEFINITION
from virt_steward.kube.errors import NotFound
from virt_steward.objects.identity import Key, Ref
from virt_steward.objects.paths import Pointer
from virt_steward.objects.schemafacts import CrdDefinition, facts_of

if TYPE_CHECKING:
    from virt_steward.kube.client import Reader
    from virt_steward.objects.meta import Existing
    from virt_steward.runtime.store import Store

DEFINITION = Key("", f"{MACHINE.plural}.{MACHINE.group}")
CONDITIONS = Pointer(("status", "conditions"))


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
            found = await self._reader.get(Ref(CUSTOM_RESOURCE_DEFINITION, DEFINITION), CrdDefinition)
        except NotFound:
            return False
        served = found.served(MACHINE_VERSION)
        return served is not None and served.has_status and facts_of(served.schema, (CONDITIONS,)).has(CONDITIONS)
