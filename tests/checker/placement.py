"""The placement chooses once, never against a VM that exists, and never without hearing from every cluster."""

from collections.abc import Iterator
from datetime import datetime

from tests.checker.facts import Facts, MemberAnswer, Violation
from tests.checker.history import History, Version, value_at

MACHINES = "machines.vitistack.io"
CLUSTER = "vitistack.io/kubevirt-config"


def cluster_of(obj: object) -> str:
    return str(value_at(obj, ("metadata", "annotations", CLUSTER), ""))


def machines_stay_where_they_are(history: History, facts: Facts) -> Iterator[Violation]:
    for version in facts.by(history, "placement"):
        if version.ref.resource != MACHINES or version.obj is None or version.uncertain:
            continue
        was, became = cluster_of(version.earlier), cluster_of(version.obj)
        if was and was != became:
            yield Violation("placement", f"moved a Machine from {was} to {became or 'nowhere'}", version)
        lost = _conditions(version.earlier) - _conditions(version.obj)
        if lost:
            yield Violation("placement", "removed or changed a condition of others", version)


def _conditions(obj: object) -> set[tuple[tuple[str, str], ...]]:
    listed = value_at(obj, ("status", "conditions"), ()) or ()
    return {tuple(sorted((k, str(v)) for k, v in one.items())) for one in listed if one["type"] != "Placed"}


def machines_are_placed_knowingly(history: History, facts: Facts) -> Iterator[Violation]:
    """Whoever has the VM gets the Machine; if nobody has it, every cluster has said so since the Machine exists."""
    for version in facts.by(history, "placement"):
        if version.ref.resource != MACHINES or version.obj is None or version.uncertain:
            continue
        if cluster_of(version.earlier) or not (chosen := cluster_of(version.obj)):
            continue
        heard = {one: list(_answers(facts, one, version, _created(version))) for one in facts.members}
        vm = f"vm-{version.ref.name}"
        holders = {one for one, answers in heard.items() if any(vm in (answer.vms or ()) for answer in answers)}
        silent = sorted(one for one, answers in heard.items() if all(answer.vms is None for answer in answers))
        if holders and chosen not in holders:
            yield Violation("placement", f"placed on {chosen}, but the VM is on {', '.join(sorted(holders))}", version)
        elif not holders and silent:
            yield Violation("placement", f"placed on {chosen} without an answer of {', '.join(silent)}", version)


def _created(version: Version) -> datetime:
    """Up to a second early: the server cuts it to whole seconds."""
    return datetime.fromisoformat(version.get("metadata", "creationTimestamp"))


def _answers(facts: Facts, member: str, version: Version, since: datetime) -> Iterator[MemberAnswer]:
    for one in facts.answers:
        if (one.member, one.namespace) == (member, version.ref.namespace) and since <= one.at <= version.write.answered:
            yield one
