"""Whether a controller is well: a pure decision on what was observed of its installation, its Lease and its work."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import TYPE_CHECKING

from virt_steward.objects.document import JsonDocument
from virt_steward.objects.wallclock import rfc3339
from virt_steward.runtime.access import ALL_IN_ONE, NAMESPACE
from virt_steward.runtime.standby import standing_by

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

    from virt_steward.objects.identity import Key

NAMED = 5
"""Rights that a message names; the rest is counted."""


class Verdict(StrEnum):
    """What a health check says; the exit code follows from it."""

    WELL = "well"
    NEEDS_PERSON = "needs a person"
    CANNOT_TELL = "cannot tell"


class LeaderState(StrEnum):
    """Whether somebody does the controller's work."""

    LEADING = "leading"
    STANDING_BY = "standing by"
    NOBODY = "nobody"
    EXPIRED = "expired"
    NO_ELECTION = "no election"
    """It runs without leader election, so no Lease says whether it works."""
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Unread:
    """Something that this person could not read, and why."""

    why: str


class DeploymentState(JsonDocument, frozen=True):
    """A Deployment that runs the controller."""

    name: str
    """With its namespace."""
    replicas: int
    ready: int
    elects: bool = True
    """Whether its replicas elect a leader."""


@dataclass(frozen=True, slots=True)
class LeaseState:
    """The Lease of the controller."""

    holder: str
    """Empty if nobody holds it."""
    since: datetime | None
    renewed: datetime | None
    duration: timedelta
    last_success: datetime | None = None
    """When the leader last reconciled something with success, as it says itself."""
    failing: int = 0
    """Objects whose reconciles fail again and again, as it says itself."""

    def is_current(self, now: datetime) -> bool:
        return bool(self.holder) and self.renewed is not None and now - self.renewed <= self.duration


@dataclass(frozen=True, slots=True)
class RivalOperator:
    """The Go operator that does the same work now."""

    lease: Key
    holder: str


@dataclass(frozen=True, slots=True)
class HealthObservation:
    """What was observed of one controller."""

    controller: str
    lease_key: Key
    deployments: tuple[DeploymentState, ...] | Unread = ()
    lease: LeaseState | Unread | None = None
    rival: RivalOperator | None = None
    missing_crds: tuple[str, ...] = ()
    lacking: tuple[str, ...] | Unread = ()
    """What its account is forbidden to read, and to do with its Lease."""
    account: str = ""
    """The ServiceAccount of its pods."""
    active: int = 0
    """Objects that ask it to act."""
    waiting: int = 0
    """What waits for a person."""
    unread: tuple[str, ...] = ()
    """What else this person could not read."""


class Leading(JsonDocument, frozen=True):
    """Who does the work, as the Lease says."""

    state: LeaderState
    holder: str = ""
    since: datetime | None = None
    renewed: datetime | None = None
    message: str = ""


class ControllerHealth(JsonDocument, frozen=True):
    """The answer for one controller."""

    controller: str
    verdict: Verdict
    installed: bool | None
    """None: unknown."""
    deployments: tuple[DeploymentState, ...]
    leading: Leading
    last_success: datetime | None
    failing: int
    """Objects that fail again and again."""
    waiting_count: int
    problems: tuple[str, ...]
    """What a person has to do, besides what waits."""
    notes: tuple[str, ...]
    unread: tuple[str, ...]
    """What this person may not read."""


def judge(seen: HealthObservation, now: datetime) -> ControllerHealth:
    """Decide by the clock of the API server. What is known to be wrong counts before what is unknown."""
    lease = seen.lease if isinstance(seen.lease, LeaseState) else None
    leading = _leading(seen, now)
    problems = tuple(_problems(seen, leading, lease))
    unread = tuple(_unread(seen, leading))
    works = leading.state in (LeaderState.LEADING, LeaderState.STANDING_BY)
    if problems or seen.waiting:
        verdict = Verdict.NEEDS_PERSON
    else:
        hidden = set(unread) - set(_harmless(seen) if works else ())
        verdict = Verdict.CANNOT_TELL if hidden else Verdict.WELL
    return ControllerHealth(
        seen.controller,
        verdict,
        _installed(seen),
        () if isinstance(seen.deployments, Unread) else seen.deployments,
        leading,
        lease.last_success if lease else None,
        lease.failing if lease else 0,
        seen.waiting,
        problems,
        tuple(_notes(seen, leading)),
        unread,
    )


def judge_all(found: Collection[ControllerHealth]) -> Verdict:
    """The verdict on the installation. If nothing is installed, a person has probably named the wrong cluster."""
    verdicts = {one.verdict for one in found}
    if Verdict.NEEDS_PERSON in verdicts or all(one.installed is False for one in found):
        return Verdict.NEEDS_PERSON
    return Verdict.CANNOT_TELL if Verdict.CANNOT_TELL in verdicts else Verdict.WELL


def _installed(seen: HealthObservation) -> bool | None:
    if seen.deployments and not isinstance(seen.deployments, Unread):
        return True
    if isinstance(seen.lease, LeaseState):
        return True
    return None if isinstance(seen.deployments, Unread) or isinstance(seen.lease, Unread) else False


