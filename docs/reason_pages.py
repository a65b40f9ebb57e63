"""The pages of conditions and events: their types and reasons, and what they say."""  # noqa: INP001 - beside a script

from __future__ import annotations

import ast
import re
from collections import defaultdict
from typing import TYPE_CHECKING, NamedTuple, get_args

from made import REASON, Function, Value, documented, made_in, texts_of
from tables import NOTICE, codes, escaped, table

from virt_steward.apis.virtplatformconfig import ItemState
from virt_steward.controllers import REPORTERS
from virt_steward.controllers.advisor.conditions import HOLDS
from virt_steward.controllers.advisor.phases import PHASES
from virt_steward.controllers.advisor.reporter import ALARMING, QUIET
from virt_steward.controllers.approver.verdicts import PlanReason
from virt_steward.controllers.autopilot.events import NORMAL
from virt_steward.controllers.autopilot.verdicts import FailureReason
from virt_steward.controllers.placement.notifications import FAULTY, READY, cluster_reason
from virt_steward.controllers.placement.verdicts import PlacementReason
from virt_steward.objects.decision_record import WORDINGS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from made import Made, Source
    from messages import Message

CONDITIONS = """# Conditions

Types and reasons that programs can rely on. Messages may change; they say what happened, why, and what to do.
"""
EVENTS = f"""# Events

Each occurrence is recorded once, also across restarts; repetitions are counted on the same event. The console shows
them under **Activity**. `kubectl get events.events.k8s.io -A --field-selector reportingController=NAME` finds those of
one controller: {codes(REPORTERS.values())}.
"""
DECISIONS = """
## Decisions of people

Recorded by the controller that observes the decision, on the object that was decided on.

"""
PLANS = "`status.pending` names each plan that waits, and an event on the InstallPlan says the same. Reasons:"
CODE = re.compile("[A-Z][A-Za-z]+")
"""Of types and reasons. Names of constants are not unique, so that other texts are found as well."""
FAILED_PHASES = frozenset({"CompletedWithErrors"})
"""Reasons of a step that may lead there, too, are listed with the phase that it leads to otherwise."""
STEPS = "controllers.advisor.steps.execution"
EVENT_MAKERS = ("Occurrence", "Remark", "ExpiryRemark")
ONLY_NOTIFIED = "controllers.autopilot.notifications"
"""Occurrences there are for notifications, and never become events."""


class Section(NamedTuple):
    """What is recorded by one controller."""

    title: str
    on: str
    computed: Mapping[str, str]
    """Reasons that the source does not spell out, and the types of their events; empty if that depends on the case."""


SECTIONS = {
    "controllers.advisor": Section(
        "Advisor",
        "On the VirtPlatformConfig. Each change of the phase is an event with the phase as its reason.",
        {phase: "Warning" if phase in ALARMING else "Normal" for phase in PHASES if phase not in QUIET}
        | {f"Item{state}": "Warning" if state == "Failed" else "Normal" for state in get_args(ItemState)}
        | {"Adopted": "Normal", "InputDependencyDrift": "Warning"},
    ),
    "controllers.autopilot": Section(
        "Autopilot",
        "On the HyperConverged, and related to the object that they are about.",
        dict.fromkeys(FailureReason, "Warning"),
    ),
    "controllers.approver": Section(
        "Approver",
        "On the InstallPlan; `ApprovedMany` is on the InstallPlanApprover. A plan that waits gets the reason for it.",
        dict.fromkeys(PlanReason, ""),
    ),
    "controllers.placement": Section(
        "Placement",
        "On the Machine; `Cluster…` are on the KubevirtConfig.",
        dict.fromkeys(PlacementReason, "Warning")
        | {cluster_reason(phase): "Warning" for phase in FAULTY}
        | {READY: "Normal"},
    ),
}
COMPUTED = {
    "controllers.advisor.reporter": 2,
    "controllers.approver.reporter": 1,
    "controllers.autopilot.decide": 1,
    "controllers.autopilot.reporter": 2,
    "controllers.placement.reporter": 2,
    "runtime.decision_events": 1,
}
"""How many calls have a reason that the source does not spell out. One more means that `SECTIONS` may lack a reason."""


def events(source: Source, messages: list[Message]) -> str:
    made = [one for one in _made(source) if one.maker in EVENT_MAKERS and one.module != ONLY_NOTIFIED]
    _check_computed(made, source)
    sections = []
    for prefix, section in SECTIONS.items():
        said = {one.reason: one.text for one in reversed(messages) if one.module.startswith(prefix)}
        known = {str(reason): (kind, said.get(reason, "")) for reason, kind in section.computed.items()}
        for one in (one for one in made if one.module.startswith(prefix)):
            for reason in _reasons(one, source):
                known[reason] = _kind(one, reason, source), _text(one, source) or said.get(reason, "")
        rows = [(f"`{reason}`", kind, escaped(text)) for reason, (kind, text) in sorted(known.items())]
        sections.append(f"\n## {section.title}\n\n{section.on}\n\n{table(('reason', 'type', 'note'), rows)}")
    decided = sorted((f"`{one.reason}`", f"*USER* {one.did.format('…')}") for one in WORDINGS.values())
    return f"{NOTICE}{EVENTS}{''.join(sections)}{DECISIONS}{table(('reason', 'note'), dict.fromkeys(decided))}"


def _check_computed(made: list[Made], source: Source) -> None:
    found: dict[str, int] = defaultdict(int)
    for one in made:
        if not _reasons(one, source) and not _is_passed_on(one):
            found[one.module] += 1
    if found != COMPUTED:
        raise SystemExit(f"events with computed reasons: {dict(found)}; complete SECTIONS, then COMPUTED")


