"""What an invariant may know besides the history, and what it reports."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from tests.checker.history import History, Interval, Object, Ref, Version

HOME = "virt-steward"
"""The namespace of the controllers."""


def is_always(schedule: str) -> bool:
    """Whether a window or a freeze of the workload is always in force. If not, it begins in half a year."""
    return schedule.startswith("*")


@dataclass(frozen=True, slots=True)
class Replica:
    """Which controller an account belongs to. Each replica has an account of its own."""

    controller: str
    name: str


@dataclass(frozen=True, slots=True)
class MemberAnswer:
    """What a member cluster answered to a list of VMs; `vms` is None if it did not answer, or not with a list."""

    member: str
    at: datetime
    namespace: str
    vms: frozenset[str] | None


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a field must be once the faults have stopped. No value: the field, or the object, must be absent."""

    ref: Ref
    path: tuple[str, ...]
    one_of: tuple[object, ...]


@dataclass(frozen=True, slots=True)
class Facts:
    replicas: Mapping[str, Replica]
    """By user name."""
    tolerance: float = 2.0
    """Seconds by which a view of the cluster may be old: the delay of a watch, with that of the faults."""
    outages: tuple[Interval, ...] = ()
    """Times in which the API server or etcd was stopped, so that a request could be executed late."""
    members: tuple[str, ...] = ()
    answers: tuple[MemberAnswer, ...] = ()
    wanted: tuple[Wanted, ...] = ()
    live: Mapping[Ref, Object | None] = field(default_factory=dict)
    """Objects as they were read in the end, where the history does not know."""
    quiet: Interval | None = None
    """A time in which nothing was to be done."""

    def users(self, *controllers: str) -> frozenset[str]:
        wanted = controllers or {one.controller for one in self.replicas.values()}
        return frozenset(user for user, one in self.replicas.items() if one.controller in wanted)

    def by(self, history: History, *controllers: str) -> Iterator[Version]:
        return history.by(self.users(*controllers))

    def last(self, history: History, ref: Ref) -> Object | None:
        """The object in the end; None if it does not exist."""
        version = history.last(ref)
        return self.live.get(ref, version.obj if version else None)

    def view(self, history: History, ref: Ref, version: Version) -> Iterator[Version]:
        """The versions of an object that the author of a write could have based it on."""
        since = version.write.received - timedelta(seconds=self.tolerance)
        return history.in_force(ref, since, version.write.answered)


@dataclass(frozen=True, slots=True)
class Violation:
    invariant: str
    what: str
    version: Version | None = None

    def __str__(self) -> str:
        return f"{self.invariant}: {self.what}" + (f" [{self.version}]" if self.version else "")


Invariant = Callable[[History, Facts], Iterator[Violation]]


@dataclass(frozen=True, slots=True)
class Verdict:
    violations: tuple[Violation, ...] = ()
    writes: int = field(default=0)
    """Effective writes of the controllers, leases and events aside."""
