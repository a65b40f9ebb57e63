"""Which kinds the server serves now, in which version and under which path."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec

from virt_steward.kube.answers import count_resources, decoded
from virt_steward.kube.connection import Request
from virt_steward.kube.errors import BadRequest, NotServed, Unavailable, one_line
from virt_steward.objects.identity import Kind

if TYPE_CHECKING:
    from collections.abc import Iterator

    from virt_steward.kube.connection import Connection
    from virt_steward.objects.identity import Key

CUSTOM_RESOURCE_DEFINITION = Kind("apiextensions.k8s.io", "CustomResourceDefinition", "customresourcedefinitions")

NOT_IN_NAMES = frozenset("/%?#\\ ")

# Aggregated discovery takes two requests; v2beta1 is for servers from 1.27 to 1.29.
ACCEPT = ",".join(
    f"application/json;g=apidiscovery.k8s.io;v={version};as=APIGroupDiscoveryList" for version in ("v2", "v2beta1")
)


@dataclass(frozen=True, slots=True)
class Resource:
    """A kind as the server serves it."""

    kind: Kind
    version: str
    plural: str
    namespaced: bool
    subresources: frozenset[str]

    @property
    def api_version(self) -> str:
        return f"{self.kind.group}/{self.version}" if self.kind.group else self.version

    def path(self, namespace: str = "", name: str = "", subresource: str = "") -> str:
        """The URL path. Raises BadRequest for an invalid name, which could lead to another object."""
        for part in (namespace, name):
            if part in {".", ".."} or not NOT_IN_NAMES.isdisjoint(part) or not (part.isascii() and part.isprintable()):
                raise BadRequest(400, "BadRequest", one_line(f"{part!r} is not a valid object name"))
        parts = [f"/apis/{self.kind.group}" if self.kind.group else "/api", self.version]
        if self.namespaced and namespace:
            parts += ["namespaces", namespace]
        parts += [part for part in (self.plural, name, subresource) if part]
        return "/".join(parts)

    def path_of(self, key: Key, subresource: str = "") -> str:
        """The path of one object. Without its name, a delete would delete all objects."""
        if not key.name or (self.namespaced and not key.namespace):
            missing = "namespace" if key.name else "name"
            raise BadRequest(400, "BadRequest", f"{self.kind}: {missing} is required")
        return self.path(key.namespace, key.name, subresource)


class Discovery:
    """The kinds of one server, cached until `forget` or `refresh`."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._core: dict[Kind, tuple[Resource, ...]] = {}
        self._groups: dict[Kind, tuple[Resource, ...]] = {}
        self._stale = True
        self._plurals: frozenset[tuple[str, str]] = frozenset()
        self._fetching = asyncio.Lock()
        self._changed = asyncio.Event()

    async def resource(self, kind: Kind, version: str = "") -> Resource:
        """The kind in that version, else in the server's preferred one. Raises NotServed."""
        if self._stale:
            async with self._fetching:
                if self._stale:  # another caller may have fetched meanwhile
                    await self._fetch_all()
        for resource in self._known(kind):
            if version in ("", resource.version):
                return resource
        named = f"{kind} in version {version}" if version else str(kind)
        raise NotServed(404, "NotServed", f"kind {named} is not served: install its CRD")

    def serves(self, group: str, plural: str) -> bool:
        """Whether a resource of this plural is served, as CRDs are named."""
        return (group, plural) in self._plurals

    async def refresh(self) -> None:
        """Fetch again. `changed` returns if anything differs."""
        async with self._fetching:
            await self._fetch_all()

    def forget(self) -> None:
        """Fetch again before the next answer."""
        self._stale = True

    async def changed(self) -> None:
        """Wait until a refresh finds something different."""
        await self._changed.wait()

    def _known(self, kind: Kind) -> tuple[Resource, ...]:
        return self._groups.get(kind) or self._core.get(kind, ())

    async def _fetch_all(self) -> None:
        if not self._core:  # built-in kinds do not change while the server runs
            self._core = await self._fetch("/api")
        groups = await self._fetch("/apis")
        self._stale = False
        if groups != self._groups:
            self._groups = groups
            self._plurals = frozenset((kind.group, one.plural) for kind, served in groups.items() for one in served)
            self._changed.set()
            self._changed = asyncio.Event()

    async def _fetch(self, path: str) -> dict[Kind, tuple[Resource, ...]]:
        request = Request(
            "discover", "GET", path, what="discover the kinds that are served", headers={"Accept": ACCEPT}
        )
        answer = await self._connection.send(request)
        if (most := self._connection.limits.items) is not None:
            count_resources(answer.body, most, request.what)
        groups: _Groups = decoded(answer.body, _Groups, request.what)
        if groups.kind != "APIGroupDiscoveryList":
            raise Unavailable("the server has no aggregated discovery: Kubernetes 1.27 or newer is required")
        found: dict[Kind, list[Resource]] = {}
        for resource in _resources(groups):
            found.setdefault(resource.kind, []).append(resource)
        return {kind: tuple(resources) for kind, resources in found.items()}


def _resources(groups: _Groups) -> Iterator[Resource]:
    """In the order of the server: preferred versions first."""
    for group in groups.items:
        for version in group.versions:
            for resource in version.resources:
                yield Resource(
                    Kind(group.metadata.name, resource.response_kind.kind),
                    version.version,
                    resource.resource,
                    namespaced=resource.scope == "Namespaced",
                    subresources=frozenset(sub.subresource for sub in resource.subresources),
                )


class _GroupMetadata(msgspec.Struct):
    name: str = ""


class _ResponseKind(msgspec.Struct):
    kind: str = ""


class _Subresource(msgspec.Struct):
    subresource: str


class _DiscoveredResource(msgspec.Struct, rename="camel"):
    resource: str
    scope: str
    response_kind: _ResponseKind = msgspec.field(default_factory=_ResponseKind)
    subresources: list[_Subresource] = []


class _DiscoveredVersion(msgspec.Struct):
    version: str
    resources: list[_DiscoveredResource] = []


class _Group(msgspec.Struct):
    metadata: _GroupMetadata = msgspec.field(default_factory=_GroupMetadata)
    versions: list[_DiscoveredVersion] = []


class _Groups(msgspec.Struct):
    kind: str = ""
    items: list[_Group] = []
