"""Which controllers are frozen, and why: a notice on every page."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from virt_steward.holds.freezes import CONTROLLERS, Frozen
from virt_steward.holds.installation import FreezeChanges, FreezeView, freezes_in

if TYPE_CHECKING:
    from collections.abc import Callable

    from virt_steward.console.cache import Cache
    from virt_steward.holds.freezes import FreezeState
    from virt_steward.runtime.clock import Clock


class FreezeNotices:
    """Observes the freeze of the installation as the controllers do, by the watch that they share."""

    def __init__(self, cache: Cache, clock: Clock, namespace: str, on_change: Callable[[], None]) -> None:
        informer = cache.informer(freezes_in(namespace))
        self._clock = clock
        self._views = {name: FreezeView(informer.store, namespace, name) for name in CONTROLLERS}
        self._changes = [FreezeChanges(informer, view, clock, on_change) for view in self._views.values()]

    def state(self, controller: str) -> FreezeState:
        return self._views[controller].state(self._clock.utc())

    @property
    def notices(self) -> list[tuple[str, str]]:
        """The controllers that begin nothing now, each with why."""
        states = ((name, self.state(name)) for name in self._views)
        return [(name, state.message) for name, state in states if isinstance(state, Frozen)]

    async def run(self) -> None:
        """Update the pages when a freeze begins, ends or is changed."""
        async with asyncio.TaskGroup() as group:
            for changes in self._changes:
                group.create_task(changes.run())
