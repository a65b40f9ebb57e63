"""The advisor writes what an approved plan names, and nothing else."""

from collections.abc import Iterator
from typing import Any

from tests.checker.facts import HOME, Facts, Violation
from tests.checker.history import History, Object, Version, value_at

CONFIGS = "virtplatformconfigs.advisor.kubevirt.io"
OWN = (CONFIGS, f"{CONFIGS}/status", "leases.coordination.k8s.io", "events", "events.events.k8s.io")
OWN_AT_HOME = ("configmaps", "controllerrevisions.apps")
APPROVED_PLAN = "advisor.kubevirt.io/approved-plan"
APPROVALS = "advisor.kubevirt.io/approvals"
EXECUTES = ("Apply", "Rollback")
OURS = ("virt-advisor-operator", "virt-platform-autopilot", "virt-steward-")
"""How the names of our field managers begin."""


def is_target(version: Version) -> bool:
    ref = version.ref
    return ref.resource not in OWN and not (ref.resource in OWN_AT_HOME and ref.namespace == HOME)


def advisor_writes_approved_targets_only(history: History, facts: Facts) -> Iterator[Violation]:
    for version in facts.by(history, "advisor"):
        if not is_target(version):
            continue
        seen = [one for ref in history.refs(CONFIGS) for one in facts.view(history, ref, version)]
        planned = [one for one in seen if item_of(one.obj, version) is not None]
        if not planned:
            yield Violation("advisor", "wrote an object that no plan names", version)
        elif not any(is_approved(one.obj or {}) or _began_approved(history, facts, one) for one in planned):
            yield Violation("advisor", "wrote while no plan that names the object was approved", version)


def is_approved(config: Object) -> bool:
    """Action Apply approves whatever plan there is, unless an approval names one. A rollback needs that approval.

    Where several people are required, nothing but their approvals counts.
    """
    action = value_at(config, ("spec", "action"))
    approved = value_at(config, ("metadata", "annotations", APPROVED_PLAN))
    plan = _bare(value_at(config, ("status", "planHash"), ""))
    if action not in EXECUTES:
        return False
    if required := value_at(config, ("spec", "approvals", "required"), 0):
        people = people_of(value_at(config, ("metadata", "annotations", APPROVALS), ""))
        return len(people.get(plan, ())) >= required
    if action == "Rollback" and not approved:
        return False
    return not approved or _bare(approved) == plan


def people_of(annotation: str) -> dict[str, set[str]]:
    """Who approved, by the hash of the plan. A line has the hash, the time, the comment and the name."""
    people: dict[str, set[str]] = {}
    for line in annotation.split("\n"):
        plan, *_, name = line.split(" ", 3) if line.count(" ") > 2 else ("", "")
        people.setdefault(plan, set()).add(name)
    return people


def _began_approved(history: History, facts: Facts, config: Version) -> bool:
    """A plan that was approved when it began goes on, whatever was approved since, as long as it is to be executed."""
    if not _runs(config, config):
        return False
    earlier = [one for one in history.of(config.ref) if one.number <= config.number]
    first = config
    for one in reversed(earlier):
        if not _runs(one, config):
            break
        first = one
    return any(is_approved(one.obj or {}) for one in facts.view(history, config.ref, first))


def _runs(one: Version, config: Version) -> bool:
    """Whether the plan of a config was being executed."""
    is_same = one.get("status", "planHash") == config.get("status", "planHash")
    return is_same and one.get("status", "phase") == "InProgress" and one.get("spec", "action") in EXECUTES


def _bare(text: str) -> str:
    return text.removeprefix("sha256:")


def item_of(config: Object | None, version: Version) -> Object | None:
    obj = version.obj or version.earlier or {}
    for item in value_at(config, ("status", "items"), ()):
        target = item["targetRef"]
        if (target["kind"], target["name"], target.get("namespace", "")) == (
            obj.get("kind"),
            version.ref.name,
            version.ref.namespace,
        ):
            return dict(item)
    return None


def advisor_forces_listed_fields_only(history: History, facts: Facts) -> Iterator[Violation]:
    """Whoever loses a field by a forced write is named in `takes` of the item."""
    for version in facts.by(history, "advisor"):
        if not is_target(version) or not version.write.forced or version.before is None or version.uncertain:
            continue
        losers = {
            manager
            for manager, fields in owners(version.earlier).items()
            if not manager.startswith(OURS) and not fields <= owners(version.obj).get(manager, frozenset())
        }
        seen = [one for ref in history.refs(CONFIGS) for one in facts.view(history, ref, version)]
        items = [item for one in seen if (item := item_of(one.obj, version)) is not None]
        if not any(losers <= {taken["manager"] for taken in item.get("takes", ())} for item in items):
            yield Violation("force", f"took fields of {', '.join(sorted(losers))} that the plan does not list", version)


def owners(obj: Object | None) -> dict[str, frozenset[str]]:
    """The fields of each manager, as paths."""
    found: dict[str, frozenset[str]] = {}
    for entry in value_at(obj, ("metadata", "managedFields"), ()):
        if entry.get("subresource"):
            continue
        manager = entry["manager"]
        found[manager] = found.get(manager, frozenset()) | frozenset(_leaves(entry.get("fieldsV1", {}), ""))
    return found


def _leaves(fields: Any, path: str) -> Iterator[str]:
    inner = {name: below for name, below in fields.items() if name != "."}
    if not inner and path:
        yield path
    for name, below in inner.items():
        yield from _leaves(below, f"{path}/{name}")
