"""What the running task works on, so that each line of its log says so."""

from __future__ import annotations

from contextvars import ContextVar
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, MutableMapping
    from typing import Any

NOTHING: Mapping[str, str] = {}

_facts: ContextVar[Mapping[str, str]] = ContextVar("facts", default=NOTHING)


def works_on(**facts: str) -> None:
    """Say these from now on, and no earlier ones. What the task starts says them, too."""
    _facts.set(facts)


def said(_logger: object, _method: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """Add them to a line of the log; for structlog."""
    return {**_facts.get(), **event}
