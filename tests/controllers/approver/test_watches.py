"""Which plans a change wakes: those that it can concern, and no others."""

from collections.abc import Iterable
from typing import Any

import msgspec
import pytest

from tests.controllers.approver.builders import CACHE, V1, V2, a_csv, a_plan, a_subscription, an_approver, empty_stores
from virt_steward.controllers.approver.observe import Namespace, NamespaceMeta, observe
from virt_steward.controllers.approver.olm import ApprovalStamp, InstallPlan
from virt_steward.controllers.approver.pending import Pending
from virt_steward.controllers.approver.verdicts import PlanReason, WaitForPlan
from virt_steward.controllers.approver.watches import (
    APPROVERS,
    CSVS,
    NAMESPACES,
    PLANS,
    SUBSCRIPTIONS,
    ApproverEventHandlers,
    ApproverKey,
)
from virt_steward.objects.identity import Key
from virt_steward.runtime.informer import Source

ANN = an_approver("ann")
HERE, THERE = Key("shop", "install-1"), Key("garden", "install-1")


class Room:
    """Stores that tests fill, and what is woken by a change of them."""

    def __init__(self, *objects: Any) -> None:
        self.stores = empty_stores()
        self.opened: list[Key] = []
        self.let_go: list[Key] = []
        self.in_hand: set[Key] = set()
        self._handlers = {
            one.source: one.handler
            for one in ApproverEventHandlers(self.stores, self.opened.append, self._let_go).triggers
        }
        self._places: dict[Source[Any], Any] = {
            PLANS: self.stores.plans,
            SUBSCRIPTIONS: self.stores.subscriptions,
            CSVS: self.stores.csvs,
            NAMESPACES: self.stores.namespaces,
            APPROVERS: self.stores.approvers,
        }
        for source, obj in objects:
            self._places[source].put(obj)

    def _let_go(self, key: Key) -> bool:
        if key in self.in_hand:
            return False
        self.let_go.append(key)
        return True

    def put(self, source: Source[Any], obj: Any) -> list[Any]:
        before = self._places[source].put(obj)
        return sorted(self._handlers[source](obj.metadata.key, before, obj), key=str)

    def remove(self, source: Source[Any], key: Key) -> list[Any]:
        before = self._places[source].remove(key)
        return sorted(self._handlers[source](key, before, None), key=str)


def two_open_plans(*more: Any) -> Room:
    """One here and one there, and one here that is done."""
    done = a_plan(V1, name="install-0", approved=True, phase="Complete")
    return Room((PLANS, a_plan(V1)), (PLANS, a_plan(V1, namespace="garden")), (PLANS, done), (APPROVERS, ANN), *more)


def a_namespace(name: str = "shop", version: int = 1, **labels: str) -> Namespace:
    return Namespace(NamespaceMeta(name, "", f"uid-of-{name}", str(version), labels))


def changed(plan: InstallPlan, **fields: Any) -> InstallPlan:
    return msgspec.structs.replace(plan, **fields)


def test_a_subscription_wakes_the_open_plans_of_its_namespace() -> None:
    room = two_open_plans()
    assert room.put(SUBSCRIPTIONS, a_subscription(pin=V1)) == [HERE]
    assert room.remove(SUBSCRIPTIONS, Key("shop", "db")) == [HERE]
    assert room.put(SUBSCRIPTIONS, a_subscription(pin=V1, namespace="kitchen")) == []


def test_a_csv_wakes_the_open_plans_of_its_namespace() -> None:
    assert two_open_plans().put(CSVS, a_csv(V1)) == [HERE]


def test_a_namespace_wakes_its_open_plans_when_its_labels_change() -> None:
    room = two_open_plans()
    assert room.put(NAMESPACES, a_namespace()) == [HERE]
    assert room.put(NAMESPACES, a_namespace(version=2)) == []
    assert room.put(NAMESPACES, a_namespace(version=3, stage="prod")) == [HERE]


def test_a_plan_wakes_itself_while_it_is_open_and_is_let_go_when_it_stops_being_so() -> None:
    room = Room()
    assert room.put(PLANS, a_plan(V1, phase="")) == []
    assert room.opened == []
    assert room.put(PLANS, a_plan(V1)) == [HERE]
    assert room.put(PLANS, a_plan(V1, version=2)) == [HERE]
    assert room.opened == [HERE]
    assert room.let_go == []
    assert room.put(PLANS, a_plan(V1, approved=True)) == []
    assert room.let_go == [HERE]
    assert room.put(PLANS, a_plan(V1, approved=True, phase="Complete")) == []
    assert room.let_go == [HERE]


def test_a_plan_that_is_closed_before_its_approval_was_told_wakes_itself_once_more() -> None:
    room = Room((PLANS, a_plan(V1)))
    room.in_hand.add(HERE)
    assert room.put(PLANS, a_plan(V1, approved=True)) == [HERE]


def test_a_plan_that_goes_while_it_is_open_is_let_go() -> None:
    room = Room((PLANS, a_plan(V1)))
    assert room.remove(PLANS, HERE) == []
    assert room.let_go == [HERE]


