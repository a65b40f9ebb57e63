"""What waits, as the process knows it: read once from its ConfigMap, then mirrored in memory and written on change."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec
import structlog

from virt_steward.controllers.autopilot.rollouts.staged import (
    Occasion,
    data_key,
    ref_of_staging,
    staging_intent,
    unreviewed_pools,
)
from virt_steward.kube.faults import reach
from virt_steward.ssa.managers import STAGING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from virt_steward.controllers.autopilot.rollouts.staged import StagedChange, StagingRecord
    from virt_steward.kube.client import Client
    from virt_steward.objects.identity import Key, Ref, Regarding
    from virt_steward.platform.pools import Pool
    from virt_steward.runtime.clock import Clock
    from virt_steward.runtime.store import Store

log = structlog.get_logger()

STARTS_WITHIN = 30.0
"""Seconds until a pool surely has a new configuration after a write that changes it."""


@dataclass(frozen=True, slots=True)
class StartedRollout:
    """A write of ours gives a pool a new configuration."""

    configuration: str
    """The one that it had then."""
    at: float


class StagingLedger:
    """The staged changes by object, and what else the process knows of rollouts. Only the leader writes it."""

    def __init__(self, client: Client, store: Store[StagingRecord], hco: Key, clock: Clock) -> None:
        self._client = client
        self._store = store
        self._ref = ref_of_staging(hco.namespace)
        self._clock = clock
        self._entries: dict[str, StagedChange] | None = None
        self._written = 0
        """The resourceVersion of our last write."""
        self._in_sync: set[Ref] = set()
        self._compared: set[Ref] = set()
        self._started: dict[str, StartedRollout] = {}

    def begin(self) -> None:
        """Forget what this process knows from the last time it led: another one may have written since.

        That may have been another replica, or the Go operator while this process stood by. If the watch is behind our
        own last write, nobody else has written yet, as far as we know.
        """
        self._in_sync.clear()
        self._compared.clear()
        self._started.clear()
        if self._reached() >= self._written:
            self._entries = None

    def find(self, ref: Ref) -> StagedChange | None:
        return self._known().get(data_key(ref))

    def is_recorded(self, ref: Ref, change: StagedChange) -> bool:
        """Whether the ConfigMap has this entry; if somebody has deleted it, it has to be written again."""
        return self.find(ref) == change and not self._is_deleted()

    async def stage(self, hco: Regarding, ref: Ref, change: StagedChange) -> None:
        if not self.is_recorded(ref, change):
            log.info("change staged", object=str(ref), asset=change.asset, pools=change.matching_pools)
            await self._write(hco, {**self._known(), data_key(ref): change})

    async def drop(self, hco: Regarding, refs: Iterable[Ref]) -> None:
        """The changes were written, or are not wanted any more."""
        gone = {data_key(ref) for ref in refs} & self._known().keys()
        if gone:
            await self._write(hco, {key: entry for key, entry in self._known().items() if key not in gone})

    async def keep_only(self, hco: Regarding, refs: Iterable[Ref]) -> None:
        """Drop changes of objects that the catalog does not have any more; no objects: drop all."""
        kept = {data_key(ref) for ref in refs}
        if self._known().keys() - kept:
            await self._write(hco, {key: entry for key, entry in self._known().items() if key in kept})

    def note_in_sync(self, ref: Ref) -> None:
        """Remember that this process has written the object, or found it as wanted."""
        self._in_sync.add(ref)

    def was_in_sync(self, ref: Ref) -> bool:
        return ref in self._in_sync

    def note_compared(self, ref: Ref) -> None:
        """There is a verdict on the object."""
        self._compared.add(ref)

    def was_compared(self, ref: Ref) -> bool:
        return ref in self._compared

    def note_rollout(self, pools: Iterable[Pool]) -> None:
        """Remember that a write of ours starts a rollout of these pools; a paused pool starts none."""
        for pool in pools:
            if not pool.spec.paused:
                self._started[pool.name] = StartedRollout(pool.spec.configuration.name, self._clock.now())

    def started(self, pools: Iterable[Pool]) -> frozenset[str]:
        """Pools whose rollout a write of ours starts, until they have a new configuration: then their status tells."""
        now = self._clock.now()
        return frozenset(
            pool.name
            for pool in pools
            if (start := self._started.get(pool.name))
            and start.configuration == pool.spec.configuration.name
            and now - start.at < STARTS_WITHIN
        )

    def unreviewed_pools(self, ref: Ref) -> frozenset[str]:
        """Pools with other staged changes that want a review: of first contact, and deletions."""
        return unreviewed_pools(self._known(), ref)

    def assets_of(self, pools: frozenset[str]) -> Iterator[str]:
        """List the assets with staged changes of any of these pools."""
        return (entry.asset for entry in self._known().values() if pools & set(entry.matching_pools))

    def _is_deleted(self) -> bool:
        """Whether the ConfigMap is gone, as far as the watch has come; before our last write it could not have it."""
        return self._store.get(self._ref.key) is None and self._reached() >= self._written

    def _reached(self) -> int:
        """The resourceVersion up to which the watch has reported changes."""
        return min((version() for version in self._store.version_of.values()), default=0)

    def _known(self) -> Mapping[str, StagedChange]:
        if self._entries is None:
            found = self._store.get(self._ref.key)
            self._entries = found.entries if found else {}
        return self._entries

    async def _write(self, hco: Regarding, entries: dict[str, StagedChange]) -> None:
        reach("autopilot.staging.before")
        written = await self._client.apply(staging_intent(hco, entries), manager=STAGING.name, force=True)
        reach("autopilot.staging.after")
        self._entries, self._written = entries, int(written.object["metadata"]["resourceVersion"])


def continued(change: StagedChange, before: StagedChange | None) -> StagedChange:
    """Keep the clock, and why it was staged first, if the same is wanted as before."""
    if before is None or not change.continues(before):
        return change
    occasion = change.occasion if change.occasion is Occasion.DRIFT else before.occasion
    return msgspec.structs.replace(change, staged_at=before.staged_at, occasion=occasion)
