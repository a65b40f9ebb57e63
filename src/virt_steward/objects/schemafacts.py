"""Facts from the schema of a CRD: whether fields exist, and which values they allow."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import msgspec

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from virt_steward.objects.paths import Pointer


@dataclass(frozen=True, slots=True)
class SchemaFacts:
    """Of the declared fields, those that the CRD has, with the values of those that list them."""

    enums: Mapping[Pointer, tuple[str, ...]]

    def has(self, path: Pointer) -> bool:
        return path in self.enums

    def enum(self, path: Pointer) -> tuple[str, ...]:
        """The values that the field, or each of its items, may have; none if it is absent or free."""
        return self.enums.get(path, ())


def facts_of(schema: Any, paths: Iterable[Pointer]) -> SchemaFacts:
    """Look the paths up in an OpenAPI schema. A path names fields; where one is a list, it goes on in its items."""
    found = ((path, _at(schema, path.tokens)) for path in paths)
    return SchemaFacts({path: _values(field) for path, field in found if field is not None})


def definition_facts(raw: bytes, paths: Iterable[Pointer]) -> SchemaFacts:
    """The same, of a CustomResourceDefinition."""
    return facts_of(msgspec.json.decode(raw, type=CrdDefinition).schema, paths)


def _at(schema: Any, tokens: tuple[str, ...]) -> Any:
    """The schema of the field at the end of these tokens; None if it has none."""
    if not isinstance(schema, dict):
        return None
    if not tokens:
        return schema
    if "items" in schema:
        return _at(schema["items"], tokens)
    fields = schema.get("properties")
    if isinstance(fields, dict) and tokens[0] in fields:
        return _at(fields[tokens[0]], tokens[1:])
    anything = schema.get("additionalProperties")
    if isinstance(anything, dict):
        return _at(anything, tokens[1:])
    return {} if anything or schema.get("x-kubernetes-preserve-unknown-fields") else None


def _values(field: Any) -> tuple[str, ...]:
    items = field.get("items")
    listed = field.get("enum") or (items.get("enum") if isinstance(items, dict) else ())
    return tuple(str(value) for value in listed) if isinstance(listed, list) else ()


class _Schema(msgspec.Struct, rename={"openapi": "openAPIV3Schema"}):
    openapi: Any = {}


class CrdVersion(msgspec.Struct, rename={"raw_schema": "schema"}):
    """One version of a CustomResourceDefinition; its schema is decoded on demand."""

    name: str
    served: bool
    storage: bool
    raw_schema: msgspec.Raw = msgspec.Raw(b"{}")
    subresources: dict[str, Any] = {}

    @property
    def schema(self) -> Any:
        return msgspec.json.decode(self.raw_schema, type=_Schema).openapi

    @property
    def has_status(self) -> bool:
        """Whether status is a subresource."""
        return "status" in self.subresources


class _CrdSpec(msgspec.Struct):
    versions: list[CrdVersion]


class CrdDefinition(msgspec.Struct):
    """The parts of a CustomResourceDefinition that are used."""

    spec: _CrdSpec

    @property
    def schema(self) -> Any:
        """Of the stored version if it is served, else of the first that is."""
        served = [version for version in self.spec.versions if version.served]
        chosen = next((version for version in served if version.storage), served[0] if served else None)
        return chosen.schema if chosen else {}

    def served(self, name: str) -> CrdVersion | None:
        """The version of this name, if it is served."""
        return next((version for version in self.spec.versions if version.served and version.name == name), None)
