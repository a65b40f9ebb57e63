"""Which keys a change maps to: those that it can concern, and no others."""

from collections.abc import Iterable
from typing import Any

import msgspec
import pytest

from tests.controllers.approver.builders import (
    CACHE,
    NOON,
    V1,
    V2,
    a_csv,
    a_plan,
    a_subscription,
    an_approver,
    empty_stores,
)
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
        self._handlers = {one.source: one.handler for one in ApproverEventHandlers(self.stores).triggers}
        self._places: dict[Source[Any], Any] = {
            PLANS: self.stores.plans,
            SUBSCRIPTIONS: self.stores.subscriptions,
            CSVS: self.stores.csvs,
            NAMESPACES: self.stores.namespaces,
            APPROVERS: self.stores.approvers,
        }
        for source, obj in objects:
            self._places[source].put(obj)

    def put(self, source: Source[Any], obj: Any) -> list[Any]:
        return self.map(source, obj.metadata.key, self._places[source].put(obj), obj)

    def remove(self, source: Source[Any], key: Key) -> list[Any]:
        return self.map(source, key, self._places[source].remove(key), None)

    def map(self, source: Source[Any], key: Key, before: Any, after: Any) -> list[Any]:
        return sorted(self._handlers[source](key, before, after), key=str)


def two_open_plans(*more: Any) -> Room:
    """One here and one there, and one here that is done."""
    done = a_plan(V1, name="install-0", approved=True, phase="Complete")
    return Room((PLANS, a_plan(V1)), (PLANS, a_plan(V1, namespace="garden")), (PLANS, done), (APPROVERS, ANN), *more)


def a_namespace(name: str = "shop", version: int = 1, **labels: str) -> Namespace:
    return Namespace(NamespaceMeta(name, "", f"uid-of-{name}", str(version), labels))


def changed(plan: InstallPlan, **fields: Any) -> InstallPlan:
    return msgspec.structs.replace(plan, **fields)


def test_subscription_handler_maps_to_open_plans_of_its_namespace() -> None:
    room = two_open_plans()
    assert room.put(SUBSCRIPTIONS, a_subscription(pin=V1)) == [HERE]
    assert room.remove(SUBSCRIPTIONS, Key("shop", "db")) == [HERE]
    assert room.put(SUBSCRIPTIONS, a_subscription(pin=V1, namespace="kitchen")) == []


def test_csv_handler_maps_to_open_plans_of_its_namespace() -> None:
    assert two_open_plans().put(CSVS, a_csv(V1)) == [HERE]


def test_namespace_handler_maps_changed_labels_to_open_plans() -> None:
    room = two_open_plans()
    assert room.put(NAMESPACES, a_namespace()) == [HERE]
    assert room.put(NAMESPACES, a_namespace(version=2)) == []
    assert room.put(NAMESPACES, a_namespace(version=3, stage="prod")) == [HERE]


def test_plan_handler_maps_to_the_plan_only_while_it_is_open() -> None:
    room = Room()
    assert room.put(PLANS, a_plan(V1, phase="")) == []
    assert room.put(PLANS, a_plan(V1)) == [HERE]
    assert room.put(PLANS, a_plan(V1, version=2)) == [HERE]
    assert room.put(PLANS, a_plan(V1, approved=True)) == []
    assert room.put(PLANS, a_plan(V1)) == [HERE]
    assert room.remove(PLANS, HERE) == []


def test_handlers_give_the_same_keys_each_time() -> None:
    """They are pure: a second call with the same change maps to the same keys."""
    room = two_open_plans()
    newer = a_plan(V1, version=2)
    assert room.map(PLANS, HERE, a_plan(V1), newer) == room.map(PLANS, HERE, a_plan(V1), newer) == [HERE]


def test_plan_handler_maps_a_deleted_plan_to_older_ones_with_its_csvs() -> None:
    newer = a_plan(V1, name="install-2", generation=2, approved=True)
    other = a_plan(V1, CACHE, name="install-3")
    room = Room((PLANS, a_plan(V1)), (PLANS, newer), (PLANS, other))
    assert room.remove(PLANS, newer.metadata.key) == [HERE]


def test_plan_handler_maps_a_stamp_to_its_approver() -> None:
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
def test_approver_handler_maps_to_open_plans(targets: tuple[str, ...], woken: list[Key]) -> None:
    bob = an_approver("bob", target_namespaces=targets)
    room = two_open_plans()
    assert room.put(APPROVERS, bob) == [*woken, ApproverKey(bob.metadata.key)]
    assert room.remove(APPROVERS, bob.metadata.key) == [*woken, ApproverKey(bob.metadata.key)]


def test_approver_handler_maps_to_plans_of_old_and_new_namespaces() -> None:
    room = two_open_plans((APPROVERS, an_approver("bob", target_namespaces=("shop",))))
    woken = room.put(APPROVERS, an_approver("bob", target_namespaces=("garden",)))
    assert woken == [THERE, HERE, ApproverKey(Key("approvers", "bob"))]


def test_approver_handler_maps_a_status_to_no_plan() -> None:
    room = two_open_plans()
    assert room.put(APPROVERS, an_approver("ann", version=2)) == [ApproverKey(ANN.metadata.key)]


def test_observe_takes_what_the_namespace_holds() -> None:
    elsewhere = (a_subscription(namespace="garden"), a_plan(V1, namespace="garden"))
    older = an_approver("zoe", created=ANN.metadata.creation_timestamp.replace(year=2020))
    twin = a_plan(V1, name="install-2", approved=True)
    others = (a_plan(V2, name="install-3"), a_plan(V1, V2, name="install-4"))  # of which there may be thousands
    room = Room(
        *((SUBSCRIPTIONS, one) for one in (a_subscription(), elsewhere[0])),
        *((PLANS, one) for one in (a_plan(V1), twin, *others, elsewhere[1])),
        (CSVS, a_csv(V2)),
        (APPROVERS, ANN),
        (APPROVERS, older),
    )
    room.stores.subscriptions.put_unreadable(Key("shop", "odd"), "it is odd")
    room.stores.subscriptions.put_unreadable(Key("garden", "odd"), "it is odd")
    found = observe(room.stores, HERE, NOON)
    assert found
    assert found.subscriptions == (a_subscription(),)
    assert found.unreadable == ("odd",)
    assert found.siblings == (twin,)
    assert found.installed == (a_csv(V2),)
    assert found.namespace_labels is None
    assert found.approvers == (older, ANN)
    room.put(NAMESPACES, a_namespace(stage="prod"))
    found = observe(room.stores, HERE, NOON)
    assert found
    assert found.namespace_labels == {"stage": "prod"}
    assert observe(room.stores, Key("shop", "none"), NOON) is None


def woken_by(pending: Pending, woken: list[Any], steps: Iterable[tuple[Key, dict[Key, WaitForPlan]]]) -> list[Any]:
    woken.clear()
    for plan, waits in steps:
        pending.set(plan, waits)
    return list(woken)


def test_pending_wakes_approvers_whose_verdict_changed() -> None:
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