def test_a_plan_that_goes_wakes_the_older_twin_that_it_held_back() -> None:
    newer = a_plan(V1, name="install-2", generation=2, approved=True)
    other = a_plan(V1, CACHE, name="install-3")
    room = Room((PLANS, a_plan(V1)), (PLANS, newer), (PLANS, other))
    assert room.remove(PLANS, newer.metadata.key) == [HERE]


def test_a_stamp_wakes_the_status_of_who_made_it() -> None:
    bob = an_approver("bob")
    room = Room((APPROVERS, ANN), (APPROVERS, bob))
    stamped = a_plan(V1, approved=True, stamp=ApprovalStamp(bob.metadata.uid))
    assert room.put(PLANS, stamped) == [ApproverKey(bob.metadata.key)]
    assert room.put(PLANS, changed(stamped, phase="Complete")) == []
    assert room.remove(PLANS, HERE) == [ApproverKey(bob.metadata.key)]


@pytest.mark.parametrize(
    ("targets", "woken"),
    [
        pytest.param((), [THERE, HERE], id="everywhere"),
        pytest.param(("shop",), [HERE], id="in-its-namespaces"),
        pytest.param(("kitchen",), [], id="nowhere-if-there-are-none"),
    ],
)
def test_a_new_approver_wakes_open_plans(targets: tuple[str, ...], woken: list[Key]) -> None:
    bob = an_approver("bob", target_namespaces=targets)
    room = two_open_plans()
    assert room.put(APPROVERS, bob) == [*woken, ApproverKey(bob.metadata.key)]
    assert room.remove(APPROVERS, bob.metadata.key) == [*woken, ApproverKey(bob.metadata.key)]


def test_an_approver_that_looks_elsewhere_wakes_plans_in_its_old_and_new_namespaces() -> None:
    room = two_open_plans((APPROVERS, an_approver("bob", target_namespaces=("shop",))))
    woken = room.put(APPROVERS, an_approver("bob", target_namespaces=("garden",)))
    assert woken == [THERE, HERE, ApproverKey(Key("approvers", "bob"))]


def test_a_status_wakes_no_plan() -> None:
    room = two_open_plans()
    assert room.put(APPROVERS, an_approver("ann", version=2)) == [ApproverKey(ANN.metadata.key)]


def test_what_bears_on_a_plan_is_what_its_namespace_holds() -> None:
    elsewhere = (a_subscription(namespace="garden"), a_plan(V1, namespace="garden"))
    older = an_approver("zoe", created=ANN.metadata.creation_timestamp.replace(year=2020))
    twin = a_plan(V1, name="install-2", approved=True)
    room = Room(
        *((SUBSCRIPTIONS, one) for one in (a_subscription(), elsewhere[0])),
        *((PLANS, one) for one in (a_plan(V1), twin, elsewhere[1])),
        (CSVS, a_csv(V2)),
        (APPROVERS, ANN),
        (APPROVERS, older),
    )
    room.stores.subscriptions.put_unreadable(Key("shop", "odd"), "it is odd")
    room.stores.subscriptions.put_unreadable(Key("garden", "odd"), "it is odd")
    found = observe(room.stores, HERE)
    assert found
    assert found.subscriptions == (a_subscription(),)
    assert found.unreadable == ("odd",)
    assert found.siblings == (twin,)
    assert found.installed == (a_csv(V2),)
    assert found.namespace_labels is None
    assert found.approvers == (older, ANN)
    room.put(NAMESPACES, a_namespace(stage="prod"))
    found = observe(room.stores, HERE)
    assert found
    assert found.namespace_labels == {"stage": "prod"}
    assert observe(room.stores, Key("shop", "none")) is None


def woken_by(pending: Pending, woken: list[Any], steps: Iterable[tuple[Key, dict[Key, WaitForPlan]]]) -> list[Any]:
    woken.clear()
    for plan, waits in steps:
        pending.set(plan, waits)
    return list(woken)


def test_a_status_is_woken_by_news_of_what_waits() -> None:
    woken: list[Any] = []
    pending = Pending(woken.append)
    ann, bob = Key("approvers", "ann"), Key("approvers", "bob")
    unpinned, late = WaitForPlan(PlanReason.NOT_PINNED, "not pinned"), WaitForPlan(PlanReason.TOO_YOUNG, "too young")
    assert woken_by(pending, woken, [(HERE, {ann: unpinned, bob: unpinned})]) == [ApproverKey(ann), ApproverKey(bob)]
    assert woken_by(pending, woken, [(HERE, {ann: unpinned, bob: unpinned})]) == []
    assert woken_by(pending, woken, [(HERE, {ann: late, bob: unpinned})]) == [ApproverKey(ann)]
    assert woken_by(pending, woken, [(HERE, {ann: late})]) == [ApproverKey(bob)]
    assert pending.of(ann) == [(HERE, late)]
    assert pending.of(bob) == []
    woken.clear()
    pending.forget(HERE)
    assert woken == [ApproverKey(ann)]
    assert HERE not in pending
