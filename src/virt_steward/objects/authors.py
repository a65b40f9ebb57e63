"""Who wrote a field and when, as far as managedFields tells. Pure, and total: what is malformed names nobody."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from virt_steward.objects.fieldpaths import BadFields
from virt_steward.objects.ownership import fields_of, who_owns

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from virt_steward.objects.paths import Pointer

NAMES_SHOWN = 3
LONGEST_NAME = 64


@dataclass(frozen=True, slots=True)
class Authors:
    """The field managers of one value."""

    managers: tuple[str, ...] = ()
    """The last writer first."""
    at: datetime | None = None
    """When the last of them wrote; the server keeps one time for all fields that a manager wrote together."""

    def __str__(self) -> str:
        names = [name[:LONGEST_NAME] for name in self.managers[:NAMES_SHOWN]]
        left_out = len(self.managers) - len(names)
        return ", ".join(names) + (f" and {left_out} more" if left_out > 0 else "")


NOBODY = Authors()


def authors_of(obj: Mapping[str, Any], pointer: Pointer, *, but: Collection[str] = ()) -> Authors:
    """The owners of a value, of a part of it, or of an atomic value around it; `but` are managers that do not count.

    Example: after `kubectl edit` of /spec/mode, which the advisor had applied, kubectl-edit owns it alone. After an
    edit to the value that the advisor wants, both own it. A field that was removed has no owner at all.
    """
    metadata = obj.get("metadata")
    entries = metadata.get("managedFields") if isinstance(metadata, dict) else None
    sound = [entry for entry in entries if _is_sound(entry)] if isinstance(entries, list) else []
    owners = {
        (owner.manager, owner.operation, owner.subresource, owner.api_version)
        for owner in who_owns({**obj, "metadata": {"managedFields": sound}}, pointer)
    }
    times: dict[str, datetime | None] = {}
    for entry in sound:
        name = entry.get("manager", "")
        identity = (name, entry.get("operation", ""), entry.get("subresource", ""), entry.get("apiVersion", ""))
        if identity in owners and name not in but:
            times[name] = _later(times.get(name), _moment(entry.get("time")))
    ordered = sorted(times, key=lambda name: (-_seconds(times[name]), name))
    return Authors(tuple(ordered), times[ordered[0]]) if ordered else NOBODY


def _is_sound(entry: Any) -> bool:
    """Whether an entry of managedFields is what the API promises."""
    if not isinstance(entry, dict) or not isinstance(entry.get("fieldsV1") or {}, dict):
        return False
    texts = (entry.get(name, "") for name in ("manager", "operation", "subresource", "apiVersion"))
    try:
        fields_of(entry)
    except (BadFields, RecursionError):
        return False
    return all(isinstance(text, str) for text in texts)


def _moment(text: Any) -> datetime | None:
    try:
        return datetime.fromisoformat(text).astimezone(UTC) if isinstance(text, str) else None
    except (ValueError, OverflowError):
        return None


def _later(one: datetime | None, other: datetime | None) -> datetime | None:
    return max((moment for moment in (one, other) if moment), default=None)


def _seconds(moment: datetime | None) -> float:
    return moment.timestamp() if moment else float("-inf")
