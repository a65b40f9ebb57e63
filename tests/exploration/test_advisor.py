"""Every state of one profile with two items that a few events can lead to, in every order with the advisor's steps."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import msgspec

from tests.controllers.advisor.builders import FIVE, NOON, TEN, VERSION, a_config, an_item
from tests.exploration.explorer import Exploration, Model, explore
from virt_steward.apis.profiles import LOAD_AWARE, LoadAwareOptions, ProfileOptions
from virt_steward.apis.virtplatformconfig import PlanItem, VirtPlatformConfigStatus
from virt_steward.controllers.advisor.approval import step_for_new_plan
from virt_steward.controllers.advisor.decide import decide
from virt_steward.controllers.advisor.observation import ALWAYS, AdvisorObservation
from virt_steward.controllers.advisor.report import next_status, with_plan
from virt_steward.controllers.advisor.steps import ApplyItem, AwaitItem, Redraft, Settle
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
    is_window_open: bool = True
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


def status_of(platform: Platform) -> VirtPlatformConfigStatus:
    return msgspec.json.decode(platform.status, type=VirtPlatformConfigStatus)


def observed(platform: Platform) -> AdvisorObservation:
    status = status_of(platform)
    notes = {"approved-plan": platform.approved} if platform.approved else {}
    config = a_config(
        status, generation=platform.generation, notes=notes, action=platform.action, options=OPTIONS[platform.options]
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
        window=ALWAYS if platform.is_window_open else Closed(until=None),
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
    assert not isinstance(decided, ApplyItem | Redraft)
    return replace(after, status=msgspec.json.encode(next_status(observation, status, decided, NOON)))


def moves(platform: Platform) -> Iterator[tuple[str, Platform]]:
    if not platform.moves_left:
        return
    after = replace(platform, moves_left=platform.moves_left - 1)
    for action in ("Ignore", "DryRun", "Apply"):
        if action != platform.action:
            yield f"set action {action}", edited(after, action=action)
    for options in OPTIONS:
        if options != platform.options:
            yield f"set options {options}", edited(after, options=options)
    status = status_of(platform)
    if status.phase == "ReviewRequired":
        approval = replace(after, approved=status.plan_hash, action="Apply", agreed=frozenset({status.plan_hash}))
        yield "approve the plan", replace(approval, generation=after.generation + (platform.action != "Apply"))
    for index, name in enumerate(NAMES):
        for value in {FOREIGN, platform.options} - {platform.targets[index]}:
            first, second = platform.targets
            targets = (value, second) if index == 0 else (first, value)
            yield f"{name} is set to {value}", replace(after, targets=targets)
    yield "readiness changes", replace(after, is_ready=not platform.is_ready)
    yield "inputs change", replace(after, inputs_changed=not platform.inputs_changed)
    yield "the window opens or closes", replace(after, is_window_open=not platform.is_window_open)


def edited(platform: Platform, *, action: str = "", options: str = "") -> Platform:
    """The spec after an edit, and what its author agrees to with it (decision 9)."""
    after = replace(
        platform,
        action=action or platform.action,
        options=options or platform.options,
        generation=platform.generation + 1,
    )
    status = status_of(platform)
    if after.action != "Apply":
        return replace(after, agreed=frozenset())
    is_of_options = OPTIONS[after.options] == status.applied_options
    if status.phase == "ReviewRequired" and is_of_options:
        return replace(after, agreed=frozenset({status.plan_hash}))
    # The advisor sees the spec as it is, not each edit: after Apply, Ignore and Apply again it may just go on.
    is_running = status.phase == "InProgress" and is_of_options
    return replace(after, agreed=frozenset({NEXT, status.plan_hash} if is_running else {NEXT}))


def check(before: Platform, after: Platform) -> None:
    if after.written == before.written:
        assert after.targets == before.targets
        return
    status = status_of(before)
    changed = [name for name, old, new in zip(NAMES, before.targets, after.targets, strict=True) if old != new]
    items = {item.name: item for item in status.items}
    assert before.action == "Apply", "written though nobody set action Apply"
    assert status.phase == "InProgress", "written outside of an execution"
    assert status.plan_hash in before.agreed, "a plan is executed that nobody agreed to"
    assert before.is_window_open, "written outside of the maintenance window"
    assert len(changed) == 1, "not one item at a time, or written though it is as planned"
    for name in changed:
        assert sha256(before.targets[NAMES.index(name)]) == items[name].hash, "written over a change of somebody else"
        assert all(items[one].state != "Pending" for one in NAMES[: NAMES.index(name)]), "written out of order"


def explored(edits: int) -> Exploration[Platform]:
    """All states after up to so many events."""
    return explore(Model(Platform(moves_left=edits), moves, step, check), most_states=1_000_000)


def test_every_reachable_plan_is_executed_only_as_agreed() -> None:
    found = explored(edits=3)
    print(f"\nadvisor, 3 events: {found.states} states, {found.steps} steps")
    assert found.is_complete
    assert any(one.written == 2 for one in found.parents), "no plan was executed to its end"
