"""Answers for programs (`-o json`): one type per command, from which its JSON Schema is generated."""

from __future__ import annotations

import msgspec


class JsonDocument(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """An answer, or a part of one: names in camelCase, numbers as numbers, and every field always present."""
