"""Facts about the work of the running asyncio task, which are added to each of its log lines."""

from __future__ import annotations

from contextvars import ContextVar
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, MutableMapping
    from typing import Any

NO_FACTS: Mapping[str, str] = {}

_facts: ContextVar[Mapping[str, str]] = ContextVar("facts", default=NO_FACTS)


def bind(**facts: str) -> None:
    """Add these facts to the log lines of this task, and of tasks that it starts, instead of earlier ones."""
    _facts.set(facts)


def add_facts(_logger: object, _method: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """Add the facts to one log line: a processor for structlog."""
    return {**_facts.get(), **event}
