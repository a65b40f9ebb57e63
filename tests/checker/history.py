"""The audit log as a history: every write that took effect is a version of an object.

The resourceVersions of one etcd are in one order, over all objects, so that versions can be compared exactly. What the
log cannot show is a write whose answer never came, because the API server was killed or etcd did not answer in time.
The next version of such an object is `uncertain`: what it changed cannot be attributed to its author alone.
"""

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import msgspec

Object = dict[str, Any]

AUDIT_POLICY = """\
# Every write with what it wrote; reads, events and tokens are left out or logged without bodies.
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: None
  verbs: [get, list, watch]
- level: Metadata
  resources: [{group: "", resources: [events, secrets, serviceaccounts/token]}, {group: events.k8s.io}]
- level: RequestResponse
"""
FIRST_ERROR = 400
FIRST_SERVER_ERROR = 500
CREATED = 201


@dataclass(frozen=True, slots=True, order=True)
class Ref:
    """An object: `resource` is the plural with its group, such as `machines.vitistack.io`."""

    resource: str
    namespace: str
    name: str

    def __str__(self) -> str:
        return "/".join(part for part in (self.resource, self.namespace, self.name) if part)


@dataclass(frozen=True, slots=True)
class Interval:
    began: datetime
    ended: datetime

    def covers(self, at: datetime, margin: float = 0.0) -> bool:
        return self.began <= at <= self.ended + timedelta(seconds=margin)


@dataclass(frozen=True, slots=True)
class Write:
    """A write as the API server logged it, whatever became of it."""

    ref: Ref
    user: str
    verb: str
    subresource: str
    code: int
    received: datetime
    answered: datetime
    manager: str = ""
    """The field manager that the request named."""
    forced: bool = False

    def __str__(self) -> str:
        what = f"{self.ref}/{self.subresource}" if self.subresource else str(self.ref)
        return f"{self.received:%H:%M:%S.%f} {self.user.rpartition(':')[2]} {self.verb} {what} ({self.code})"


@dataclass(frozen=True, slots=True)
class Version:
    """An object as a write left it."""

    write: Write
    uid: str
    number: int
    """Its resourceVersion."""
    obj: Object | None
    """None: deleted."""
    before: "Version | None" = None
    uncertain: bool = False

    @property
    def ref(self) -> Ref:
        return self.write.ref

    @property
    def user(self) -> str:
        return self.write.user

    @property
    def is_creation(self) -> bool:
        return self.write.code == CREATED

    def get(self, *path: str, default: Any = None) -> Any:
        return value_at(self.obj, path, default)

    @property
    def earlier(self) -> Object | None:
        """The object before this write; None if it did not exist."""
        return self.before.obj if self.before else None

    def __str__(self) -> str:
        return f"{self.write} -> {self.number}"


def value_at(obj: Any, path: Sequence[str], default: Any = None) -> Any:
    for part in path:
        if isinstance(obj, dict) and part in obj:
            obj = obj[part]
        elif isinstance(obj, list) and part.isdigit() and int(part) < len(obj):
            obj = obj[int(part)]
        else:
            return default
    return obj


@dataclass(slots=True)
class History:
    """All writes, and the versions of all objects, each in the order of the server."""

    writes: list[Write] = field(default_factory=list)
    versions: list[Version] = field(default_factory=list)
    lost: frozenset[Ref] = frozenset()
    """Objects whose last write may have been executed or not."""
    _by_ref: dict[Ref, list[Version]] = field(default_factory=dict)

    def add(self, version: Version) -> None:
        self.versions.append(version)
        self._by_ref.setdefault(version.ref, []).append(version)

    def of(self, ref: Ref) -> list[Version]:
        return self._by_ref.get(ref, [])

    def refs(self, resource: str) -> list[Ref]:
        return [ref for ref in self._by_ref if ref.resource == resource]

    def last(self, ref: Ref) -> Version | None:
        versions = self.of(ref)
        return versions[-1] if versions else None

    def by(self, users: Iterable[str]) -> Iterator[Version]:
        wanted = frozenset(users)
        return (one for one in self.versions if one.user in wanted)

    def in_force(self, ref: Ref, since: datetime, until: datetime) -> Iterator[Version]:
        """The versions that somebody could have read at some time of an interval, the newest first."""
        for version in reversed(self.of(ref)):
            if version.write.received > until:
                continue
            yield version
            if version.write.answered < since:
                return


