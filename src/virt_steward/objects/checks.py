"""Checks as users see them: each has a title, a result and the reason for it, in the order in which they are made."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Result = Literal["pass", "fail", "not reached"]


@dataclass(frozen=True, slots=True)
class CheckResult:
    """One check of a chain. The chain ends at the one that decided; those after it were not reached."""

    title: str
    """A short fact, such as `Inside a maintenance window`."""
    result: Result
    reason: str = ""
    decided: bool = False
