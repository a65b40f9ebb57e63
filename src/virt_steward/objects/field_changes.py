"""The fields that change between two states of an object, as data: for JSON, records and lists of changes."""

from __future__ import annotations

from base64 import b64decode
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote_to_bytes

import msgspec

from virt_steward.objects.diff import ABSENT, changes

if TYPE_CHECKING:
    from collections.abc import Mapping

SHOWN = 60
"""Characters of a value in a line of text."""


class FieldChange(msgspec.Struct, frozen=True, omit_defaults=True):
    """One field: its live and its planned value, each left out if there is none. Secrets are masked."""

    path: str
    live: Any = msgspec.UNSET
    planned: Any = msgspec.UNSET

    def __str__(self) -> str:
        if self.live is msgspec.UNSET:
            return f"{self.path}: {_text(self.planned)} (added)"
        if self.planned is msgspec.UNSET:
            return f"{self.path}: {_text(self.live)} (removed)"
        return f"{self.path}: {_text(self.live)} -> {_text(self.planned)}"


def field_changes(live: Mapping[str, Any] | None, planned: Mapping[str, Any] | None) -> tuple[FieldChange, ...]:
    """List what changes, in the order of the planned object. None is an object that does not exist.

    Of a file that is embedded as a data URL, the lines that differ: nobody can review base64.
    """
    return tuple(_change(str(one), _value(one.before), _value(one.after)) for one in changes(live, planned))


def _change(path: str, live: Any, planned: Any) -> FieldChange:
    before, after = _lines_of_file(live), _lines_of_file(planned)
    if before is None or after is None or set(before) == set(after):
        return FieldChange(path, live, planned)
    removed = "\n".join(line for line in before if line not in after)
    added = "\n".join(line for line in after if line not in before)
    return FieldChange(path, removed or msgspec.UNSET, added or msgspec.UNSET)


def _lines_of_file(value: Any) -> list[str] | None:
    """Decode the text of a data URL; None if it is something else, such as a compressed file."""
    if not isinstance(value, str) or not value.startswith("data:"):
        return None
    kind, _, content = value.partition(",")
    try:
        raw = b64decode(content, validate=True) if kind.endswith(";base64") else unquote_to_bytes(content)
        return raw.decode().splitlines()
    except ValueError:
        return None


def shortened(change: FieldChange, longest: int) -> FieldChange:
    """Cut values that are longer, such as the content of a file, down to the start of their text."""
    return FieldChange(change.path, _cut(change.live, longest), _cut(change.planned, longest))


def _value(value: Any) -> Any:
    return msgspec.UNSET if value is ABSENT else value


def _cut(value: Any, longest: int) -> Any:
    if value is msgspec.UNSET or len(text := value_text(value)) <= longest:
        return value
    return f"{text[: longest - 1]}…"


def _text(value: Any) -> str:
    text = value_text(value)
    return text if len(text) <= SHOWN else f"{text[: SHOWN - 1]}…"


def value_text(value: Any) -> str:
    """Write a value as people do: a text as it is, all else as JSON."""
    return value if isinstance(value, str) and value else msgspec.json.encode(value).decode()
