"""Keeps facts from the schemas of some CRDs, for the fields that are declared."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING

import structlog

from virt_steward.kube.discovery import CUSTOM_RESOURCE_DEFINITION
from virt_steward.kube.errors import InvalidAnswer, KubeError, NotFound, NotServed
from virt_steward.objects.identity import Key, Ref
from virt_steward.objects.schemafacts import CrdDefinition, facts_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from virt_steward.kube.backoff import RetryBackoff
    from virt_steward.kube.client import Reader
    from virt_steward.objects.meta import Existing
    from virt_steward.objects.paths import Pointer
    from virt_steward.objects.schemafacts import SchemaFacts
    from virt_steward.runtime.informers import SharedInformer

log = structlog.get_logger()


class Schemas:
    """Follows the CRDs, and fetches one only when it has changed. Only the facts are kept."""

    def __init__(
        self,
        reader: Reader,
        definitions: SharedInformer[Existing],
        wanted: Mapping[str, Iterable[Pointer]],
        backoff: RetryBackoff,
    ) -> None:
        self._reader = reader
        self._definitions = definitions
        self._wanted = {crd: frozenset(paths) for crd, paths in wanted.items()}
        self._backoff = backoff
        self._facts: dict[str, SchemaFacts] = {}
        self._versions: dict[str, str] = {}
        self._pending: set[str] = set()
        self._changed = asyncio.Event()
        self._done = asyncio.Event()
        self._done.set()
        self._handlers: list[Callable[[str], None]] = []
        definitions.tell(self._handle)

    def facts(self, crd: str) -> SchemaFacts | None:
        """The facts of this CRD; None if it is not installed."""
        return self._facts.get(crd)

    def tell(self, handler: Callable[[str], None]) -> None:
        """Call the handler with the name of every CRD whose facts change from now on."""
        self._handlers.append(handler)

    async def refresh(self, crd: str) -> None:
        """Read this CRD now: a refusal of the server can tell of a change before the watch does."""
        try:
            facts = await self._fetch(crd)
        except (NotFound, NotServed):
            facts = None
        except KubeError as error:
            log.warning("schema not read", crd=crd, error=str(error))
            return
        self._keep(crd, facts)

    async def settled(self) -> None:
        """Wait until the facts of all known CRDs are read."""
        await self._definitions.settled()
        await self._done.wait()

    async def run(self) -> None:
        while True:
            self._changed.clear()
            delay = await self._fetch_pending()
            if not self._pending:
                self._done.set()
            with suppress(TimeoutError):  # then retry what failed
                async with asyncio.timeout(delay):
                    await self._changed.wait()

    def _handle(self, key: Key, _before: Existing | None, after: Existing | None) -> None:
        crd = key.name
        if crd not in self._wanted:
            return
        if after is None:
            self._versions.pop(crd, None)
            self._pending.discard(crd)
            self._keep(crd, None)
        elif self._versions.get(crd) != after.metadata.resource_version:
            self._versions[crd] = after.metadata.resource_version
            self._pending.add(crd)
            self._done.clear()
        self._changed.set()

    async def _fetch_pending(self) -> float | None:
        """Seconds until the next retry; None if nothing failed."""
        delays = []
        for crd in sorted(self._pending):
            self._pending.discard(crd)
            try:
                facts = await self._fetch(crd)
            except (NotFound, NotServed):
                facts = None  # just deleted: the informer will report it
            except KubeError as error:
                self._pending.add(crd)
                delays.append(self._backoff.after(error))
                log.warning("schema not read", crd=crd, error=str(error), retry_in=round(delays[-1], 1))
                continue
            except Exception as error:  # what one CRD contains must not end the task, which all others need
                self._pending.add(crd)
                delays.append(self._backoff.after(InvalidAnswer(f"read {crd}", repr(error))))
                log.exception("schema not read", crd=crd, retry_in=round(delays[-1], 1))
                continue
            if crd in self._versions:
                self._keep(crd, facts)
        if not delays:
            self._backoff.succeeded()
        return min(delays, default=None)

    async def _fetch(self, crd: str) -> SchemaFacts:
        definition = await self._reader.get(Ref(CUSTOM_RESOURCE_DEFINITION, Key("", crd)), CrdDefinition)
        return facts_of(definition.schema, self._wanted[crd])

    def _keep(self, crd: str, facts: SchemaFacts | None) -> None:
        if self._facts.get(crd) == facts:
            return
        if facts is None:
            del self._facts[crd]
        else:
            self._facts[crd] = facts
        for handler in self._handlers:
            handler(crd)
