"""Refreshes discovery when a CRD changes, until the server serves the kind that the CRD defines."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING

import structlog

from virt_steward.kube.client import Selection
from virt_steward.kube.discovery import CUSTOM_RESOURCE_DEFINITION
from virt_steward.kube.errors import KubeError
from virt_steward.kube.watch import projection
from virt_steward.objects.meta import Existing
from virt_steward.runtime.informer import Source

if TYPE_CHECKING:
    from collections.abc import Callable

    from virt_steward.kube.discovery import Discovery
    from virt_steward.objects.identity import Key

log = structlog.get_logger()

DEFINITIONS = Source(CUSTOM_RESOURCE_DEFINITION, projection(Existing), Selection(metadata_only=True))
"""Metadata only: the schema of a CRD can be close to a megabyte."""

RETRIES = (0.0, 0.1, 0.2, 0.4, 0.8, 1.5, 3.0, 5.0, 5.0)
"""Seconds between refreshes: a new kind is served a second or two after its CRD is written, an invalid one never."""
RETRY = 1.0
MIN_INTERVAL = 0.2
"""Seconds between refreshes at least: an installer writes dozens of CRDs, and each answer lists all kinds."""
CONFIRMATIONS = (0.0, 0.5, 2.0)
"""Seconds before each of several refreshes: the first may still show a CRD that has been replaced."""


class Kinds:
    """Follows the CRDs. Its `handle` is a handler for an informer of DEFINITIONS."""

    def __init__(self, discovery: Discovery) -> None:
        self._discovery = discovery
        self._expected: dict[str, bool] = {}
        self._crd_changed = asyncio.Event()
        self._refreshed_at = -MIN_INTERVAL

    def handle(self, key: Key, _before: Existing | None, after: Existing | None) -> None:
        self._expected[key.name] = after is not None
        self._crd_changed.set()

    async def run(self) -> None:
        while True:
            await self._crd_changed.wait()
            self._crd_changed.clear()
            await self._until_settled()

    async def _until_settled(self) -> None:
        """Refresh until the kinds are served, or until another CRD changes: that must not wait for an invalid one."""
        for pause in CONFIRMATIONS:
            if await self._changes_within(pause):
                return
            await self._until_served()
        if not self._crd_changed.is_set():
            self._expected.clear()

    async def _until_served(self) -> None:
        for delay in RETRIES:
            if await self._changes_within(delay):
                return
            await self._refresh()
            if all(self._serves(name) == expected for name, expected in self._expected.items()):
                return
        log.warning("CRDs are not served", crds=sorted(self._expected))

    async def _changes_within(self, seconds: float) -> bool:
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._crd_changed.wait()
        return self._crd_changed.is_set()

    async def _refresh(self) -> None:
        """Refresh discovery, with retries: nothing else would trigger it after an outage."""
        now = asyncio.get_running_loop().time()
        await asyncio.sleep(self._refreshed_at + MIN_INTERVAL - now)
        self._refreshed_at = max(now, self._refreshed_at + MIN_INTERVAL)
        while True:
            try:
                return await self._discovery.refresh()
            except KubeError as error:
                log.warning("discovery failed", error=str(error), retry_in=RETRY)
                await asyncio.sleep(RETRY)

    def _serves(self, definition: str) -> bool:
        plural, _, group = definition.partition(".")
        return self._discovery.serves(group, plural)


class CrdChanges:
    """A background task of a controller: calls it when the server serves other kinds than before."""

    def __init__(self, discovery: Discovery, on_change: Callable[[], None]) -> None:
        self._discovery = discovery
        self._on_change = on_change

    async def run(self) -> None:
        while True:
            await self._discovery.changed()
            self._on_change()

    async def settled(self) -> None:
        """Return at once: discovery was fetched before, and a new leader reconciles everything first."""
