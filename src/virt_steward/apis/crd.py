"""CustomResourceDefinitions as records, and their manifests."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from virt_steward.apis.schema import VALIDATIONS, schema_of, validations

if TYPE_CHECKING:
    from msgspec import Meta

    from virt_steward.apis.schema import ApiStruct
    from virt_steward.objects.identity import Kind

GROUP = "apiextensions.k8s.io"


@dataclass(frozen=True, slots=True)
class Column:
    """What `kubectl get` shows."""

    name: str
    type: Literal["boolean", "date", "integer", "number", "string"]
    path: str
    description: str = ""
    wide: bool = False
    """Shown with `-o wide` only."""

    def manifest(self) -> dict[str, Any]:
        shown: dict[str, Any] = {"name": self.name, "type": self.type, "jsonPath": self.path}
        if self.description:
            shown["description"] = self.description
        return shown | ({"priority": 1} if self.wide else {})


AGE = Column("Age", "date", ".metadata.creationTimestamp")


@dataclass(frozen=True, slots=True)
class ApiVersion:
    """One version of a kind. Exactly one of them is the one in which objects are stored."""

    name: str
    spec: type[ApiStruct]
    status: type[ApiStruct]
    columns: tuple[Column, ...] = (AGE,)
    storage: bool = True
    rules: tuple[Meta, ...] = ()
    """What must hold for the object as a whole, its name included."""

    def manifest(self, description: str) -> dict[str, Any]:
        return {
            "name": self.name,
            "served": True,
            "storage": self.storage,
            "subresources": {"status": {}},
            "additionalPrinterColumns": [column.manifest() for column in self.columns],
            "schema": {"openAPIV3Schema": self._schema(description)},
        }

    def _schema(self, description: str) -> dict[str, Any]:
        spec, status = schema_of(self.spec), schema_of(self.status)
        schema: dict[str, Any] = {
            "description": description,
            "type": "object",
            "properties": {
                "apiVersion": {"description": "Group and version of this object.", "type": "string"},
                "kind": {"description": "The kind of this object.", "type": "string"},
                "metadata": {"type": "object"},
                "spec": {"description": "What is wanted.", **spec},
                "status": {"description": "What was last seen and done.", **status},
            },
        }
        if "required" in spec:
            schema["required"] = ["spec"]
        if self.rules:
            schema[VALIDATIONS] = validations(self.rules)
        return schema


@dataclass(frozen=True, slots=True)
class Crd:
    """A kind of ours."""

    kind: Kind
    scope: Literal["Namespaced", "Cluster"]
    description: str
    versions: tuple[ApiVersion, ...]
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()

    def manifest(self) -> dict[str, Any]:
        names = {
            "kind": self.kind.name,
            "listKind": f"{self.kind.name}List",
            "plural": self.kind.plural,
            "singular": self.kind.name.lower(),
            "shortNames": list(self.short_names),
            "categories": list(self.categories),
        }
        return {
            "apiVersion": f"{GROUP}/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {"name": f"{self.kind.plural}.{self.kind.group}"},
            "spec": {
                "group": self.kind.group,
                "scope": self.scope,
                "names": {name: value for name, value in names.items() if value},
                "versions": [version.manifest(self.description) for version in self.versions],
            },
        }
