"""The verbs of the Kubernetes API: get, list, create, delete, merge patch, JSON patch and apply."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeVar, overload

import msgspec

from virt_steward.kube.answers import count_items, decoded, decoded_items
from virt_steward.kube.connection import REQUEST_TIMEOUT, ConnectionPool, Request
from virt_steward.kube.errors import InvalidAnswer, NotFound, NotServed
from virt_steward.objects.identity import Key, Kind, Ref, ref_of, version_of

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping, Sequence

    from virt_steward.kube.connection import Connection, Permit, Response
    from virt_steward.kube.discovery import Discovery

Object = dict[str, Any]
T = TypeVar("T")

PAGE = 500
ANY_AGE = {"resourceVersion": "1", "resourceVersionMatch": "NotOlderThan"}
METADATA_ONLY = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
METADATA_ONLY_LIST = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
APPLY = "application/apply-patch+yaml"  # JSON is YAML
MERGE_PATCH = "application/merge-patch+json"
JSON_PATCH = "application/json-patch+json"


@dataclass(frozen=True, slots=True)
class Selection:
    """Which objects of a kind. Empty means all."""

    namespace: str = ""
    labels: str = ""
    fields: str = ""
    metadata_only: bool = False

    def query(self) -> dict[str, str]:
        return {
            name: value for name, value in (("labelSelector", self.labels), ("fieldSelector", self.fields)) if value
        }

    @classmethod
    def one(cls, key: Key, *, metadata_only: bool = False) -> Selection:
        return cls(key.namespace, fields=f"metadata.name={_escaped(key.name)}", metadata_only=metadata_only)


EVERYTHING = Selection()


@dataclass(frozen=True, slots=True)
class ApplyResult:
    """The object as the server answers an apply, and whether it was created."""

    object: Object
    created: bool


@dataclass(frozen=True, slots=True)
class Caller:
    """Who sends requests, and within which limits."""

    agent: str = ""
    """The User-Agent, if not the connection's own."""
    timeout: float = REQUEST_TIMEOUT
    pool: ConnectionPool = ConnectionPool.REQUESTS
    permit: Permit | None = None
    """Checked before each write; without one, every write is sent."""


ANYONE = Caller()


class Reader:
    """The verbs that change nothing."""

    def __init__(self, connection: Connection, discovery: Discovery, caller: Caller = ANYONE) -> None:
        self.connection = connection
        self.discovery = discovery
        self._caller = caller

    @overload
    async def get(self, ref: Ref) -> Object: ...
    @overload
    async def get(self, ref: Ref, into: type[T]) -> T: ...
    async def get(self, ref: Ref, into: Any = dict) -> Any:
        """One object. Raises NotFound if it does not exist, NotServed if its kind is not served."""
        resource = await self.discovery.resource(ref.kind)
        request = Request("get", "GET", resource.path_of(ref.key), what=f"get {ref}")
        return decoded((await self._send(request)).body, into, request.what)

    async def pages(
        self, kind: Kind, selection: Selection = EVERYTHING, *, page: int = PAGE, may_lag: bool = False
    ) -> AsyncIterator[ListPage]:
        """A list, page by page, so that memory holds one page at a time.

        With `may_lag`, the server answers from its cache at once, without a consistent read, which takes longer.
        """
        resource = await self.discovery.resource(kind)
        query = {**selection.query(), "limit": str(page)}
        request = Request(
            "list",
            "GET",
            resource.path(selection.namespace),
            what=f"list {kind}" + (f" in {selection.namespace}" if selection.namespace else ""),
            query=query | (ANY_AGE if may_lag else {}),
            headers={"Accept": METADATA_ONLY_LIST} if selection.metadata_only else {},
        )
        limits = self.connection.limits
        items = 0
        for _ in range(limits.pages):
            body = (await self._send(request)).body
            if limits.items is not None:
                items = count_items(body, limits.items, request.what, before=items)
                await asyncio.sleep(0)  # a long page takes some milliseconds to decode
            part: ListPage = decoded(body, ListPage, request.what)
            if not part.kind.endswith("List"):  # another JSON, such as the refusal of a login page, is no empty list
                raise InvalidAnswer(request.what, detail="it is not a list")
            yield part
            if not part.metadata.continue_:
                return
            request = replace(request, query={**query, "continue": part.metadata.continue_})
        raise InvalidAnswer(request.what, f"the list has more than {limits.pages} pages")

    @overload
    async def list(self, kind: Kind, selection: Selection = ..., *, may_lag: bool = ...) -> list[Object]: ...
    @overload
    async def list(self, kind: Kind, selection: Selection, into: type[T], *, may_lag: bool = ...) -> list[T]: ...
    async def list(
        self, kind: Kind, selection: Selection = EVERYTHING, into: Any = dict, *, may_lag: bool = False
    ) -> list[Any]:
        pages = self.pages(kind, selection, may_lag=may_lag)
        return [one async for page in pages for one in await decoded_items(page.items, into, f"list {kind}")]

    async def raw(self, path: str, *, longest: int | None = None) -> bytes:
        """The body of a path that is no resource: /version, /readyz. `longest` limits its bytes."""
        return (await self._send(Request("get", "GET", path, what=f"get {path}", longest=longest))).body

    async def _send(self, request: Request) -> Response:
        caller = self._caller
        agent = {"User-Agent": caller.agent} if caller.agent else {}
        try:
            return await self.connection.send(
                replace(
                    request,
                    headers={**request.headers, **agent},
                    timeout=min(request.timeout, caller.timeout),
                    pool=caller.pool,
                )
            )
        except NotFound as error:
            if error.reason:  # the server serves the kind, and names the object
                raise
            self.discovery.forget()  # "404 page not found": the kind is no longer served
            raise NotServed(error.code, "NotServed", str(error)) from None


