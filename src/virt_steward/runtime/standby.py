"""Standing by: a controller does not write while another implementation of it runs on the cluster.

The Go operators elect their leaders by Leases of fixed names, in whatever namespace they are installed. As long as such
a Lease is renewed, the controller of ours that does the same work fills its caches and writes nothing. It takes over
when the Lease has not been renewed for its whole duration, is released, or is deleted.

Renewals are timed by our own clock from the moment in which they are observed, as in `leader.py`: the clocks of two
machines may differ. Only a Lease that was not renewed for a long time when it is first read counts as expired at once.
Otherwise an operator that was removed months ago would delay every start.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cache
from typing import TYPE_CHECKING, Protocol

import msgspec
import structlog

from virt_steward.kube.client import Selection
from virt_steward.kube.connection import REQUEST_TIMEOUT
from virt_steward.kube.errors import NotLeading, one_line
from virt_steward.kube.events import Occurrence
from virt_steward.kube.watch import projection
from virt_steward.objects.identity import Key, Ref, Regarding
from virt_steward.objects.meta import Meta
from virt_steward.runtime.access import LEASE
from virt_steward.runtime.informer import Source

if TYPE_CHECKING:
    from virt_steward.kube.connection import Permit
    from virt_steward.runtime.clock import Clock

log = structlog.get_logger()

DEFAULT_DURATION = 15.0
"""Seconds that a Lease lasts if it does not say so."""
LONGEST_DURATION = 300.0
"""A Lease that claims to last longer is taken over after this: anybody may write one."""
LONG_AGO = timedelta(minutes=5)
"""No two clocks of one cluster differ so much."""
LONGEST_HOLDER = 200
"""Characters of the holder's name that messages have."""
POLL = 0.5
"""Seconds between two looks at whether the other one has expired."""


class OtherLeaseSpec(msgspec.Struct, frozen=True, rename="camel"):
    holder_identity: str | None = None
    lease_duration_seconds: int | None = None
    renew_time: datetime | None = None


class OtherLease(msgspec.Struct, frozen=True):
    """The Lease of another implementation, as far as it is read."""

    metadata: Meta
    spec: OtherLeaseSpec = OtherLeaseSpec()

    @property
    def duration(self) -> float:
        return min(self.spec.lease_duration_seconds or DEFAULT_DURATION, LONGEST_DURATION)

    @property
    def holder(self) -> str:
        """Who holds it; empty if nobody does. Anybody may have written it, so it is shortened, and on one line."""
        return one_line((self.spec.holder_identity or "")[:LONGEST_HOLDER])

    def is_renewed(self, utc: datetime, within: timedelta) -> bool:
        """Whether it is held and was renewed lately, by the clock of the holder."""
        renewed = self.spec.renew_time
        return bool(self.holder) and renewed is not None and utc - renewed < within


@cache
def other_leases(name: str) -> Source[OtherLease]:
    """The Leases of that name, in all namespaces. Always the same source, so that all who read it share one watch."""
    return Source(LEASE, projection(OtherLease), Selection(fields=f"metadata.name={name}"), may_be_denied=True)


def standing_by(lease: Key, holder: str) -> str:
    """The message of log, event, status and console."""
    return (
        f"standing by: {holder} holds Lease {lease}. To let virt-steward take over, stop the operator that renews it; "
        "to keep that operator, do not run this controller"
    )


@dataclass(frozen=True, slots=True)
class Rival:
    """Another implementation of a controller that runs now."""

    lease: Key
    uid: str
    holder: str

    @property
    def message(self) -> str:
        return standing_by(self.lease, self.holder)

    @property
    def occurrence(self) -> Occurrence:
        regarding = Regarding(Ref(LEASE, self.lease), "coordination.k8s.io/v1", self.uid)
        return Occurrence(regarding, "Normal", "StandingBy", "StandBy", self.message, episode=self.holder)


class Leadership(Protocol):
    """Who leads among our own replicas."""

    @property
    def permit(self) -> Permit | None: ...


class StandBy:
    """Observes the Leases of another implementation, and is the permit of the controller's writes."""

    def __init__(self, among_ours: Leadership, clock: Clock) -> None:
        self._permit = among_ours.permit
        self._clock = clock
        self._rivals: dict[Key, tuple[Rival, float]] = {}  # with the time at which its lease expires
        self._appeared = asyncio.Event()

    @property
    def rival(self) -> Rival | None:
        """The other implementation that runs now; None if none does."""
        if not self._rivals:
            return None
        now = self._clock.now()
        return next((rival for _, (rival, until) in sorted(self._rivals.items()) if now <= until), None)

    def remaining(self) -> float:
        """Seconds within which a write must end. Raises NotLeading if none are left."""
        if rival := self.rival:
            raise NotLeading(rival.message)
        return self._permit.remaining() if self._permit else REQUEST_TIMEOUT

    def handle(self, key: Key, before: OtherLease | None, after: OtherLease | None) -> None:
        """Take a change of a Lease: a renewal starts its duration again, by our clock."""
        if after is None or not after.holder:
            self._rivals.pop(key, None)
            return
        if after.spec == (before.spec if before else None) or not after.is_renewed(self._clock.utc(), LONG_AGO):
            return
        rival = Rival(key, after.metadata.uid, after.holder)
        self._rivals[key] = (rival, self._clock.now() + after.duration)
        self._appeared.set()

    async def appeared(self) -> None:
        """Wait until another implementation runs."""
        await self._appeared.wait()

    async def gone(self) -> None:
        """Wait until none runs."""
        while self.rival:
            await self._clock.sleep(POLL)
        self._appeared.clear()
