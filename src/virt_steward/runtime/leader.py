"""One leader at a time, by a Lease: a leader stops writing before anybody else can have taken over.

A candidate takes a lease only after it has seen it unchanged for the lease's duration on its own clock. The holder
counts from the moment *before* it sent its last successful renewal and stops at two thirds of the duration: what
separates the two covers clocks that run apart and requests that are under way. No clock is compared with another's.
"""

from __future__ import annotations

import asyncio
import contextlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec
import structlog

from virt_steward.kube.discovery import Discovery, Resource
from virt_steward.kube.errors import Conflict, KubeError, NotFound, NotLeading
from virt_steward.objects.identity import Key, Kind, Ref
from virt_steward.objects.wallclock import rfc3339_micro
from virt_steward.runtime.access import LEASE

if TYPE_CHECKING:
    from random import Random

    from virt_steward.kube.client import Client, Object
    from virt_steward.runtime.clock import Clock

log = structlog.get_logger()

ONLY_IF_ABSENT = "1"
"""As a resourceVersion it makes an apply create or fail: no object ever has it."""


@dataclass(frozen=True, slots=True)
class LeaseTimes:
    """How long a lease lasts, in seconds, and how often it is renewed or looked at."""

    duration: int = 15
    retry: float = 2.0

    @property
    def usable(self) -> float:
        """How long a holder acts on one renewal."""
        return self.duration * 2 / 3