def _leading(seen: HealthObservation, now: datetime) -> Leading:  # noqa: PLR0911 - a table of states
    if seen.rival and _installed(seen) is not False:
        message = standing_by(seen.rival.lease, seen.rival.holder)
        return Leading(LeaderState.STANDING_BY, seen.rival.holder, message=message)
    lease, key = seen.lease, seen.lease_key
    if isinstance(lease, Unread):
        return Leading(LeaderState.UNKNOWN)
    if lease and lease.is_current(now):
        return Leading(LeaderState.LEADING, lease.holder, lease.since, lease.renewed)
    if lease and lease.holder:
        at = f" at {rfc3339(lease.renewed)}" if lease.renewed else ""
        message = f"{lease.holder} renewed Lease {key} last{at}; it lasts {lease.duration.total_seconds():g} s"
        return Leading(LeaderState.EXPIRED, lease.holder, lease.since, lease.renewed, message)
    if not isinstance(seen.deployments, Unread) and any(not one.elects for one in seen.deployments):
        return Leading(LeaderState.NO_ELECTION, message="it runs without leader election, so no Lease says who works")
    if lease:
        return Leading(LeaderState.NOBODY, message=f"Lease {key} has no holder: the last leader has stopped")
    return Leading(LeaderState.NOBODY, message=f"Lease {key} not found")


def _problems(seen: HealthObservation, leading: Leading, lease: LeaseState | None) -> Iterator[str]:
    installed = _installed(seen)
    if installed is False and seen.active and not seen.rival:
        asking = _counted(seen.active, "object asks", "objects ask")
        yield f"not installed, but {asking} for it; install it: virt-steward manifests"
    if installed and leading.state in (LeaderState.NOBODY, LeaderState.EXPIRED):
        yield f"nobody leads: {leading.message}. {_remedy(seen)}"
    if installed and leading.state is LeaderState.NO_ELECTION:
        yield from _not_ready(seen)
    if installed and seen.missing_crds:
        yield f"CRD not installed: {', '.join(seen.missing_crds)}; apply them: virt-steward crds"
    if not isinstance(seen.lacking, Unread) and seen.lacking:
        named = ", ".join(seen.lacking[:NAMED])
        more = f", and {len(seen.lacking) - NAMED} more" if len(seen.lacking) > NAMED else ""
        yield f"its account is forbidden to {named}{more}; apply its roles again: {_rbac(seen)}"
    if lease and lease.failing:
        fails = _counted(lease.failing, "object fails", "objects fail")
        yield f"{fails} again and again; its log says why: {_logs(seen)}"


def _rbac(seen: HealthObservation) -> str:
    """The command that prints the roles of this installation."""
    namespace = seen.lease_key.namespace
    elsewhere = "" if namespace == NAMESPACE else f" --namespace {namespace}"
    together = f" --{ALL_IN_ONE}" if seen.account.endswith(f"-{ALL_IN_ONE}") else ""
    return f"virt-steward rbac --controllers {seen.controller}{elsewhere}{together} | kubectl apply -f -"


def _remedy(seen: HealthObservation) -> str:
    deployments = () if isinstance(seen.deployments, Unread) else seen.deployments
    if not deployments:
        return f"It runs in no Deployment here; start it, or delete Lease {seen.lease_key} if it is not needed any more"
    if all(one.replicas == 0 for one in deployments):
        return f"Deployment {deployments[0].name} has 0 replicas: scale it up, or delete it if it is not needed"
    states = ", ".join(f"{one.ready} of {one.replicas} pods ready" for one in deployments)
    return f"Deployment {deployments[0].name}: {states}; its log says why: {_logs(seen)}"


def _not_ready(seen: HealthObservation) -> Iterator[str]:
    for one in () if isinstance(seen.deployments, Unread) else seen.deployments:
        if one.ready == 0:
            yield f"Deployment {one.name}: 0 of {one.replicas} pods ready; its log says why: {_logs(seen)}"


def _logs(seen: HealthObservation) -> str:
    if isinstance(seen.deployments, Unread) or not seen.deployments:
        return "that of its process"
    namespace, _, name = seen.deployments[0].name.partition("/")
    return f"kubectl logs -n {namespace} deployment/{name}"


def _notes(seen: HealthObservation, leading: Leading) -> Iterator[str]:
    if seen.rival and leading.state is not LeaderState.STANDING_BY:
        yield f"if it ran, it would be {standing_by(seen.rival.lease, seen.rival.holder)}"
    if leading.state is LeaderState.LEADING and not isinstance(seen.deployments, Unread):
        if not seen.deployments:
            yield "it runs in no Deployment of this namespace"
        for one in seen.deployments:
            if one.ready < one.replicas:
                yield f"Deployment {one.name}: {one.ready} of {one.replicas} pods ready"


def _unread(seen: HealthObservation, leading: Leading) -> Iterator[str]:
    if isinstance(seen.lease, Unread) and leading.state is LeaderState.UNKNOWN:
        yield f"who leads: {seen.lease.why}"
    yield from _harmless(seen)
    yield from seen.unread


def _harmless(seen: HealthObservation) -> tuple[str, ...]:
    """What need not be known of a controller that leads: a Lease is renewed only while it can read everything."""
    parts: Iterable[tuple[str, object]] = (
        ("Deployments", seen.deployments),
        ("the rights of its account", seen.lacking),
    )
    return tuple(f"{title}: {part.why}" for title, part in parts if isinstance(part, Unread))


def _counted(number: int, one: str, many: str = "") -> str:
    return f"{number} {one if number == 1 else many or f'{one}s'}"
