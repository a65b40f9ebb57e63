"""Objects without the fields that the server sets, and digests of their content."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

from virt_steward.objects.canonical import canonical

if TYPE_CHECKING:
    from collections.abc import Mapping

_BOOKKEEPING = frozenset(("generation", "managedFields", "resourceVersion"))
_SET_BY_SERVER = _BOOKKEEPING | {"creationTimestamp", "selfLink", "uid"}


def sanitized(obj: Mapping[str, Any]) -> dict[str, Any]:
    """The object without status and the metadata that the server sets."""
    return _without(obj, _SET_BY_SERVER)


def content_digest(obj: Mapping[str, Any]) -> bytes:
    """A digest of everything but status, managedFields, resourceVersion and generation."""
    return hashlib.sha256(canonical(_without(obj, _BOOKKEEPING))).digest()


def _without(obj: Mapping[str, Any], noise: frozenset[str]) -> dict[str, Any]:
    kept = {name: value for name, value in obj.items() if name != "status"}
    if metadata := kept.get("metadata"):
        kept["metadata"] = {name: value for name, value in metadata.items() if name not in noise}
    return kept
