"""What a write has seen of its object, so that it happens to just that or not at all."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

Object = dict[str, Any]

_NEVER_AN_OBJECTS = "1"  # as a resourceVersion it creates or fails; "0" and none at all would merge into what is there


@dataclass(frozen=True, slots=True)
class SeenAs:
    """The object as it was read, complete with its managedFields."""

    live: Object

    def __post_init__(self) -> None:
        metadata = self.live["metadata"]
        if not metadata.get("uid") or not metadata.get("resourceVersion"):
            raise ValueError("what was seen has a uid and a resourceVersion; this object was not read from a server")


@dataclass(frozen=True, slots=True)
class Absent:
    """There was no such object."""


@dataclass(frozen=True, slots=True)
class Unlocked:
    """Bypass mode: whatever is there, by force."""

    why: str


Lock = SeenAs | Absent | Unlocked


@dataclass(frozen=True, slots=True)
class Stale:
    """The object is no longer as it was seen, so nothing was written: look again."""

    because: str


def lock_on(live: Object | None) -> SeenAs | Absent:
    return Absent() if live is None else SeenAs(live)


def seen_by(lock: Lock) -> Object | None:
    """Return the live object that a lock stands on, if there is one."""
    return lock.live if isinstance(lock, SeenAs) else None


def locked(intent: Object, lock: Lock) -> Object:
    """Return the intent with the lock's preconditions.

    The uid matters as much as the resourceVersion: without it, an object deleted meanwhile would be created anew.
    """
    match lock:
        case SeenAs(live):
            preconditions = {name: live["metadata"][name] for name in ("uid", "resourceVersion")}
        case Absent():
            preconditions = {"resourceVersion": _NEVER_AN_OBJECTS}
        case Unlocked():
            return intent
    return {**intent, "metadata": {**intent["metadata"], **preconditions}}
