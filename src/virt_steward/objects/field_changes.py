"""The fields that change between two states of an object, as data: for JSON, records and lists of changes."""

from __future__ import annotations

import zlib
from base64 import b64decode
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote_to_bytes

import msgspec

from virt_steward.objects.diff import ABSENT, changes

if TYPE_CHECKING:
    from collections.abc import Mapping

SHOWN = 60
"""Characters of a value in a line of text."""
IDENTITY = frozenset(("/apiVersion", "/kind", "/metadata/name", "/metadata/namespace"))
LARGEST_FILE = 1 << 20
"""Bytes of an embedded file that are decompressed at most; a larger one is not shown by its lines."""
_GZIP = b"\x1f\x8b"


class FieldChange(msgspec.Struct, frozen=True, omit_defaults=True):
    """One field: its live and its planned value, each left out if there is none. Secrets are masked."""

    path: str
    """As a JSON pointer, which ignore-fields takes."""
    live: Any = msgspec.UNSET
    planned: Any = msgspec.UNSET

    def __str__(self) -> str:
        if self.live is msgspec.UNSET:
            return f"{self.assignment} (added)"
        if self.planned is msgspec.UNSET:
            return f"{self.path}: {_text(self.live)} (removed)"
        return f"{self.path}: {_text(self.live)} -> {_text(self.planned)}"

    @property
    def assignment(self) -> str:
        """The planned value alone, for an object that is new."""
        return f"{self.path}: {_text(self.planned)}"


def field_changes(live: Mapping[str, Any] | None, planned: Mapping[str, Any] | None) -> tuple[FieldChange, ...]:
    """List what changes, in the order of the planned object. None is an object that does not exist.

    Of a file that is embedded as a data URL, the lines that differ: nobody can review base64. What identifies an object
    is no change of it.
    """
    found = (one for one in changes(live, planned) if str(one.pointer) not in IDENTITY)
    return tuple(_change(str(one.pointer), _value(one.before), _value(one.after)) for one in found)


def _change(path: str, live: Any, planned: Any) -> FieldChange:
    before, after = _lines_of_file(live), _lines_of_file(planned)
    if before is None or after is None or set(before) == set(after):
        return FieldChange(path, live, planned)
    kept = set(before) & set(after)
    removed, added = ("\n".join(line for line in lines if line not in kept) for lines in (before, after))
    return FieldChange(path, removed or msgspec.UNSET, added or msgspec.UNSET)


def _lines_of_file(value: Any) -> list[str] | None:
    """Decode the text of a data URL, compressed or not. None if it is something else; no lines if there is none."""
    if value is msgspec.UNSET:
        return []
    if not isinstance(value, str) or not value.startswith("data:"):
        return None
    kind, _, content = value.partition(",")
    try:
        raw = b64decode(content, validate=True) if kind.endswith(";base64") else unquote_to_bytes(content)
        return _decompressed(raw).decode().splitlines()
    except (ValueError, zlib.error):
        return None


def _decompressed(raw: bytes) -> bytes:
    if not raw.startswith(_GZIP):
        return raw
    reader = zlib.decompressobj(wbits=31)
    content = reader.decompress(raw, LARGEST_FILE)
    if not reader.eof:
        raise ValueError("the file is too large, or cut")
    return content


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
