"""Every state of one pinned operator under OLM, as far as the model goes: three versions and two plans at a time."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from tests.controllers.approver.builders import NOON, V1, V2, V3, a_csv, a_plan, a_subscription, an_approver, seen
from tests.exploration.explorer import Model, explore
from virt_steward.controllers.approver.decide import decide
from virt_steward.controllers.approver.observation import ApproverObservation

VERSIONS = (V1, V2, V3)
NONE = ""


@dataclass(frozen=True)
class OlmPlan:
    csv: str
    phase: str = "Planning"
    approved: bool = False


@dataclass(frozen=True)
class Olm:
    """A namespace with one Subscription, what OLM has made of it, and one approver."""

    pin: str = V1
    current: str = NONE
    installed: str = NONE
    plans: tuple[OlmPlan, ...] = ()
    is_automatic: bool = False
    is_readable: bool = True
    auto_approve: bool = True


def observed(olm: Olm, number: int) -> ApproverObservation:
    approval = "Automatic" if olm.is_automatic else "Manual"
    subscription = a_subscription(pin=olm.pin, current=olm.current, installed=olm.installed, approval=approval)
    plans = [
        a_plan(one.csv, name=f"install-{at}", approved=one.approved, phase=one.phase, generation=at + 1)
        for at, one in enumerate(olm.plans)
    ]
    return seen(
        plans[number],
        *([subscription] if olm.is_readable else []),
        approvers=[an_approver(auto_approve=olm.auto_approve)],
        unreadable=[] if olm.is_readable else ["db"],
        siblings=[one for at, one in enumerate(plans) if at != number],
        installed=[a_csv(olm.installed)] if olm.installed else [],
    )


def step(olm: Olm) -> Olm:
    """Approve the first plan that may be approved: every plan has a key of its own in the workqueue."""
    for number, plan in enumerate(olm.plans):
        if decide(observed(olm, number), NOON).approval:
            return with_plan(olm, number, replace(plan, approved=True))
    return olm


def with_plan(olm: Olm, number: int, plan: OlmPlan) -> Olm:
    return replace(olm, plans=(*olm.plans[:number], plan, *olm.plans[number + 1 :]))


def moves(olm: Olm) -> Iterator[tuple[str, Olm]]:
    for pin in (NONE, *VERSIONS):
        yield f"pin {pin or 'nothing'}", replace(olm, pin=pin)
    yield "change approval", replace(olm, is_automatic=not olm.is_automatic)
    yield "change autoApprove", replace(olm, auto_approve=not olm.auto_approve)
    yield "make the Subscription (un)readable", replace(olm, is_readable=not olm.is_readable)
    for csv in VERSIONS:
        if csv > olm.installed and csv != olm.current and len(olm.plans) < 2:
            yield f"offer {csv}", replace(olm, current=csv, plans=(*olm.plans, OlmPlan(csv)))
    for number, plan in enumerate(olm.plans):
        if plan.phase == "Planning":
            yield f"resolve {plan.csv}", with_plan(olm, number, replace(plan, phase="RequiresApproval"))
        elif plan.approved and plan.phase == "RequiresApproval":
            done = with_plan(olm, number, replace(plan, phase="Complete"))
            yield f"install {plan.csv}", replace(done, installed=plan.csv)
        if plan.phase != "Planning":
            yield f"delete {plan.csv}", replace(olm, plans=(*olm.plans[:number], *olm.plans[number + 1 :]))


def check(before: Olm, after: Olm) -> None:
    newly = [one for one, new in zip(before.plans, after.plans, strict=True) if one != new]
    assert len(newly) <= 1
    for plan in newly:
        assert plan.phase == "RequiresApproval", "approved before OLM asks for it: OLM would loop for ever"
        assert not plan.approved, "approved twice"
        assert before.auto_approve, "approved though autoApprove is off"
        assert before.is_readable, "approved though the Subscription cannot be read"
        assert plan.csv == before.current, "approved though superseded"
        assert plan.csv != before.installed, "approved though it changes nothing"
        assert plan.csv == before.pin or before.is_automatic, "approved though not pinned"
    assert replace(after, plans=before.plans) == before, "something else was changed"


def test_every_reachable_plan_is_approved_by_the_rules_only() -> None:
    found = explore(Model(Olm(), moves, step, check), most_states=30_000)
    print(f"\napprover: {found.states} states, {found.steps} approvals, complete: {found.is_complete}")
    assert found.steps > 100
