"""The identity of an object: kind, key, and both together."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, slots=True, order=True)
class Kind:
    """A group and a kind, whichever version is served. The core group is the empty string."""

    group: str
    name: str
    plural: str = field(default="", compare=False)
    """For generated RBAC only; requests use discovery."""

    def __str__(self) -> str:
        return f"{self.name}.{self.group}" if self.group else self.name


class Key(NamedTuple):
    """Namespace and name of an object. A cluster-scoped one has no namespace.

    A tuple, since keys are hashed and compared more often than anything else.
    """

    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}" if self.namespace else self.name

    @classmethod
    def parse(cls, text: str) -> Key:
        """Read `namespace/name` or `name`."""
        namespace, slash, name = text.partition("/")
        return cls(namespace, name) if slash else cls("", namespace)


@dataclass(frozen=True, slots=True, order=True)
class Ref:
    """One object."""

    kind: Kind
    key: Key

    def __str__(self) -> str:
        return f"{self.kind.name} {self.key}"


@dataclass(frozen=True, slots=True)
class Regarding:
    """One object as an Event refers to it, with its uid."""

    ref: Ref
    api_version: str
    uid: str


def kind_of(obj: Mapping[str, Any]) -> Kind:
    group, slash, _ = str(obj["apiVersion"]).partition("/")
    return Kind(group if slash else "", str(obj["kind"]))


def version_of(obj: Mapping[str, Any]) -> str:
    return str(obj["apiVersion"]).rpartition("/")[2]


def key_of(obj: Mapping[str, Any]) -> Key:
    metadata = obj["metadata"]
    return Key(metadata.get("namespace") or "", metadata["name"])


def ref_of(obj: Mapping[str, Any]) -> Ref:
    return Ref(kind_of(obj), key_of(obj))