class Client(Reader):
    """A reader that can also write, as long as its caller's permit allows."""

    async def create(self, obj: Mapping[str, Any], *, subresource: str = "", dry_run: bool = False) -> Object:
        """POST; a subresource (a ServiceAccount's `token`) is created below the object that `obj` names."""
        ref = ref_of(obj)
        if subresource:
            resource = await self.discovery.resource(_OWNERS.get(ref.kind, ref.kind))
            path = resource.path_of(ref.key, subresource)
        else:
            resource = await self.discovery.resource(ref.kind, version_of(obj))
            path = resource.path(ref.key.namespace)
        answer = await self._write("create", "POST", path, f"create {ref}", body=obj, query=_dry(dry_run))
        return _object(answer)

    async def delete(self, ref: Ref, *, uid: str = "", resource_version: str = "") -> None:
        """Delete; uid and resourceVersion are preconditions."""
        preconditions = {k: v for k, v in (("uid", uid), ("resourceVersion", resource_version)) if v}
        options = {"apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": "Background"}
        body = {**options, "preconditions": preconditions} if preconditions else options
        resource = await self.discovery.resource(ref.kind)
        await self._write("delete", "DELETE", resource.path_of(ref.key), f"delete {ref}", body=body)

    async def merge_patch(  # noqa: PLR0913 - each is an option of the API
        self,
        ref: Ref,
        patch: Mapping[str, Any],
        *,
        subresource: str = "",
        manager: str = "",
        dry_run: bool = False,
        brief: bool = False,
    ) -> Object:
        """RFC 7386. A `metadata.resourceVersion` in the patch is a precondition. A `brief` answer has metadata only."""
        resource = await self.discovery.resource(ref.kind)
        answer = await self._write(
            "patch",
            "PATCH",
            resource.path_of(ref.key, subresource),
            f"patch {ref}",
            body=patch,
            media=MERGE_PATCH,
            query=_dry(dry_run) | _named(manager),
            accept=METADATA_ONLY if brief else "",
        )
        return _object(answer)

    async def json_patch(
        self,
        ref: Ref,
        operations: Sequence[Mapping[str, Any]],
        *,
        subresource: str = "",
        manager: str = "",
        dry_run: bool = False,
    ) -> Object:
        """RFC 6902. A `test` operation that fails is Invalid."""
        resource = await self.discovery.resource(ref.kind)
        path = resource.path_of(ref.key, subresource)
        answer = await self._write(
            "patch",
            "PATCH",
            path,
            f"patch {ref}",
            body=operations,
            media=JSON_PATCH,
            query=_dry(dry_run) | _named(manager),
        )
        return _object(answer)

    async def apply(
        self, obj: Mapping[str, Any], *, manager: str, force: bool = False, dry_run: bool = False, subresource: str = ""
    ) -> ApplyResult:
        """Server-side apply of a manager's complete intent. A resourceVersion (and uid) in it is a precondition."""
        ref = ref_of(obj)
        resource = await self.discovery.resource(ref.kind, version_of(obj))
        answer = await self._write(
            "dryrun" if dry_run else "apply",
            "PATCH",
            resource.path_of(ref.key, subresource),
            f"{'preview' if dry_run else 'apply'} {ref}",
            body=obj,
            media=APPLY,
            query=_dry(dry_run) | _named(manager) | {"force": "true" if force else "false"},
        )
        return ApplyResult(_object(answer), created=answer.status == 201)

    async def _write(  # noqa: PLR0913 - one place for what the five verbs share
        self,
        verb: str,
        method: str,
        path: str,
        what: str,
        *,
        body: Any,
        media: str = "application/json",
        query: Mapping[str, str] | None = None,
        accept: str = "",
    ) -> Response:
        query = query or {}
        permit = None if "dryRun" in query else self._caller.permit
        return await self._send(
            Request(
                verb,
                method,
                path,
                what=what,
                query=query,
                headers={"Content-Type": media, **({"Accept": accept} if accept else {})},
                body=msgspec.json.encode(body),
                timeout=REQUEST_TIMEOUT if permit is None else permit.remaining(),
                permit=permit,
            )
        )


class _ListMeta(msgspec.Struct, rename={"continue_": "continue", "resource_version": "resourceVersion"}):
    continue_: str = ""
    resource_version: str = ""


class ListPage(msgspec.Struct):
    """A page of a list, with items that are not decoded yet."""

    kind: str = ""
    metadata: _ListMeta = msgspec.field(default_factory=_ListMeta)
    listed: list[msgspec.Raw] | None = msgspec.field(default=None, name="items")

    @property
    def items(self) -> list[msgspec.Raw]:
        return self.listed or []  # an empty list of metadata alone comes as null


# A TokenRequest is posted below its ServiceAccount.
_OWNERS = {Kind("authentication.k8s.io", "TokenRequest"): Kind("", "ServiceAccount")}


def _object(answer: Response) -> Object:
    found: Object = decoded(answer.body, dict[str, Any], "write")
    return found


def _escaped(value: str) -> str:
    """The value of a field selector: a comma or an equals sign in it would otherwise end it."""
    return value.replace("\\", r"\\").replace(",", r"\,").replace("=", r"\=")


def _dry(dry_run: bool) -> dict[str, str]:
    return {"dryRun": "All"} if dry_run else {}


def _named(manager: str) -> dict[str, str]:
    return {"fieldManager": manager} if manager else {}
