"""Leader election by a Lease, with fencing: a leader stops writing before another can have taken over.

Two rules keep the terms of two leaders apart, and each side needs only its own clock:

- A candidate takes a Lease only after it has observed it unchanged for the whole lease duration.
- The holder may write for two thirds of the duration, counted from just *before* it sent its last successful renewal.

Example, with a duration of 15 s. Replica A renews at 12:00:00 and is then cut off from the API server. It may write
until 12:00:10. Replica B, whose last observation of that renewal is not before 12:00:00, takes over at 12:00:15 at the
earliest. The 5 s in between cover clocks that run at different speeds, and requests that A has sent but the server has
not executed yet.

Fencing means that the rule holds for each single write, not only for the loop that renews. The Elector is the `Permit`
of the leader's client (`kube/connection.py`): `remaining()` limits the timeout of each write, so that none outlives the
term, and is checked a last time when the body is sent. A request that waited for a free connection, or a process that
was suspended in between, gets NotLeading instead of writing late. See docs/decisions/0003-leader-election.md.
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
from virt_steward.objects.wallclock import rfc3339, rfc3339_micro
from virt_steward.runtime.access import LEASE

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from datetime import datetime
    from random import Random

    from virt_steward.kube.client import Client, Object
    from virt_steward.runtime.clock import Clock

log = structlog.get_logger()

ONLY_IF_ABSENT = "1"
"""As a resourceVersion it makes an apply create or fail: no object ever has it."""
LAST_SUCCESS = "steward.kubevirt.io/last-success"
"""Annotation of the Lease: when a reconcile last succeeded. It is written with a renewal, so it costs no request."""
FAILING = "steward.kubevirt.io/failing"
"""Annotation of the Lease: how many objects fail again and again."""


@dataclass(frozen=True, slots=True)
class WorkReport:
    """What a leader says about its work, for those who cannot read its metrics."""

    last_success: datetime | None = None
    """None: nothing was reconciled yet."""
    failing: int = 0

    def annotations(self, before: Mapping[str, str]) -> dict[str, str]:
        """As annotations of the Lease. A new leader keeps the last success of the one before until it has its own."""
        known = rfc3339(self.last_success) if self.last_success else before.get(LAST_SUCCESS)
        return {FAILING: str(self.failing)} | ({LAST_SUCCESS: known} if known else {})


def no_report() -> WorkReport:
    """The report of a candidate that does nothing but lead."""
    return WorkReport()


def namespace_not_found(namespace: str) -> str:
    """What to say when the namespace of the Lease does not exist."""
    return f"namespace {namespace} not found: create it, or set --namespace"


@dataclass(frozen=True, slots=True)
class LeaseTimes:
    """How long a lease lasts, and how often it is renewed or read, in seconds."""

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


class _LeaseMetadata(msgspec.Struct, frozen=True, rename="camel"):
    uid: str
    resource_version: str
    annotations: dict[str, str] = {}


class _Lease(msgspec.Struct, frozen=True):
    metadata: _LeaseMetadata
    spec: LeaseSpec = LeaseSpec()


@dataclass(frozen=True, slots=True)
class Candidacy:
    """Which identity competes for which Lease."""

    lease: Key
    identity: str
    """Unique per process: a restarted process is another candidate."""
    manager: str
    """The field manager under which the lease is applied."""
    times: LeaseTimes


class LeasesOnly(Discovery):
    """Knows where Leases are without a request, so that no renewal waits for discovery."""

    async def resource(self, kind: Kind, version: str = "v1") -> Resource:
        return Resource(kind, version, LEASE.plural, namespaced=True, subresources=frozenset())


class Elector:
    """A candidate for one Lease, and the permit of all writes that only its holder may make."""

    def __init__(
        self,
        client: Client,
        candidacy: Candidacy,
        clock: Clock,
        rng: Random,
        report: Callable[[], WorkReport] = no_report,
    ) -> None:
        self.candidacy = candidacy
        self._report = report
        self.trouble = f"lease {candidacy.lease} not read yet"
        """Why this candidate cannot lead now; empty if it can, or does."""
        self._client = client
        self._ref = Ref(LEASE, candidacy.lease)
        self._clock = clock
        self._rng = rng
        self._lease: _Lease | None = None
        self._taken_until = 0.0  # until then the last observed holder may write, even if the Lease is deleted
        self._deadline: float | None = None

    @property
    def permit(self) -> Elector:
        return self

    @property
    def leads(self) -> bool:
        return self._deadline is not None and self._clock.now() < self._deadline

    @property
    def holder(self) -> str:
        """The holder at the last read; empty if there is none."""
        return self._lease.spec.holder_identity if self._lease else ""

    def remaining(self) -> float:
        """Seconds within which a write must end. Raises NotLeading if none are left."""
        left = 0.0 if self._deadline is None else self._deadline - self._clock.now()
        if left <= 0:
            raise NotLeading(f"{self.candidacy.identity} does not hold lease {self.candidacy.lease}")
        return left

    async def campaign(self) -> None:
        """Wait until this candidate leads."""
        shown = ""
        while not await self._try_to_lead():
            if self.holder not in (shown, ""):
                shown = self.holder
                log.info("waiting for the lease", lease=str(self.candidacy.lease), holder=shown)
            await self._pause()
        log.info("leading", lease=str(self.candidacy.lease), identity=self.candidacy.identity)

    async def hold(self) -> None:
        """Renew as long as this candidate leads; return as soon as it does not."""
        while self.leads:
            await self._pause()
            with contextlib.suppress(TimeoutError, NotLeading):
                async with asyncio.timeout(self.remaining()):
                    await self._renew()
        self._deadline = None
        log.warning("no longer leading", lease=str(self.candidacy.lease), holder=self.holder)

    async def release(self) -> None:
        """Release the Lease, so that the next leader need not wait. Call it when no write can follow any more."""
        if not self.leads:
            return
        self._deadline = None
        with contextlib.suppress(KubeError):  # it expires by itself
            try:
                await self._clear_holder()
            except Conflict:  # a renewal was still in progress
                await self._read()
                await self._clear_holder()

    async def _pause(self) -> None:
        await self._clock.sleep(self.candidacy.times.retry * self._rng.uniform(0.8, 1.2))

    async def _try_to_lead(self) -> bool:
        try:
            await self._read()
            if self._clock.now() <= self._taken_until:
                self.trouble = ""
                return False
            await self._claim()
        except Conflict:  # another candidate was faster
            return False
        except KubeError as error:
            self._failed(error)
            return False
        return True

    async def _renew(self) -> None:
        try:
            await self._claim()
        except Conflict:  # another candidate took it, or its metadata changed
            with contextlib.suppress(KubeError):
                await self._read()
            if not self._is_ours:
                self._deadline = None
        except KubeError as error:
            self._failed(error)

    def _failed(self, error: KubeError) -> None:
        message = str(error)
        if isinstance(error, NotFound) and self._lease is None:  # only the namespace can be missing, then
            message = namespace_not_found(self.candidacy.lease.namespace)
        if self.trouble != message:
            log.warning("lease unavailable", lease=str(self.candidacy.lease), error=message)
        self.trouble = message

    @property
    def _is_ours(self) -> bool:
        return self.holder == self.candidacy.identity

    async def _read(self) -> None:
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
        else:  # a holder that states no duration gets ours
            duration = lease.spec.lease_duration_seconds or self.candidacy.times.duration
            self._taken_until = self._clock.now() + duration

    async def _claim(self) -> None:
        """Write our identity and the current time. The term counts from before the request was sent."""
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

    async def _clear_holder(self) -> None:
        if self._is_ours and self._lease:
            await self._write(LeaseSpec(lease_transitions=self._lease.spec.lease_transitions))

    async def _write(self, spec: LeaseSpec) -> None:
        """Apply the Lease, if it is unchanged since the last read."""
        key = self._ref.key
        metadata: Object = {"name": key.name, "namespace": key.namespace, "resourceVersion": ONLY_IF_ABSENT}
        if self._lease:
            read = self._lease.metadata
            metadata |= {"uid": read.uid, "resourceVersion": read.resource_version}
        metadata["annotations"] = self._report().annotations(self._lease.metadata.annotations if self._lease else {})
        intent = {"apiVersion": "coordination.k8s.io/v1", "kind": LEASE.name, "metadata": metadata, "spec": spec}
        applied = await self._client.apply(intent, manager=self.candidacy.manager, force=True)
        self._lease = msgspec.convert(applied.object, _Lease)


class Unopposed:
    """Always leads: for a process that runs without leader election."""

    permit = None
    leads = True
    trouble = ""

    async def campaign(self) -> None:
        """Return at once."""

    async def hold(self) -> None:
        await asyncio.Event().wait()

    async def release(self) -> None:
        """Do nothing: there is no Lease."""
