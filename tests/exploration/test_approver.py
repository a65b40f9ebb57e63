"""Every state of one pinned operator under OLM, as far as the model goes: some versions, two plans at a time."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from msgspec import structs

from tests.controllers.approver.builders import NOON, V1, V2, a_csv, a_plan, a_subscription, an_approver, seen
from tests.exploration.explorer import Exploration, Model, explore
from virt_steward.apis.meta import RequiredApprovals, WindowSpec
from virt_steward.controllers.approver.decide import decide
from virt_steward.controllers.approver.observation import ApproverObservation
from virt_steward.controllers.approver.olm import InstallPlan
from virt_steward.holds.gates import GateState

ALWAYS, SELDOM = (WindowSpec(schedule, "1h") for schedule in ("* * * * *", "0 0 1 7 *"))
HOLDS: dict[str, dict[str, Any]] = {
    "unreadable": {},
    "autoApprove": {"auto_approve": False},
    "freeze": {"policy": {"freezes": (ALWAYS,)}},
    "window": {"policy": {"windows": (SELDOM,)}},
    "gate": {"policy": {"gates": ("quiet",)}},
    "people": {"policy": {"approvals": RequiredApprovals(2)}},
}
"""What keeps a plan from being approved, one at a time: the spec of the approver. `people` ends with a second one."""
CLOSED = {"quiet": GateState("quiet", is_open=False, evidence="an alert")}
NONE = ""


@dataclass(frozen=True)
class OlmPlan:
    csv: str
    phase: str = "Planning"
    approved: bool = False
    is_signed: bool = False
    """Whether a second person has approved it. The first has, wherever people are asked."""


@dataclass(frozen=True)
class Olm:
    """A namespace with one Subscription, what OLM has made of it, and one approver."""

    pin: str = V1
    current: str = NONE
    installed: str = NONE
    plans: tuple[OlmPlan, ...] = ()
    is_automatic: bool = False
    hold: str = NONE
    """One of HOLDS."""


def observed(olm: Olm, number: int) -> ApproverObservation:
    approval = "Automatic" if olm.is_automatic else "Manual"
    subscription = a_subscription(pin=olm.pin, current=olm.current, installed=olm.installed, approval=approval)
    plans = [
        signed(a_plan(one.csv, name=f"install-{at}", approved=one.approved, phase=one.phase, generation=at + 1), one)
        for at, one in enumerate(olm.plans)
    ]
    is_readable = olm.hold != "unreadable"
    around = seen(
        plans[number],
        *([subscription] if is_readable else []),
        approvers=[an_approver(**HOLDS.get(olm.hold, {}))],
        unreadable=[] if is_readable else ["db"],
        siblings=[one for at, one in enumerate(plans) if at != number],
        installed=[a_csv(olm.installed)] if olm.installed else [],
    )
    return replace(around, gates=CLOSED)


def signed(plan: InstallPlan, model: OlmPlan) -> InstallPlan:
    people = ("first", "second") if model.is_signed else ("first",)
    lines = "\n".join(f"{plan.fingerprint} 2030-01-07T11:00:00Z - {user}" for user in people)
    return structs.replace(plan, metadata=structs.replace(plan.metadata, approvals=lines))


def step(olm: Olm) -> Olm:
    """Approve the first plan that may be approved: every plan has a key of its own in the workqueue."""
    for number, plan in enumerate(olm.plans):
        if decide(observed(olm, number), NOON).approval:
            return with_plan(olm, number, replace(plan, approved=True))
    return olm


def with_plan(olm: Olm, number: int, plan: OlmPlan) -> Olm:
    return replace(olm, plans=(*olm.plans[:number], plan, *olm.plans[number + 1 :]))


def moves(versions: tuple[str, ...], olm: Olm) -> Iterator[tuple[str, Olm]]:
    for pin in (NONE, *versions):
        yield f"pin {pin or 'nothing'}", replace(olm, pin=pin)
    yield "change approval", replace(olm, is_automatic=not olm.is_automatic)
    for hold in (NONE, *HOLDS):
        yield f"hold it by {hold or 'nothing'}", replace(olm, hold=hold)
    for csv in versions:
        if csv > olm.installed and csv != olm.current and len(olm.plans) < 2:
            yield f"offer {csv}", replace(olm, current=csv, plans=(*olm.plans, OlmPlan(csv)))
    for number, plan in enumerate(olm.plans):
        if plan.phase == "Planning":
            yield f"resolve {plan.csv}", with_plan(olm, number, replace(plan, phase="RequiresApproval"))
        elif plan.approved and plan.phase == "RequiresApproval":
            done = with_plan(olm, number, replace(plan, phase="Complete"))
            yield f"install {plan.csv}", replace(done, installed=plan.csv)
        if olm.hold == "people" and plan.phase == "RequiresApproval" and not plan.approved:
            yield f"somebody else approves {plan.csv}", with_plan(olm, number, replace(plan, is_signed=True))
        if plan.phase != "Planning":
            yield f"delete {plan.csv}", replace(olm, plans=(*olm.plans[:number], *olm.plans[number + 1 :]))


def check(before: Olm, after: Olm) -> None:
    newly = [one for one, new in zip(before.plans, after.plans, strict=True) if one != new]
    assert len(newly) <= 1
    for plan in newly:
        assert plan.phase == "RequiresApproval", "approved before OLM asks for it: OLM would loop for ever"
        assert not plan.approved, "approved twice"
        is_held = before.hold and not (before.hold == "people" and plan.is_signed)
        assert not is_held, f"approved in spite of {before.hold}"
        assert plan.csv == before.current, "approved though superseded"
        assert plan.csv != before.installed, "approved though it changes nothing"
        assert plan.csv == before.pin or before.is_automatic, "approved though not pinned"
    assert replace(after, plans=before.plans) == before, "something else was changed"


def explored(*versions: str) -> Exploration[Olm]:
    """All states that can be reached with these versions of the operator."""
    found = explore(Model(Olm(), partial(moves, versions), step, check), most_states=100_000)
    print(f"\napprover, {len(versions)} versions: {found.states} states, {found.steps} approvals")
    return found


def test_every_reachable_plan_is_approved_by_the_rules_only() -> None:
    found = explored(V1, V2)
    assert found.is_complete
    assert found.steps > 100