def _is_passed_on(made: Made) -> bool:
    """Whether the reason is a parameter of the function: then the calls of that function count."""
    node, scope = made.values[REASON].node, made.values[REASON].scope
    return (
        isinstance(node, ast.Name) and isinstance(scope, Function) and node.id in {one.arg for one in scope.args.args}
    )


def _kind(made: Made, reason: str, source: Source) -> str:
    kinds = sorted(set(texts_of(made.values["type"], source))) if "type" in made.values else []
    if len(kinds) != 1 and made.module.startswith("controllers.autopilot"):
        return "Normal" if reason in NORMAL else "Warning"
    return " or ".join(kinds)


def conditions(trees: Mapping[str, ast.Module], source: Source) -> str:
    made = _made(source)
    advisor = _of_facts(made, "controllers.advisor", "Fact", source)
    for hold, reason in HOLDS.items():
        advisor[hold] |= {reason, *_hold_reasons(hold, made, trees, source)}
    approver = _of_facts(made, "controllers.approver", "_ConditionFact", source)
    phases = _phase_reasons(made, source)
    parts = (
        "\n## VirtPlatformConfig\n\nExactly one phase is True. The others are False, with the reason `Not…`.\n\n",
        table(("phase", "reasons"), ((f"`{phase}`", codes(sorted(phases[phase]))) for phase in PHASES)),
        "\n",
        _types(trees["controllers.advisor.conditions"], advisor),
        "\n## InstallPlanApprover\n\n",
        _types(trees["controllers.approver.conditions"], approver),
        f"\n{PLANS} {codes(PlanReason)}.\n",
        "\n## Machine and KubevirtConfig\n\n",
        _types(trees["controllers.placement.report"], _of_placement(trees["controllers.placement.report"])),
    )
    return f"{NOTICE}{CONDITIONS}{''.join(parts)}"


def _types(tree: ast.Module, reasons: Mapping[str, set[str]]) -> str:
    values = {name: node.value for name, node in _constants(tree)}
    rows = [
        (f"`{values[name]}`", " ".join(text.split()), codes(sorted(reasons[values[name]])))
        for name, text in documented(tree)
        if values.get(name) in reasons
    ]
    missing = reasons.keys() - {row[0].strip("`") for row in rows}
    if missing:
        raise SystemExit(f"{missing}: make each type of a condition a constant, with its meaning below it")
    return table(("type", "meaning", "reasons"), rows)


def _constants(tree: ast.Module) -> Iterator[tuple[str, ast.Constant]]:
    for node in tree.body:
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Constant() as value):
                yield name, value


def _of_facts(made: list[Made], prefix: str, maker: str, source: Source) -> dict[str, set[str]]:
    found: dict[str, set[str]] = defaultdict(set)
    for one in made:
        if one.maker == maker and one.module.startswith(prefix):
            for type_ in texts_of(one.values["type"], source):
                if CODE.fullmatch(type_) and type_ not in PHASES:
                    found[type_] |= {*_reasons(one, source)}
    return found


def _phase_reasons(made: list[Made], source: Source) -> dict[str, set[str]]:
    """By phase: the reasons of the steps that lead to it."""
    found: dict[str, set[str]] = defaultdict(set)
    for one in made:
        if one.module.startswith("controllers.advisor"):
            phases = _leads_to(one.inside if one.maker == "PhaseReason" else one.maker, source)
            for reason in _reasons(one, source):  # a reason that is a phase is of that phase alone
                for phase in phases & {reason} or phases - FAILED_PHASES or phases:
                    found[phase].add(reason)
    return found


def _leads_to(step: str, source: Source) -> set[str]:
    """The phases that a step leads to: its attribute `to`, or what its `next_phase` returns."""
    if phase := source.members.get(f"{step}.to"):
        return {phase}
    if method := source.methods.get(f"{step}.next_phase"):
        return {node.value for node in ast.walk(method) if isinstance(node, ast.Constant)} & {*PHASES}
    return {phase for base in source.bases.get(step, ()) for phase in _leads_to(base, source)}


def _hold_reasons(hold: str, made: list[Made], trees: Mapping[str, ast.Module], source: Source) -> Iterator[str]:
    """Why an item waits: the reasons of the step whose attribute `condition` is this hold."""
    for one in made:
        if (node := source.attributes.get(f"{one.maker}.condition")) and hold in texts_of(
            Value(node, trees[STEPS]), source
        ):
            yield from _reasons(one, source)


def _of_placement(tree: ast.Module) -> dict[str, set[str]]:
    """The functions of the two conditions of a cluster return status, reason and message."""
    found = {"Placed": {str(one) for one in PlacementReason} | {"Placed"}}
    functions = {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef)}
    for type_, name in (("Reachable", "_reachable"), ("CredentialsValid", "_credentials")):
        returned = [node.value for node in ast.walk(functions[name]) if isinstance(node, ast.Return)]
        reasons = [node.elts[1] for node in returned if isinstance(node, ast.Tuple)]
        found[type_] = {str(node.value) for node in reasons if isinstance(node, ast.Constant)}
    found["CredentialsValid"] |= {"Unauthorized", "Forbidden"} | {
        str(one) for one in PlacementReason if one.name.startswith(("SECRET_", "CONFIG_", "BAD_KUBECONFIG"))
    }
    return found


def _made(source: Source) -> list[Made]:
    return [made for scope in source.modules for made in made_in(scope, source)]


def _reasons(made: Made, source: Source) -> list[str]:
    return list(filter(CODE.fullmatch, texts_of(made.values[REASON], source))) if REASON in made.values else []


def _text(made: Made, source: Source) -> str:
    texts = [
        text for name in ("message", "note") if name in made.values for text in texts_of(made.values[name], source)
    ]
    return texts[0] if texts else ""
