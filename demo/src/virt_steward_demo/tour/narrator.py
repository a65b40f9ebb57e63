"""Prints the tour of the demo, and checks it: each step waits until its condition holds, or fails after a timeout."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING

from virt_steward.kube.errors import KubeError
from virt_steward.objects.errors import UserError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from rich.console import Console

CHECK_TIMEOUT = 60.0
"""Seconds after which a check fails, unless it names its own timeout."""
POLL_INTERVAL = 0.1


class CheckFailed(UserError):
    """A condition of the tour did not hold in time."""


class Narrator:
    """Prints to a terminal, and counts the checks that passed."""

    def __init__(self, console: Console, timeout: float = CHECK_TIMEOUT) -> None:
        self._console = console
        self._timeout = timeout
        self._started = time.monotonic()
        self.passed = 0

    @property
    def seconds(self) -> float:
        return time.monotonic() - self._started

    def section(self, title: str) -> None:
        self._console.print()
        self._console.rule(f"[bold]{title}", align="left")

    def say(self, text: str) -> None:
        self._console.print(text, markup=False, highlight=False, soft_wrap=True)

    def quote(self, text: str) -> None:
        """Print text from the cluster, such as a diff or the message of a condition, as an admin reads it."""
        for line in text.rstrip().splitlines():
            style = {"+": "green", "-": "red", "@": "cyan"}.get(line[:1], "dim")
            self._console.print(f"    {line}", style=style, markup=False, highlight=False, soft_wrap=True)

    async def check(self, what: str, holds: Callable[[], Awaitable[bool]], within: float | None = None) -> None:
        """Wait until the condition holds, and print it as passed. Raises CheckFailed after `within` seconds."""
        limit = within or self._timeout
        deadline = time.monotonic() + limit
        while not await _holds(holds):
            if time.monotonic() > deadline:
                raise CheckFailed(f"check failed: {what}: not true after {limit:g} s")
            await asyncio.sleep(POLL_INTERVAL)
        self.passed += 1
        self._console.print(f"  [green]✓[/green] {what}", highlight=False, soft_wrap=True)


async def _holds(condition: Callable[[], Awaitable[bool]]) -> bool:
    try:
        return await condition()
    except KubeError:  # not found yet, or the API server is restarting
        return False
