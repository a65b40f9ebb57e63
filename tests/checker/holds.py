"""Freezes and gates of the installation, windows and freezes of plans: nothing begins while one holds it back."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta

from tests.checker.advisor import CONFIGS, is_target, item_of
from tests.checker.approver import approvals
from tests.checker.autopilot import REBOOTING, same_spec
from tests.checker.facts import HOME, Facts, Violation, is_always
from tests.checker.history import History, Interval, Object, Ref, Version, value_at
from tests.checker.placement import cluster_of

FREEZE = Ref("configmaps", HOME, "virt-steward-freeze")
GATE = Ref("configmaps", HOME, "closes-gate")
"""While it exists, the gate that all changes wait for is closed."""
BY_DEFAULT = "advisor,approver,autopilot"
GATE_REMEMBERED = 1.0
"""Seconds for which an answer of a gate counts, with a margin."""


@dataclass(frozen=True, slots=True)
class Hold:
    """A time in which everything was held back, and what defined it."""

    during: Interval
    data: Object

    def covers(self, version: Version, tolerance: float) -> bool:
        """Whether it held when the author of a write could have seen it, and until the write was done."""
        seen = version.write.received - timedelta(seconds=tolerance)
        return self.during.began <= seen and version.write.answered <= self.during.ended


def _holds(history: History, ref: Ref) -> Iterator[Hold]:
    began: Version | None = None
    for version in history.of(ref):
        if version.obj is not None and began is None:
            began = version
        elif version.obj is None and began is not None:
            yield Hold(Interval(began.write.answered, version.write.received), began.get("data", default={}))
            began = None
    if began is not None:
        end = history.versions[-1].write.answered
        yield Hold(Interval(began.write.answered, end), began.get("data", default={}))


def freezes_hold(history: History, facts: Facts) -> Iterator[Violation]:
    """While the installation is frozen, its controllers begin nothing. The workload overrides no freeze."""
    frozen = list(_holds(history, FREEZE))
    approved = {id(one) for one in approvals(history, facts)} if frozen else set()
    for version in facts.by(history) if frozen else ():
        controller = facts.replicas[version.user].controller
        held = [one for one in frozen if one.covers(version, facts.tolerance)]
        for freeze in held:
            if controller not in str(freeze.data.get("controllers") or BY_DEFAULT).split(","):
                continue
            is_total = freeze.data.get("scope") == "all"
            if _begins(history, controller, version, approved) or (is_total and _corrects(controller, version)):
                yield Violation("freeze", f"{controller} went on in spite of a freeze", version)


def gates_hold(history: History, facts: Facts) -> Iterator[Violation]:
    """While the gate is closed, no item begins, no plan is approved, and nothing that reboots is changed."""
    closed = list(_holds(history, GATE))
    approved = {id(one) for one in approvals(history, facts)} if closed else set()
    for version in facts.by(history, "advisor", "approver", "autopilot") if closed else ():
        controller = facts.replicas[version.user].controller
        if controller == "autopilot" and version.ref.resource not in REBOOTING:
            continue
        if not any(one.covers(version, facts.tolerance + GATE_REMEMBERED) for one in closed):
            continue
        if _begins(history, controller, version, approved):
            yield Violation("gate", f"{controller} went on in spite of a closed gate", version)


def _begins(history: History, controller: str, version: Version, approved: set[int]) -> bool:
    """Whether a write begins something. The autopilot may create again what was there, unless nodes reboot by it."""
    match controller:
        case "approver":
            return id(version) in approved
        case "advisor":
            return is_target(version)
        case "placement":
            return cluster_of(version.earlier) != cluster_of(version.obj)
    if version.ref.resource in REBOOTING:
        return not same_spec(version)
    is_first = version.is_creation and history.of(version.ref)[0] is version
    return _is_asset(version) and (version.obj is None or is_first)


def _corrects(controller: str, version: Version) -> bool:
    labels = ("metadata", "labels")
    is_same = same_spec(version) and version.get(*labels) == value_at(version.earlier, labels)
    return controller == "autopilot" and _is_asset(version) and not is_same


def _is_asset(version: Version) -> bool:
    """Not an event, a Lease, or what the autopilot writes down for itself."""
    own = ("configmaps", "leases.coordination.k8s.io", "events", "events.events.k8s.io")
    return version.ref.resource not in own


def plans_are_not_held(history: History, facts: Facts) -> Iterator[Violation]:
    """An item begins only while the window of its config is open, and no freeze of its own is in force."""
    for version in facts.by(history, "advisor"):
        if not is_target(version):
            continue
        seen = [one for ref in history.refs(CONFIGS) for one in facts.view(history, ref, version)]
        planned = [one.obj for one in seen if item_of(one.obj, version) is not None]
        if planned and all(_is_held(one) for one in planned):
            yield Violation("window", "began an item outside of its window, or in its freeze", version)


def _is_held(config: Object | None) -> bool:
    window, freeze = (value_at(config, ("spec", part)) for part in ("window", "freeze"))
    return bool((window and not is_always(window["schedule"])) or (freeze and is_always(freeze["schedule"])))
