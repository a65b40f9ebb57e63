"""Debug pages that every process has: what its queues hold and what its tasks wait for."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import PurePath
from typing import Any, Protocol


@dataclass(frozen=True, slots=True)
class DebugRequest:
    """What a request for a page says."""

    path: Mapping[str, str] = field(default_factory=dict)
    """The variable parts, by name."""
    query: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class DebugReply:
    """An answer in a form of its own."""

    text: str
    status: int = 200
    media: str = "text/plain"
    headers: Mapping[str, str] = field(default_factory=dict)


DebugPage = Callable[[DebugRequest], Awaitable[Any]]
"""Gives text, a reply, or data that becomes JSON."""

_FRAMES = 8


class DebugQueue(Protocol):
    name: str

    def __len__(self) -> int: ...

    @property
    def delayed(self) -> int: ...

    @property
    def oldest_wait(self) -> float: ...

    @property
    def running(self) -> Mapping[Any, float]: ...


def queues_page(queues: Iterable[DebugQueue]) -> DebugPage:
    """Per queue: how many keys wait, for how long, and which are worked on."""

    async def page(_: DebugRequest) -> Any:
        return {
            queue.name: {
                "depth": len(queue),
                "delayed": queue.delayed,
                "oldestWaitSeconds": round(queue.oldest_wait, 3),
                "runningSeconds": {str(key): round(seconds, 3) for key, seconds in queue.running.items()},
            }
            for queue in queues
        }

    return page


async def tasks_page(_: DebugRequest) -> Any:
    """Per task, from the outside in: where it is."""
    tasks = sorted(asyncio.all_tasks(), key=lambda task: task.get_name())
    return [{"name": task.get_name(), "stack": _stack(task)} for task in tasks]


def _stack(task: asyncio.Task[Any]) -> list[str]:
    """Follows what is awaited: a waiting task's own stack is one frame deep."""
    frames: list[str] = []
    awaited: Any = task.get_coro()
    while (frame := getattr(awaited, "cr_frame", None)) and len(frames) < _FRAMES:
        code = frame.f_code
        frames.append(f"{code.co_qualname} ({PurePath(code.co_filename).name}:{frame.f_lineno})")
        awaited = awaited.cr_await
    return frames
