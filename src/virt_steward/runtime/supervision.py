"""Tasks that the process cannot do without: if one ends with an error, liveness fails, and the kubelet restarts it.

Most tasks are in a TaskGroup: an error there ends the process at once. This is for those beside it. An unreachable
API server ends none of them: they retry.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import structlog

if TYPE_CHECKING:
    from collections.abc import Coroutine, Iterable

log = structlog.get_logger()


def essential(coroutine: Coroutine[Any, Any, None], name: str) -> asyncio.Task[None]:
    """Start a task that runs until it is cancelled."""
    task = asyncio.create_task(coroutine, name=name)
    task.add_done_callback(_log_failure)
    return task


def failure_of(tasks: Iterable[asyncio.Task[None]]) -> str | None:
    """Which of the tasks have ended with an error, for a liveness check; None if there are none."""
    failed = [f"{task.get_name()} ended: {error!r}" for task in tasks if (error := _error_of(task))]
    return "; ".join(failed) or None


def _error_of(task: asyncio.Task[None]) -> BaseException | None:
    return task.exception() if task.done() and not task.cancelled() else None


def _log_failure(task: asyncio.Task[None]) -> None:
    if error := _error_of(task):
        log.critical("task ended, restart the process", task=task.get_name(), exc_info=error)
