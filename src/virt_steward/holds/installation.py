"""The freeze of the installation, as controllers watch it: one ConfigMap, by its name."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from functools import cache
from typing import TYPE_CHECKING

from virt_steward.holds.freezes import CONFIG_MAP_NAME, NOT_FROZEN, FreezeRecord, Frozen, source_of
from virt_steward.kube.client import Selection
from virt_steward.kube.watch import projection
from virt_steward.objects.corekinds import CONFIG_MAP
from virt_steward.objects.identity import Key
from virt_steward.runtime.access import WATCH, Grant, Reach
from virt_steward.runtime.informer import Source

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from virt_steward.holds.freezes import FreezeState
    from virt_steward.runtime.clock import Clock
    from virt_steward.runtime.controller import Toolbox
    from virt_steward.runtime.informers import SharedInformer
    from virt_steward.runtime.store import Store

FREEZE_GRANT = Grant(
    CONFIG_MAP, WATCH, "to begin nothing while the installation is frozen", Reach.OWN, names=(CONFIG_MAP_NAME,)
)
LONGEST_SLEEP = 3600.0
"""Seconds after which the clock is read again, since it may have been set meanwhile."""


@cache
def freezes_in(namespace: str) -> Source[FreezeRecord]:
    """One source per namespace, so that all controllers of a process share one watch."""
    key = Key(namespace, CONFIG_MAP_NAME)
    return Source(CONFIG_MAP, projection(FreezeRecord), Selection.one(key), may_be_denied=True)


class FreezeView:
    """What is known of the freeze of an installation, for one controller."""

    def __init__(self, store: Store[FreezeRecord], namespace: str, controller: str) -> None:
        self._store = store
        self._key = Key(namespace, CONFIG_MAP_NAME)
        self._controller = controller
        self._known: tuple[FreezeRecord, FreezeState, datetime] | None = None

    def state(self, now: datetime) -> FreezeState:
        """Whether the controller may begin anything now. A freeze that cannot be read is in force."""
        source = source_of(self._key.namespace)
        if self._store.denied:
            remedy = "apply the output of 'virt-steward rbac'"
            return Frozen(source, problem=f"cannot be read: forbidden (403) to watch it, {remedy}")
        if fault := self._store.unreadable(self._key):
            return Frozen(source, problem=f"is invalid ({fault})")
        record = self._store.get(self._key)
        return NOT_FROZEN if record is None else self._remembered(record, now)

    def _remembered(self, record: FreezeRecord, now: datetime) -> FreezeState:
        """Evaluated once and kept until it may change: many objects ask for it."""
        if self._known and self._known[0] is record:
            _, state, since = self._known
            if since <= now and (state.until is None or now < state.until):
                return state
        state = record.freeze.state(self._controller, now)
        self._known = (record, state, now)
        return state


class FreezeChanges:
    """A background task of a controller: calls it when the freeze begins, ends, or is changed."""

    def __init__(
        self, informer: SharedInformer[FreezeRecord], view: FreezeView, clock: Clock, on_change: Callable[[], None]
    ) -> None:
        self._view = view
        self._clock = clock
        self._on_change = on_change
        self._changed = asyncio.Event()
        informer.tell(lambda *_: self._changed.set())

    async def run(self) -> None:
        state = self._view.state(self._clock.utc())
        while True:
            until = state.until
            left = (until - self._clock.utc()).total_seconds() if until else LONGEST_SLEEP
            with suppress(TimeoutError):
                async with asyncio.timeout(min(max(left, 0.0), LONGEST_SLEEP)):
                    await self._changed.wait()
            self._changed.clear()
            before, state = state, self._view.state(self._clock.utc())
            if state != before:
                self._on_change()

    async def settled(self) -> None:
        """Return at once: a new leader reconciles everything first."""


def follow_freeze(tools: Toolbox, namespace: str, controller: str, on_change: Callable[[], None]) -> FreezeView:
    """Watch the freeze of the installation for a controller, which is called when it begins, ends or is changed."""
    informer = tools.informers.of(freezes_in(namespace))
    view = FreezeView(informer.store, namespace, controller)
    tools.accompany(FreezeChanges(informer, view, tools.clock, on_change))
    return view
