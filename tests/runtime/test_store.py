from collections.abc import Iterable

import msgspec
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from virt_steward.objects.identity import Key
from virt_steward.objects.meta import Meta
from virt_steward.runtime.store import Store

NAMES = st.sampled_from(["a", "b", "c", "d"])
TAGS = st.lists(st.sampled_from(["red", "green", "blue"]), max_size=3).map(tuple)


class Thing(msgspec.Struct, frozen=True):
    metadata: Meta
    tags: tuple[str, ...] = ()


def a_thing(name: str, tags: Iterable[str] = ()) -> Thing:
    return Thing(Meta(name=name, namespace="here"), tuple(tags))


def a_store() -> Store[Thing]:
    return Store({"tag": lambda thing: thing.tags, "initial": lambda thing: [thing.metadata.name[:1]]})


def key(name: str) -> Key:
    return Key("here", name)


class StoreFollowsItsModel(RuleBasedStateMachine):
    """Whatever happens, the store finds by index what a look through all objects would find."""

    def __init__(self) -> None:
        super().__init__()
        self.store = a_store()
        self.readable: dict[Key, Thing] = {}
        self.unreadable: dict[Key, str] = {}

    @rule(name=NAMES, tags=TAGS)
    def put(self, name: str, tags: tuple[str, ...]) -> None:
        thing = a_thing(name, tags)
        assert self.store.put(thing) == self.readable.get(key(name))
        self.unreadable.pop(key(name), None)
        self.readable[key(name)] = thing

    @rule(name=NAMES)
    def put_unreadable(self, name: str) -> None:
        assert self.store.put_unreadable(key(name), "odd") == self.readable.pop(key(name), None)
        self.unreadable[key(name)] = "odd"

    @rule(name=NAMES)
    def remove(self, name: str) -> None:
        assert self.store.remove(key(name)) == self.readable.pop(key(name), None)
        self.unreadable.pop(key(name), None)

    @invariant()
    def finds_what_is_there(self) -> None:
        assert set(self.store.keys()) == set(self.readable)
        assert self.store.known() == {*self.readable, *self.unreadable}
        assert len(self.store) == len(self.readable)
        assert all(self.store.get(each.metadata.key) is each for each in self.store)
        for tag in ("red", "green", "blue"):
            expected = [self.readable[each] for each in sorted(self.readable) if tag in self.readable[each].tags]
            assert self.store.by("tag", tag) == expected

    @invariant()
    def keeps_no_empty_buckets(self) -> None:
        used = {tag for thing in self.readable.values() for tag in thing.tags}
        assert set(self.store._buckets["tag"]) == used


StoreFollowsItsModel.TestCase.settings = settings(max_examples=50, stateful_step_count=20, deadline=None)
TestStore = StoreFollowsItsModel.TestCase


def test_store_distinguishes_unreadable_from_absent() -> None:
    store = a_store()
    store.put_unreadable(key("a"), "size is no number")
    assert store.get(key("a")) is None
    assert store.unreadable(key("a")) == "size is no number"
    assert store.unreadable(key("b")) is None


def test_store_refuses_undeclared_index() -> None:
    with pytest.raises(KeyError):
        a_store().by("colour", "red")
