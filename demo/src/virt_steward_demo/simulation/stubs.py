"""Small CRDs of kinds of other projects: only the fields that virt-steward reads or writes."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from virt_steward_demo.simulation.schemas import record, string, with_rules

if TYPE_CHECKING:
    from collections.abc import Mapping

    from virt_steward.kube.client import Object
    from virt_steward.objects.identity import Kind
    from virt_steward_demo.simulation.schemas import Schema


@dataclass(frozen=True, slots=True)
class StubVersion:
    """One version of a kind. Without a status it has no status subresource either."""

    name: str
    spec: Schema
    status: Schema | None = None
    required: tuple[str, ...] = ()
    name_pattern: str = ""
    """A pattern that the name of an object must match."""
    rules: tuple[tuple[str, str], ...] = ()
    """CEL expressions on the whole object, with their messages."""
    columns: tuple[tuple[str, str], ...] = ()
    """The columns of `kubectl get`: names and JSON paths."""
    top_level: Mapping[str, Schema] = field(default_factory=dict)
    """Fields outside of spec and status, which a few kinds use."""
    served: bool = True
    storage: bool = True

    def manifest(self) -> dict[str, Any]:
        fields = {"spec": self.spec, **self.top_level} | ({"status": self.status} if self.status else {})
        if self.name_pattern:
            fields["metadata"] = record(name=string(pattern=self.name_pattern))
        schema = record(*self.required, **fields)
        columns = [{"name": name, "type": "string", "jsonPath": path} for name, path in self.columns]
        return {
            "name": self.name,
            "served": self.served,
            "storage": self.storage,
            **({"subresources": {"status": {}}} if self.status else {}),
            **({"additionalPrinterColumns": [*columns, AGE]} if columns else {}),
            "schema": {"openAPIV3Schema": with_rules(schema, dict(self.rules)) if self.rules else schema},
        }


AGE = {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}


@dataclass(frozen=True, slots=True)
class Stub:
    """A kind of another project."""

    kind: Kind
    scope: Literal["Namespaced", "Cluster"]
    versions: tuple[StubVersion, ...]
    short_names: tuple[str, ...] = ()
    conversion: Object | None = None

    def definition(self) -> Object:
        kind = self.kind
        return {
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {"name": f"{kind.plural}.{kind.group}"},
            "spec": {
                "group": kind.group,
                "scope": self.scope,
                "names": {
                    "kind": kind.name,
                    "listKind": f"{kind.name}List",
                    "plural": kind.plural,
                    "singular": kind.name.lower(),
                    **({"shortNames": list(self.short_names)} if self.short_names else {}),
                },
                "versions": [version.manifest() for version in self.versions],
                **({"conversion": self.conversion} if self.conversion else {}),
            },
        }
