"""The debug pages of every process: its queues and its asyncio tasks."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import PurePath
from typing import Any, Protocol


@dataclass(frozen=True, slots=True)
class DebugRequest:
    """The variables of a request for a debug page."""

    path: Mapping[str, str] = field(default_factory=dict)
    """The variable parts of the path, by name."""
    query: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class DebugReply:
    """A reply with its own status, media type or headers."""

    text: str
    status: int = 200
    media: str = "text/plain"
    headers: Mapping[str, str] = field(default_factory=dict)


DebugPage = Callable[[DebugRequest], Awaitable[Any]]
"""Returns text, a DebugReply, or data for JSON."""

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
    """For each queue: its depth, the longest wait, and the keys in progress."""

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
    """For each asyncio task: its stack, outermost frame first."""
    tasks = sorted(asyncio.all_tasks(), key=lambda task: task.get_name())
    return [{"name": task.get_name(), "stack": _stack(task)} for task in tasks]


def _stack(task: asyncio.Task[Any]) -> list[str]:
    """Follow the awaited coroutines: the stack of a suspended task has only one frame."""
    frames: list[str] = []
    awaited: Any = task.get_coro()
    while (frame := getattr(awaited, "cr_frame", None)) and len(frames) < _FRAMES:
        code = frame.f_code
        frames.append(f"{code.co_qualname} ({PurePath(code.co_filename).name}:{frame.f_lineno})")
        awaited = awaited.cr_await
    return frames
