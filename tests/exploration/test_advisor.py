"""Every state of one profile with two items that a few events can lead to, in every order with the advisor's steps."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import msgspec
import pytest

from tests.controllers.advisor.builders import FIVE, NOON, TEN, VERSION, a_config, an_item
from tests.exploration.explorer import Exploration, Model, explore
from virt_steward.apis.profiles import LOAD_AWARE, LoadAwareOptions, ProfileOptions
from virt_steward.apis.virtplatformconfig import PlanApprovalRules, PlanItem, VirtPlatformConfigStatus
from virt_steward.controllers.advisor.approval import step_for_new_plan
from virt_steward.controllers.advisor.decide import decide
from virt_steward.controllers.advisor.observation import ALWAYS, AdvisorObservation
from virt_steward.controllers.advisor.report import next_status, with_plan
from virt_steward.controllers.advisor.steps import ApplyItem, AwaitItem, EvaluateGates, Redraft, Settle
from virt_steward.holds.freezes import NOT_FROZEN, Frozen
from virt_steward.holds.gates import GateState
from virt_steward.objects.canonical import sha256
from virt_steward.objects.windows import Closed
from virt_steward.plans.draft import judged
from virt_steward.plans.fingerprint import plan_hash
from virt_steward.platform.health import Health, NotReady, Ready

NAMES = ("first", "second")
FOREIGN = "somebody else's"
OPTIONS = {"plain": ProfileOptions(), "other": ProfileOptions(load_aware=LoadAwareOptions(mode="Predictive"))}


@dataclass(frozen=True)
class Platform:
    """A VirtPlatformConfig and its two targets. A target's value is the name of the options that it follows."""

    targets: tuple[str, str] = ("absent", "absent")
    is_ready: bool = True
    """Whether what was written is in effect, as on nodes that have rebooted."""
    inputs_changed: bool = False
    holds: frozenset[str] = frozenset()
    """Which of HOLDS keep items from starting."""
    overridden: str = ""
    """The hash of a plan that goes on in spite of a freeze."""
    required: int = 0
    """How many people must approve; 0: action Apply, or one approval, is enough."""
    people: frozenset[tuple[str, str]] = frozenset()
    """Who approved which plan, where several are required."""
    action: str = "Ignore"
    options: str = "plain"
    generation: int = 1
    approved: str = ""
    """The hash in the annotation."""
    status: bytes = b"{}"
    moves_left: int = 0
    agreed: frozenset[str] = frozenset()
    """What people have agreed to: hashes of plans, and NEXT for the one that is drafted next."""
    written: int = 0
    """How many items were written."""


NEXT = "the next plan"
HOLDS = ("freeze", "window", "gate")
PEOPLE = ("first", "second")


def status_of(platform: Platform) -> VirtPlatformConfigStatus:
    return msgspec.json.decode(platform.status, type=VirtPlatformConfigStatus)


def observed(platform: Platform) -> AdvisorObservation:
    status = status_of(platform)
    lines = "\n".join(f"{plan} 2026-03-01T11:00:00Z - {user}" for user, plan in sorted(platform.people))
    notes = {"approved-plan": platform.approved, "approvals": lines, "override-freeze": platform.overridden}
    config = a_config(
        status,
        generation=platform.generation,
        notes={name: text for name, text in notes.items() if text},
        action=platform.action,
        options=OPTIONS[platform.options],
        approvals=PlanApprovalRules(platform.required) if platform.required else None,
    )
    values = dict(zip(NAMES, platform.targets, strict=True))
    hashes = {name: sha256(value) for name, value in values.items()}
    return AdvisorObservation(
        config,
        version=VERSION,
        impact="Medium",
        inputs=TEN if platform.inputs_changed else FIVE,
        hashes=hashes,
        written=frozenset(item.name for item in status.items if hashes[item.name] == item.planned_hash),
        health={name: health(platform) for name in NAMES},
        window=Closed(until=None) if "window" in platform.holds else ALWAYS,
        freeze=Frozen("spec.freeze") if "freeze" in platform.holds else NOT_FROZEN,
        gates_wanted=("quiet",),
    )


def health(platform: Platform) -> Health:
    return Ready("ready") if platform.is_ready else NotReady("1 of 3 nodes are updated")


def drafted(platform: Platform) -> tuple[PlanItem, ...]:
    """As the advisor drafts it: an item for each target, completed if there is nothing to do."""
    return tuple(
        judged(
            an_item(
                name,
                "Completed" if value == platform.options else "Pending",
                hash=sha256(value),
                planned_hash=sha256(platform.options),
                desired_state={"value": platform.options},
                diff="" if value == platform.options else "+ a change",
                last_transition_time=None,
            ),
            health(platform),
        )
        for name, value in zip(NAMES, platform.targets, strict=True)
    )


def step(platform: Platform) -> Platform:
    observation = observed(platform)
    status, after = observation.config.status, platform
    decided = decide(observation, NOON)
    if isinstance(decided, EvaluateGates):
        gate = GateState("quiet", is_open="gate" not in platform.holds, evidence="an alert", since=NOON)
        observation = replace(observation, gates={gate.name: gate})
        decided = decide(observation, NOON)
    match decided:
        case Redraft():
            items = drafted(platform)
            digest = plan_hash(LOAD_AWARE, items, executions=status.executions)
            status = with_plan(observation, items, digest)
            decided = step_for_new_plan(observation, items, digest, NOON)
            after = replace(after, agreed=frozenset({digest}) if NEXT in platform.agreed else platform.agreed)
        case ApplyItem(item):
            value = str(item.desired_state["value"])
            targets = tuple(value if name == item.name else old for name, old in zip(NAMES, after.targets, strict=True))
            after = replace(after, targets=(targets[0], targets[1]), is_ready=False, written=after.written + 1)
            decided = AwaitItem(item, "written", None)
        case Settle():
            return platform
    assert not isinstance(decided, ApplyItem | Redraft | EvaluateGates)
    return replace(after, status=msgspec.json.encode(next_status(observation, status, decided, NOON)))


