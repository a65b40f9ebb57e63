"""Who holds the Leases that say which controllers work: our own, and those of the Go operators."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from virt_steward.controllers import NAMES
from virt_steward.insight.status import GO_LEASES
from virt_steward.kube.client import Selection
from virt_steward.kube.watch import projection
from virt_steward.objects.identity import Key
from virt_steward.runtime.access import LEASE, Access
from virt_steward.runtime.informer import Source
from virt_steward.runtime.standby import OtherLease, StandBy, other_leases

if TYPE_CHECKING:
    from collections.abc import Mapping

    from virt_steward.console.cache import Cache
    from virt_steward.runtime.clock import Clock
    from virt_steward.runtime.standby import Rival

OUR_LEASES = {name: Access(name).lease for name in NAMES}
"""The Lease by which the replicas of each controller elect a leader, in the namespace of the controllers."""


class _NoElection:
    """The console takes no part in elections."""

    permit = None


class LeaseHolders:
    """Observes one Lease per controller as controllers do: a renewal is timed by our own clock."""

    def __init__(self, cache: Cache, clock: Clock, leases: Mapping[str, Source[OtherLease]]) -> None:
        self._cache = cache
        self._observers = {controller: StandBy(_NoElection(), clock) for controller in leases}
        for controller, observer in self._observers.items():
            cache.follow(leases[controller], observer.handle)

    @property
    def holders(self) -> dict[str, Rival]:
        """Who holds a Lease now, by controller."""
        return {name: holder for name, observer in self._observers.items() if (holder := observer.rival)}

    async def run(self) -> None:
        """Update the pages when a Lease is taken or expires: renewals in between change nothing."""
        async with asyncio.TaskGroup() as group:
            for observer in self._observers.values():
                group.create_task(self._follow(observer))

    async def _follow(self, observer: StandBy) -> None:
        while True:
            await observer.appeared()
            self._cache.publish("activity")
            await observer.gone()
            self._cache.publish("activity")


def leases_of_go_operators() -> dict[str, Source[OtherLease]]:
    """The sources that the controllers watch themselves: in all namespaces, since nobody knows where they run."""
    return {controller: other_leases(name) for controller, name in GO_LEASES.items()}


def leases_of_controllers(namespace: str) -> dict[str, Source[OtherLease]]:
    """Only in the namespace of the controllers: elsewhere, anybody can create a Lease of that name."""
    return {
        controller: Source(LEASE, projection(OtherLease), Selection.one(Key(namespace, name)), may_be_denied=True)
        for controller, name in OUR_LEASES.items()
    }
