"""Which controllers stand by, because a Go operator does their work: a notice on every page."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from virt_steward.insight.status import GO_LEASES
from virt_steward.runtime.standby import StandBy, other_leases

if TYPE_CHECKING:
    from virt_steward.console.cache import Cache
    from virt_steward.runtime.clock import Clock
    from virt_steward.runtime.standby import Rival


class _NoElection:
    """The console takes no part in elections."""

    permit = None


class StandbyNotices:
    """Observes the Leases of the Go operators as the controllers do, by the watches that they share."""

    def __init__(self, cache: Cache, clock: Clock) -> None:
        self._cache = cache
        self._observers = {controller: StandBy(_NoElection(), clock) for controller in GO_LEASES}
        for controller, observer in self._observers.items():
            cache.follow(other_leases(GO_LEASES[controller]), observer.handle)

    @property
    def rivals(self) -> dict[str, Rival]:
        """The Go operators that run now, by the controller that stands by for them."""
        return {name: rival for name, observer in self._observers.items() if (rival := observer.rival)}

    async def run(self) -> None:
        """Update the pages when a notice comes or goes: renewals in between change nothing."""
        async with asyncio.TaskGroup() as group:
            for observer in self._observers.values():
                group.create_task(self._follow(observer))

    async def _follow(self, observer: StandBy) -> None:
        while True:
            await observer.appeared()
            self._cache.publish("activity")
            await observer.gone()
            self._cache.publish("activity")
