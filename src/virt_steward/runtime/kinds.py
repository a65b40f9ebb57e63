"""Kinds come and go: asks discovery anew when a definition changes, until the server serves what it says."""

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
"""Existence alone: a definition's schema can be most of a megabyte."""

PATIENCE = (0.0, 0.1, 0.2, 0.4, 0.8, 1.5, 3.0, 5.0, 5.0)
"""Seconds between questions: a new definition is served a second or two after it is written, a bad one never."""
RETRY = 1.0
BETWEEN_QUESTIONS = 0.2
"""Seconds at least: an installer writes definitions by the dozen, and each answer lists all kinds there are."""
LOOKS = (0.0, 0.5, 2.0)
"""Seconds before discovery is asked, and asked again: at first it may still show a definition since replaced."""


class Kinds:
    """Follows the definitions. Tell its handler to an informer of DEFINITIONS."""

    def __init__(self, discovery: Discovery) -> None:
        self._discovery = discovery
        self._expected: dict[str, bool] = {}
        self._news = asyncio.Event()
        self._asked_at = -BETWEEN_QUESTIONS

    def handle(self, key: Key, _before: Existing | None, after: Existing | None) -> None:
        self._expected[key.name] = after is not None
        self._news.set()

    async def run(self) -> None:
        while True:
            await self._news.wait()
            self._news.clear()
            await self._until_settled()

    async def _until_settled(self) -> None:
        """Or until there is other news, which must not wait for a definition that is never served."""
        for pause in LOOKS:
            if await self._news_within(pause):
                return
            await self._until_served()
        if not self._news.is_set():
            self._expected.clear()

    async def _until_served(self) -> None:
        for delay in PATIENCE:
            if await self._news_within(delay):
                return
            await self._ask()
            if all(self._serves(name) == expected for name, expected in self._expected.items()):
                return
        log.warning("definitions are not served as written", definitions=sorted(self._expected))

    async def _news_within(self, seconds: float) -> bool:
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._news.wait()
        return self._news.is_set()

    async def _ask(self) -> None:
        """Until there is an answer: nothing would make us ask again once an outage is over."""
        now = asyncio.get_running_loop().time()
        await asyncio.sleep(self._asked_at + BETWEEN_QUESTIONS - now)
        self._asked_at = max(now, self._asked_at + BETWEEN_QUESTIONS)
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
    """A companion of a controller: tells it that the server serves other kinds than before."""

    def __init__(self, discovery: Discovery, told: Callable[[], None]) -> None:
        self._discovery = discovery
        self._told = told

    async def run(self) -> None:
        while True:
            await self._discovery.changed()
            self._told()

    async def settled(self) -> None:
        """There is nothing to wait for: discovery was asked before, and whoever leads looks at everything first."""
