"""Telling a story that must come true: what is said to happen is waited for, and its absence is an error."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING

from virt_steward.kube.errors import KubeError
from virt_steward.objects.errors import UserError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from rich.console import Console

PATIENCE = 60.0
"""Seconds within which most things happen."""
LOOKS = 0.1


class CheckFailed(UserError):
    """Something that was told did not happen."""


class Narrator:
    """Speaks to whoever watches."""

    def __init__(self, console: Console, patience: float = PATIENCE) -> None:
        self._console = console
        self._patience = patience
        self._began = time.monotonic()
        self.checks = 0

    @property
    def seconds(self) -> float:
        return time.monotonic() - self._began

    def chapter(self, title: str) -> None:
        self._console.print()
        self._console.rule(f"[bold]{title}", align="left")

    def say(self, text: str) -> None:
        self._console.print(text, markup=False, highlight=False, soft_wrap=True)

    def quote(self, text: str) -> None:
        """What somebody at a terminal would see."""
        for line in text.rstrip().splitlines():
            style = {"+": "green", "-": "red", "@": "cyan"}.get(line[:1], "dim")
            self._console.print(f"    {line}", style=style, markup=False, highlight=False, soft_wrap=True)

    async def sees(self, what: str, holds: Callable[[], Awaitable[bool]], within: float | None = None) -> None:
        """Wait until it holds, and say so. What takes longer than most says within how many seconds it happens."""
        within = within or self._patience
        deadline = time.monotonic() + within
        while not await _holds(holds):
            if time.monotonic() > deadline:
                raise CheckFailed(f"after {within:g} s it is still not so: {what}")
            await asyncio.sleep(LOOKS)
        self.checks += 1
        self._console.print(f"  [green]✓[/green] {what}", highlight=False, soft_wrap=True)


async def _holds(condition: Callable[[], Awaitable[bool]]) -> bool:
    try:
        return await condition()
    except KubeError:  # not there yet, or not reachable for a moment
        return False