class LeaseSpec(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    holder_identity: str = ""
    lease_duration_seconds: int = 0
    acquire_time: str = ""
    renew_time: str = ""
    lease_transitions: int = -1  # so that the first holder is number 0


class _Metadata(msgspec.Struct, frozen=True, rename="camel"):
    uid: str
    resource_version: str


class _Lease(msgspec.Struct, frozen=True):
    metadata: _Metadata
    spec: LeaseSpec = LeaseSpec()


@dataclass(frozen=True, slots=True)
class Candidacy:
    """Who runs for what."""

    lease: Key
    identity: str
    """Unique per process, so that a restarted one is somebody else."""
    manager: str
    """The field manager under which the lease is applied."""
    times: LeaseTimes


class LeasesOnly(Discovery):
    """Leases are at the same place on every server, so no renewal waits until discovery has been asked anew."""

    async def resource(self, kind: Kind, version: str = "v1") -> Resource:
        return Resource(kind, version, LEASE.plural, namespaced=True, subresources=frozenset())


class Elector:
    """A candidate for one lease. It is the permit of all writes that only a leader may make."""

    def __init__(self, client: Client, candidacy: Candidacy, clock: Clock, rng: Random) -> None:
        self.candidacy = candidacy
        self.trouble = "has not seen its lease yet"
        """Why it could not lead now; empty if it could, or does."""
        self._client = client
        self._ref = Ref(LEASE, candidacy.lease)
        self._clock = clock
        self._rng = rng
        self._lease: _Lease | None = None
        self._taken_until = 0.0  # how long the last one whom we saw may act, even if the lease is deleted under it
        self._deadline: float | None = None

    @property
    def permit(self) -> Elector:
        return self

    @property
    def leads(self) -> bool:
        return self._deadline is not None and self._clock.now() < self._deadline

    @property
    def holder(self) -> str:
        """Who held the lease when we last looked; empty if nobody."""
        return self._lease.spec.holder_identity if self._lease else ""

    def remaining(self) -> float:
        """Seconds in which a write must have ended."""
        left = 0.0 if self._deadline is None else self._deadline - self._clock.now()
        if left <= 0:
            raise NotLeading(f"{self.candidacy.identity} does not hold lease {self.candidacy.lease}")
        return left

    async def campaign(self) -> None:
        """Wait until we lead."""
        while not await self._took_it():
            await self._pause()
        log.info("leading", lease=str(self.candidacy.lease), identity=self.candidacy.identity)

    async def hold(self) -> None:
        """Renew as long as we lead; returns as soon as we do not."""
        while self.leads:
            await self._pause()
            with contextlib.suppress(TimeoutError, NotLeading):
                async with asyncio.timeout(self.remaining()):
                    await self._renew()
        self._deadline = None
        log.warning("no longer leading", lease=str(self.candidacy.lease), holder=self.holder)

    async def release(self) -> None:
        """Give the lease up, so that the next one need not wait. Call it when no write can follow any more."""
        if not self.leads:
            return
        self._deadline = None
        with contextlib.suppress(KubeError):  # it expires by itself
            try:
                await self._give_up()
            except Conflict:  # a renewal that we did not wait for
                await self._look()
                await self._give_up()

    async def _pause(self) -> None:
        await self._clock.sleep(self.candidacy.times.retry * self._rng.uniform(0.8, 1.2))

    async def _took_it(self) -> bool:
        try:
            await self._look()
            if self._clock.now() <= self._taken_until:
                self.trouble = ""
                return False
            await self._claim()
        except Conflict:  # somebody was faster: that is how it should be
            return False
        except KubeError as error:
            self._failed(error)
            return False
        return True

    async def _renew(self) -> None:
        try:
            await self._claim()
        except Conflict:  # another took it, or somebody touched its metadata
            with contextlib.suppress(KubeError):
                await self._look()
            if not self._is_ours:
                self._deadline = None
        except KubeError as error:
            self._failed(error)

    def _failed(self, error: KubeError) -> None:
        if self.trouble != str(error):
            log.warning("lease out of reach", lease=str(self.candidacy.lease), error=str(error))
        self.trouble = str(error)

    @property
    def _is_ours(self) -> bool:
        return self.holder == self.candidacy.identity

    async def _look(self) -> None:
        try:
            lease = await self._client.get(self._ref, _Lease)
        except NotFound:
            self._lease = None
            return
        if lease == self._lease:
            return
        self._lease = lease
        if self._is_ours or not self.holder:
            self._taken_until = 0.0
        else:  # one who does not say for how long gets as long as we would
            duration = lease.spec.lease_duration_seconds or self.candidacy.times.duration
            self._taken_until = self._clock.now() + duration

    async def _claim(self) -> None:
        """Write our name with the time of now; what we may do on it counts from before the request."""
        before = self._lease.spec if self._lease else LeaseSpec()
        sent, now = self._clock.now(), rfc3339_micro(self._clock.utc())
        await self._write(
            LeaseSpec(
                holder_identity=self.candidacy.identity,
                lease_duration_seconds=self.candidacy.times.duration,
                acquire_time=before.acquire_time if self._is_ours else now,
                renew_time=now,
                lease_transitions=before.lease_transitions + (not self._is_ours),
            )
        )
        self._deadline = sent + self.candidacy.times.usable
        self.trouble = ""

    async def _give_up(self) -> None:
        if self._is_ours and self._lease:
            await self._write(LeaseSpec(lease_transitions=self._lease.spec.lease_transitions))

    async def _write(self, spec: LeaseSpec) -> None:
        """Apply the lease, if it is still as we saw it."""
        key = self._ref.key
        metadata: Object = {"name": key.name, "namespace": key.namespace, "resourceVersion": ONLY_IF_ABSENT}
        if self._lease:
            seen = self._lease.metadata
            metadata |= {"uid": seen.uid, "resourceVersion": seen.resource_version}
        intent = {"apiVersion": "coordination.k8s.io/v1", "kind": LEASE.name, "metadata": metadata, "spec": spec}
        applied = await self._client.apply(intent, manager=self.candidacy.manager, force=True)
        self._lease = msgspec.convert(applied.object, _Lease)


class Unopposed:
    """The only candidate there is: a process that was told to run without election."""

    permit = None
    leads = True
    trouble = ""

    async def campaign(self) -> None:
        """We lead already."""

    async def hold(self) -> None:
        await asyncio.Event().wait()

    async def release(self) -> None:
        """There is nothing to give up."""
