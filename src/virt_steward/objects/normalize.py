"""Objects without what the server adds, and digests that stay the same while nothing of substance changes."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

from virt_steward.objects.canonical import canonical
from virt_steward.objects.extract import extract

if TYPE_CHECKING:
    from collections.abc import Mapping

    from virt_steward.objects.fieldsets import FieldSet

_BOOKKEEPING = frozenset(("generation", "managedFields", "resourceVersion"))
_SET_BY_SERVER = _BOOKKEEPING | {"creationTimestamp", "selfLink", "uid"}


def sanitized(obj: Mapping[str, Any], *, keep_status: bool = False) -> dict[str, Any]:
    """Return the object as its author might have written it."""
    return _without(obj, _SET_BY_SERVER, keep_status=keep_status)


def content_digest(obj: Mapping[str, Any]) -> bytes:
    """Digest everything but status, managedFields, resourceVersion and generation."""
    return hashlib.sha256(canonical(_without(obj, _BOOKKEEPING, keep_status=False))).digest()


def managed_hash(obj: Mapping[str, Any], fields: FieldSet) -> str:
    """Hash the values of these fields, as `sha256:` and hex digits."""
    return f"sha256:{hashlib.sha256(canonical(extract(obj, fields))).hexdigest()}"


def _without(obj: Mapping[str, Any], noise: frozenset[str], *, keep_status: bool) -> dict[str, Any]:
    kept = {name: value for name, value in obj.items() if keep_status or name != "status"}
    if metadata := kept.get("metadata"):
        kept["metadata"] = {name: value for name, value in metadata.items() if name not in noise}
    return kept
