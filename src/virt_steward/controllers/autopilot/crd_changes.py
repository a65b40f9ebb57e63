"""Notices that the server may make more, or less, of a kind than before."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from virt_steward.objects.identity import Key
    from virt_steward.objects.meta import Existing
    from virt_steward.runtime.clock import Clock
    from virt_steward.runtime.informers import SharedInformer

SETTLES = 3.0
"""Seconds after which a server surely uses a definition as it was written."""


class SchemaChanges:
    """A companion of the controller: a definition may come to keep a field that it dropped before, or the reverse."""

    def __init__(self, definitions: SharedInformer[Existing], clock: Clock, told: Callable[[str], None]) -> None:
        self._clock = clock
        self._told = told
        self._changed: set[str] = set()
        self._news = asyncio.Event()
        definitions.tell(self._handle)

    def _handle(self, key: Key, before: Existing | None, after: Existing | None) -> None:
        if before is not None and after is not None:
            self._changed.add(key.name)
            self._news.set()

    async def run(self) -> None:
        while True:
            await self._news.wait()
            self._news.clear()
            await self._clock.sleep(SETTLES)
            changed, self._changed = self._changed, set()
            for crd in sorted(changed):
                self._told(crd)

    async def settled(self) -> None:
        """There is nothing to wait for: until something has changed, nothing was found before it did."""