def moves(platform: Platform) -> Iterator[tuple[str, Platform]]:
    if not platform.moves_left:
        return
    after = replace(platform, moves_left=platform.moves_left - 1)
    for action in {"Ignore", "DryRun", "Apply"} - {platform.action}:
        yield f"set action {action}", edited(after, action=action)
    for options in OPTIONS.keys() - {platform.options}:
        yield f"set options {options}", edited(after, options=options)
    yield "change how many must approve", edited(after, required=0 if platform.required else len(PEOPLE))
    yield from approvals(platform, after)
    for index, name in enumerate(NAMES):
        for value in {FOREIGN, platform.options} - {platform.targets[index]}:
            first, second = platform.targets
            targets = (value, second) if index == 0 else (first, value)
            yield f"{name} is set to {value}", replace(after, targets=targets)
    yield "readiness changes", replace(after, is_ready=not platform.is_ready)
    yield "inputs change", replace(after, inputs_changed=not platform.inputs_changed)
    for hold in HOLDS:
        yield f"the {hold} begins or ends", replace(after, holds=platform.holds ^ {hold})


def approvals(platform: Platform, after: Platform) -> Iterator[tuple[str, Platform]]:
    status = status_of(platform)
    if status.phase == "ReviewRequired":
        agreed = after.agreed if platform.required else frozenset({status.plan_hash})
        generation = after.generation + (platform.action != "Apply")
        approval = replace(after, action="Apply", generation=generation)
        yield "approve the plan", replace(approval, approved=status.plan_hash, agreed=agreed)
        for user in PEOPLE if platform.required else ():
            yield f"the {user} approves", replace(approval, people=platform.people | {(user, status.plan_hash)})
    if "freeze" in platform.holds and status.phase == "InProgress":
        yield "override the freeze", replace(after, overridden=status.plan_hash)


def edited(platform: Platform, *, action: str = "", options: str = "", required: int | None = None) -> Platform:
    """The spec after an edit, and what its author agrees to with it (decision 9)."""
    after = replace(
        platform,
        action=action or platform.action,
        options=options or platform.options,
        required=platform.required if required is None else required,
        generation=platform.generation + 1,
    )
    status = status_of(platform)
    if after.action != "Apply":
        return replace(after, agreed=frozenset())
    is_of_options = OPTIONS[after.options] == status.applied_options
    # The advisor sees the spec as it is, not each edit: after Apply, Ignore and Apply again it may just go on.
    is_running = status.phase == "InProgress" and is_of_options
    running = frozenset({status.plan_hash} if is_running else ())
    if after.required:  # an edit is no approval
        return replace(after, agreed=running)
    if status.phase == "ReviewRequired" and is_of_options:
        return replace(after, agreed=frozenset({status.plan_hash}))
    return replace(after, agreed=running | {NEXT})


def check(before: Platform, after: Platform) -> None:
    if after.written == before.written:
        assert after.targets == before.targets
        return
    status = status_of(before)
    changed = [name for name, old, new in zip(NAMES, before.targets, after.targets, strict=True) if old != new]
    items = {item.name: item for item in status.items}
    assert before.action == "Apply", "written though nobody set action Apply"
    assert status.phase == "InProgress", "written outside of an execution"
    by_people = {(user, status.plan_hash) for user in PEOPLE} <= before.people
    assert by_people or status.plan_hash in before.agreed, "a plan is executed that too few have agreed to"
    overridden = {"freeze"} if before.overridden == status.plan_hash else set()
    assert before.holds <= overridden, "written in spite of a freeze, a window or a gate"
    assert len(changed) == 1, "not one item at a time, or written though it is as planned"
    for name in changed:
        assert sha256(before.targets[NAMES.index(name)]) == items[name].hash, "written over a change of somebody else"
        assert all(items[one].state != "Pending" for one in NAMES[: NAMES.index(name)]), "written out of order"


STARTS = {
    "nothing is planned": Platform(moves_left=3),
    "two people must approve": Platform(moves_left=2, action="DryRun", required=len(PEOPLE)),
    "frozen": Platform(moves_left=2, action="Apply", holds=frozenset({"freeze"}), agreed=frozenset({NEXT})),
}
"""Each with the number of events that `make test` has time for."""


def explored(start: str, more: int = 0) -> Exploration[Platform]:
    """All states that can be reached, by this many events more."""
    first = replace(STARTS[start], moves_left=STARTS[start].moves_left + more)
    found = explore(Model(first, moves, step, check), most_states=1_000_000)
    print(f"\nadvisor, {start}, {first.moves_left} events: {found.states} states, {found.steps} steps")
    return found


@pytest.mark.parametrize("start", STARTS)
def test_every_reachable_plan_is_executed_only_as_agreed(start: str) -> None:
    found = explored(start)
    assert found.is_complete
    assert any(one.written for one in found.parents), "no plan was executed"
