"""Reads the audit log of the API server: who sent which request, and the response code."""

import os
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec

LONGEST_ENTRY = 64 * 1024
CONTROL_PLANE = ("system:kube-controller-manager", "system:apiserver")


@dataclass(frozen=True, slots=True)
class Mark:
    """A position in the log and the time it was taken. The server rotates the file when it is too long."""

    file: int
    offset: int
    time: datetime


BEGINNING = Mark(0, 0, datetime.min.replace(tzinfo=UTC))
"""The start of the current file."""


@dataclass(frozen=True, slots=True)
class Request:
    """An answered request, or a watch that has started (stage ResponseStarted) or ended."""

    user: str
    verb: str
    group: str
    resource: str
    subresource: str
    namespace: str
    name: str
    code: int
    stage: str
    received: datetime
    time: datetime
    user_agent: str
    uri: str

    @property
    def is_write(self) -> bool:
        """Whether it may change something. To ask who one is, is a create of which nothing is stored."""
        return self.verb not in {"get", "list", "watch"} and self.resource != "selfsubjectreviews"


class AuditLog:
    """Reads the log of one API server.

    The server writes an entry before it sends the end of the answer, so every answered request is in the log. Others
    can see the effect of a request before that: what arrived before a mark does not count, even if it is logged later.
    """

    def __init__(self, path: Path) -> None:
        self._path = path

    def mark(self) -> Mark:
        """The current end of the log, after the last complete entry."""
        now = datetime.now(UTC)
        with self._path.open("rb") as log:
            size = log.seek(0, os.SEEK_END)
            tail = min(size, LONGEST_ENTRY)
            log.seek(-tail, os.SEEK_END)
            return Mark(os.fstat(log.fileno()).st_ino, size - tail + log.read(tail).rfind(b"\n") + 1, now)

    def since(self, mark: Mark) -> list[Request]:
        """The requests that arrived after the mark, without those of the control plane itself, which come at any time.

        For example, kube-controller-manager creates a ServiceAccount in each new namespace. Raises StopIteration if the
        file of the mark has been deleted by the rotation.
        """
        with self._path.open("rb") as log:
            if mark.file in (BEGINNING.file, os.fstat(log.fileno()).st_ino):
                log.seek(mark.offset)
                entries = log.read()
            else:
                entries = self._rest(mark) + log.read()
        lines = entries.split(b"\n")
        found = (_request(msgspec.json.decode(line)) for line in lines[:-1])  # the last line is empty or incomplete
        return [
            one for one in found if one.user not in CONTROL_PLANE and (one.received >= mark.time or one.verb == "watch")
        ]

    def _rest(self, mark: Mark) -> bytes:
        """The rest of the rotated file of the mark, which has another name now."""
        kept = self._path.parent.glob(f"{self._path.stem}-*{self._path.suffix}")
        return next(one for one in kept if one.stat().st_ino == mark.file).read_bytes()[mark.offset :]


def _request(entry: dict[str, Any]) -> Request:
    target = entry.get("objectRef", {})
    return Request(
        user=entry.get("impersonatedUser", entry["user"]).get("username", ""),  # without a valid token there is no name
        verb=entry["verb"],
        group=target.get("apiGroup", ""),
        resource=target.get("resource", ""),
        subresource=target.get("subresource", ""),
        namespace=target.get("namespace", ""),
        name=target.get("name", ""),
        code=entry.get("responseStatus", {}).get("code", 0),
        stage=entry["stage"],
        received=datetime.fromisoformat(entry["requestReceivedTimestamp"]),
        time=datetime.fromisoformat(entry["stageTimestamp"]),
        user_agent=entry.get("userAgent", ""),
        uri=entry["requestURI"],
    )
