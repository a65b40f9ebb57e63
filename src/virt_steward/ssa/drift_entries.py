"""One drifted field as data: from the live object with its managedFields, the field, and its two values. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from virt_steward.apis.drift import LONGEST_MANAGERS, LONGEST_PATH, LONGEST_VALUE, DriftEntry
from virt_steward.objects.authors import authors_of
from virt_steward.objects.diff import ABSENT
from virt_steward.objects.field_changes import value_text
from virt_steward.objects.masks import masked_by_name

if TYPE_CHECKING:
    from collections.abc import Mapping

    from virt_steward.objects.paths import Pointer
    from virt_steward.ssa.managers import FieldManager


@dataclass(frozen=True, slots=True)
class FieldDrift:
    """One live value that differs from the desired one."""

    path: str
    """As a JSON pointer into the live object."""
    by: tuple[str, ...]
    """Other field managers that own it; none if the value was removed or only the intent has changed."""
    is_own: bool = False
    """Whether the manager itself owns the live value."""
    entry: DriftEntry | None = None
    """The values, who set the live one, and when."""

    @property
    def is_foreign(self) -> bool:
        """Whether others caused it; otherwise only the intent has changed."""
        return bool(self.by) or not self.is_own

    @property
    def cause(self) -> str:
        """What stays the same while others change the value again and again."""
        return f"{self.path} (set by {', '.join(self.by)})" if self.by else self.path

    def __str__(self) -> str:
        return self.entry.sentence("should be") if self.entry else self.cause


def drift_entry(
    live: Mapping[str, Any], pointer: Pointer, found: Any, planned: Any, manager: FieldManager
) -> DriftEntry:
    """Say of one field what it is, what it should be, who changed it and when; values come masked by kind, or ABSENT.

    Others write values, names and paths of map keys, so all of them are bounded.
    """
    authors = authors_of(live, pointer, but=(manager.name,))
    name = pointer.tokens[-1] if pointer.tokens else ""
    return DriftEntry(
        path=_cut(str(pointer), LONGEST_PATH),
        planned=_text(planned, name),
        live=_text(found, name),
        manager=_cut(str(authors), LONGEST_MANAGERS),
        time=authors.at,
    )


def _text(value: Any, name: str) -> str | None:
    return None if value is ABSENT else _cut(value_text(masked_by_name(value, name)), LONGEST_VALUE)


def _cut(text: str, longest: int) -> str:
    """On one line, without control characters, and not longer than this."""
    line = "".join(char if char.isprintable() else "?" for char in " ".join(text[: longest * 2].split()))
    return line if len(line) <= longest else f"{line[: longest - 1]}…"