def read(entries: Iterable[Object], outages: Sequence[Interval] = ()) -> History:
    """A history from entries of the audit log; outages are times in which the server could lose what it did."""
    history = History()
    known: dict[Ref, Version] = {}
    lost: set[Ref] = set()
    for order, write, entry in sorted(_ordered(entries), key=lambda one: one[0]):
        history.writes.append(write)
        if write.code >= FIRST_SERVER_ERROR or not write.code:
            lost.add(write.ref)
        if not write.code or write.code >= FIRST_ERROR:
            continue
        before = known.get(write.ref)
        obj, number = _result(entry, before, order[0])
        if obj == {}:  # logged without its content
            continue
        if before and before.number == number and before.obj is not None and obj is not None:
            continue  # the write changed nothing
        alive = before if before and before.obj is not None and write.code != CREATED else None
        since = alive.write.answered if alive else None
        gap = any((since is None or since <= one.ended) and one.began <= write.answered for one in outages)
        version = Version(
            write, value_at(obj, ("metadata", "uid"), ""), number, obj, alive, write.ref in lost or bool(gap)
        )
        lost.discard(write.ref)
        known[write.ref] = version
        history.add(version)
    history.lost = frozenset(lost)
    return history


class AuditReader:
    """Reads an audit log from its present end on, each entry once, also across rotations of the file."""

    def __init__(self, path: Path) -> None:
        self.entries: list[Object] = []
        self._path = path
        self._file = path.open("rb")
        self._file.seek(0, os.SEEK_END)
        self._rest = b""

    def history(self, outages: Sequence[Interval] = ()) -> History:
        self._read()
        if self._path.exists() and os.fstat(self._file.fileno()).st_ino != self._path.stat().st_ino:
            self.close()
            self._file = self._path.open("rb")
            self._read()
        return read(self.entries, outages)

    def close(self) -> None:
        self._file.close()

    def _read(self) -> None:
        *lines, self._rest = (self._rest + self._file.read()).split(b"\n")
        self.entries += (entry for line in lines if (entry := _decoded(line)))


def _decoded(line: bytes) -> Object | None:
    try:
        entry: Object = msgspec.json.decode(line)
    except msgspec.DecodeError:  # incomplete: the server was killed meanwhile
        return None
    return entry if entry["stage"] in ("ResponseComplete", "Panic") else None


def _ordered(entries: Iterable[Object]) -> Iterator[tuple[tuple[int, datetime], Write, Object]]:
    """A deletion has no resourceVersion of its own, and comes after all that was answered before it."""
    newest = 0
    for entry in entries:
        query = parse_qs(urlsplit(entry["requestURI"]).query)
        if entry["verb"] in ("get", "list", "watch") or "dryRun" in query or "objectRef" not in entry:
            continue
        write = _write(entry, query)
        number = int(value_at(entry, ("responseObject", "metadata", "resourceVersion"), 0) or 0)
        newest = max(newest, number)
        yield (newest if _is_deletion(entry) or not number else number, write.answered), write, entry


def _write(entry: Object, query: dict[str, list[str]]) -> Write:
    target = entry["objectRef"]
    resource = ".".join(part for part in (target["resource"], target.get("apiGroup", "")) if part)
    name = target.get("name") or value_at(entry, ("responseObject", "metadata", "name"), "")
    return Write(
        ref=Ref(resource, target.get("namespace", ""), name),
        user=(entry.get("impersonatedUser") or entry["user"]).get("username", ""),
        verb=entry["verb"],
        subresource=target.get("subresource", ""),
        code=value_at(entry, ("responseStatus", "code"), 0),
        received=_time(entry, "requestReceived"),
        answered=_time(entry, "stage"),
        manager=query.get("fieldManager", [""])[0],
        forced=query.get("force", [""])[0] == "true",
    )


def _time(entry: Object, name: str) -> datetime:
    return datetime.fromisoformat(entry[f"{name}Timestamp"])


def _is_deletion(entry: Object) -> bool:
    answer = entry.get("responseObject") or {}
    return entry["verb"] == "delete" and not value_at(answer, ("metadata", "finalizers"))


def _result(entry: Object, before: Version | None, order: int) -> tuple[Object | None, int]:
    """The object that the write left. An answer with metadata only is completed by what was sent."""
    if _is_deletion(entry):
        return None, order
    answer: Object = entry.get("responseObject") or {}
    number = int(value_at(answer, ("metadata", "resourceVersion"), 0) or 0) or order
    if answer.get("kind") != "PartialObjectMetadata":
        return answer, number
    patched = merged(before.obj if before and before.obj else {}, entry.get("requestObject") or {})
    return {**patched, "metadata": answer["metadata"]}, number


def merged(obj: Any, patch: Any) -> Any:
    """A JSON merge patch (RFC 7386)."""
    if not isinstance(patch, dict):
        return patch
    result = dict(obj) if isinstance(obj, dict) else {}
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = merged(result.get(key), value)
    return result
