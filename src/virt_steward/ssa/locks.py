"""Optimistic locks: a write applies to the object as it was read, or not at all."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

Object = dict[str, Any]

_NEVER_AN_OBJECTS = "1"  # as a resourceVersion it creates or fails; "0", or none, would merge into an existing object


@dataclass(frozen=True, slots=True)
class ObservedAs:
    """The object as it was read, with its managedFields."""

    live: Object

    def __post_init__(self) -> None:
        metadata = self.live["metadata"]
        if not metadata.get("uid") or not metadata.get("resourceVersion"):
            raise ValueError("the object has no uid or resourceVersion: it was not read from a server")


@dataclass(frozen=True, slots=True)
class Absent:
    """The object did not exist."""


@dataclass(frozen=True, slots=True)
class Unlocked:
    """Bypass mode: no precondition, and forced."""

    why: str


Lock = ObservedAs | Absent | Unlocked


@dataclass(frozen=True, slots=True)
class Stale:
    """The object has changed since it was read, so nothing was written: read it again."""

    because: str


def lock_on(live: Object | None) -> ObservedAs | Absent:
    return Absent() if live is None else ObservedAs(live)


def observed_object(lock: Lock) -> Object | None:
    """The live object of a lock, if there is one."""
    return lock.live if isinstance(lock, ObservedAs) else None


def locked(intent: Object, lock: Lock) -> Object:
    """The intent with the lock's preconditions.

    The uid is as important as the resourceVersion: without it, an object that was deleted meanwhile would be created.
    """
    match lock:
        case ObservedAs(live):
            preconditions = {name: live["metadata"][name] for name in ("uid", "resourceVersion")}
        case Absent():
            preconditions = {"resourceVersion": _NEVER_AN_OBJECTS}
        case Unlocked():
            return intent
    return {**intent, "metadata": {**intent["metadata"], **preconditions}}
