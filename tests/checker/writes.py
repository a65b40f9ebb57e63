"""What holds for the writes of every controller: one leader, nothing twice, silence at the end."""

from collections.abc import Iterator
from datetime import timedelta

from tests.checker.advisor import CONFIGS, OURS, is_target, owners
from tests.checker.approver import approvals
from tests.checker.facts import HOME, Facts, Replica, Violation
from tests.checker.history import History, Object, Ref, Version, Write, value_at

LEASES = "leases.coordination.k8s.io"
EVENTS = ("events", "events.events.k8s.io")
LATE = 1.0
"""Seconds after a stopped server goes on in which it may execute what was sent in time."""
FIRST_ERROR = 400


def is_effective(write: Write) -> bool:
    return 0 < write.code < FIRST_ERROR and write.ref.resource not in (LEASES, *EVENTS)


def leaders_write_alone(history: History, facts: Facts) -> Iterator[Violation]:
    """Each write is by the replica that has the Lease, and within its duration after the last renewal."""
    leases = {
        controller: history.of(Ref(LEASES, HOME, f"virt-steward-{controller}"))
        for controller in {one.controller for one in facts.replicas.values()}
    }
    for write in history.writes:
        replica = facts.replicas.get(write.user)
        if replica is None or not is_effective(write) or any(one.covers(write.received, LATE) for one in facts.outages):
            continue
        problem = _trespass(leases[replica.controller], facts, replica, write)
        if problem:
            yield Violation("leader", f"{replica.controller} {replica.name} {problem}: {write}")


def _trespass(lease: list[Version], facts: Facts, replica: Replica, write: Write) -> str:
    """Renewals that were answered after the write was received may be of either side, and are not counted."""
    before = [one for one in lease if one.write.received <= write.received]
    if not before:
        return "wrote before anybody had the Lease"
    last = before[-1]
    if facts.replicas.get(last.user) != replica or not last.get("spec", "holderIdentity"):
        others = [one for one in before if one.write.answered > write.received]  # being written at the same time
        return "" if others else "wrote without the Lease"
    ends = last.write.answered + timedelta(seconds=last.get("spec", "leaseDurationSeconds", default=0))
    return "" if write.received <= ends else f"wrote {(write.received - ends).total_seconds():.2f} s after its Lease"


def nothing_is_applied_twice(history: History, facts: Facts) -> Iterator[Violation]:
    """No write to a target repeats what the version before it already was, if that was ours, too.

    Writes that only release fields are not repeated work, nor is the note of an object's uid after its creation.
    """
    ours = facts.users()
    for version in facts.by(history, "advisor", "autopilot"):
        before = version.before
        if before is None or before.user not in ours or version.obj is None or version.uncertain:
            continue
        if is_target(version) and not version.write.subresource and _content(version.obj) == _content(before.obj):
            if _own_fields(before.obj) - _own_fields(version.obj):
                continue
            yield Violation("twice", "wrote what was there already, by its own hand", version)
    for uid, count in _approved_per_plan(history, facts).items():
        if count > 1:
            yield Violation("twice", f"approved the plan {uid} {count} times")


def _content(obj: Object | None) -> Object:
    metadata = value_at(obj, ("metadata",), {})
    kept = {name: metadata.get(name) for name in ("labels", "annotations", "ownerReferences")}
    return {**{k: v for k, v in (obj or {}).items() if k not in ("metadata", "status")}, "metadata": kept}


def _own_fields(obj: Object | None) -> set[tuple[str, str]]:
    found = owners(obj)
    return {(manager, path) for manager, paths in found.items() if manager.startswith(OURS) for path in paths}


def _approved_per_plan(history: History, facts: Facts) -> dict[str, int]:
    counts: dict[str, int] = {}
    for version in approvals(history, facts):
        if not version.uncertain:
            counts[version.uid] = counts.get(version.uid, 0) + 1
    return counts


def fields_of_others_remain(history: History, facts: Facts) -> Iterator[Violation]:
    """No write of ours removes a field that somebody else owns, unless it becomes ours; nor an object of theirs.

    Whose a field is, the server says in managedFields. To take a field with another value is a matter of other rules.
    """
    for version in facts.by(history):
        if version.before is None or version.uncertain or version.write.subresource:
            continue
        before, after = owners(version.earlier), owners(version.obj)
        kept = frozenset().union(*after.values())
        for manager, fields in before.items():
            if not manager.startswith(OURS) and (lost := fields - kept):
                yield Violation("foreign", f"removed {', '.join(sorted(lost)[:3])} of {manager}", version)


def configs_converge(history: History, facts: Facts) -> Iterator[Violation]:
    """Once the faults have stopped, every field is what was asked for last."""
    for wanted in facts.wanted:
        found = value_at(facts.last(history, wanted.ref), wanted.path)
        if found not in (wanted.one_of or (None,)):
            expected = " or ".join(map(repr, wanted.one_of)) or "absent"
            yield Violation("convergence", f"{wanted.ref} .{'.'.join(wanted.path)} is {found!r}, should be {expected}")
    for ref in history.refs(CONFIGS):
        last = facts.last(history, ref)
        if facts.quiet and last is not None:
            observed = value_at(last, ("status", "observedGeneration"))
            generation = value_at(last, ("metadata", "generation"))
            if observed != generation:
                yield Violation("convergence", f"{ref} is at generation {generation}, observed is {observed}")


def silence_follows(history: History, facts: Facts) -> Iterator[Violation]:
    """When there is nothing to do, nothing is written but leases; not even an event."""
    if facts.quiet is None:
        return
    for write in history.writes:
        if write.user in facts.replicas and write.ref.resource != LEASES and facts.quiet.covers(write.received):
            yield Violation("silence", f"wrote though nothing was to be done: {write}")
