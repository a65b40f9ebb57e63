from collections.abc import Callable
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.objects.strategies import modest
from tests.ssa.gadgets import Object, a_config_map, a_gadget
from virt_steward.objects.identity import Kind, ref_of
from virt_steward.ssa.managers import ADVISOR, AUTOPILOT
from virt_steward.ssa.memo import DryRunMemo, LiveDigest

INTENT = a_gadget("one", size=1)
SIGHTING = LiveDigest("u", b"digest")
HOUR = 3600.0


def a_memo(*, capacity: int = 100) -> DryRunMemo:
    return DryRunMemo(Random(1), capacity=capacity)


def a_memo_of_the_intent() -> DryRunMemo:
    memo = a_memo()
    memo.remember(INTENT, AUTOPILOT, SIGHTING, now=0.0)
    return memo


def test_memo_knows_what_it_remembered() -> None:
    assert a_memo_of_the_intent().knows(INTENT, AUTOPILOT, SIGHTING, now=1.0)


@pytest.mark.parametrize(
    ("intent", "sighting"),
    [
        pytest.param(a_gadget("one", size=2), SIGHTING, id="the intent"),
        pytest.param(INTENT, LiveDigest("v", b"digest"), id="the object, which was recreated"),
        pytest.param(INTENT, LiveDigest("u", b"drifted"), id="the content"),
    ],
)
def test_memo_forgets_on_change(intent: Object, sighting: LiveDigest) -> None:
    assert not a_memo_of_the_intent().knows(intent, AUTOPILOT, sighting, now=1.0)


def test_memo_separates_managers() -> None:
    assert not a_memo_of_the_intent().knows(INTENT, ADVISOR, SIGHTING, now=1.0)


def forget_object(memo: DryRunMemo) -> None:
    memo.forget(ref_of(INTENT))


def forget_kind(memo: DryRunMemo) -> None:
    memo.forget_kind(Kind("ssa.example.com", "Gadget"))


def see_another_answer(memo: DryRunMemo) -> None:
    memo.compare(planned=INTENT, answer=a_gadget("one", size=2))


@pytest.mark.parametrize(
    "told",
    [
        pytest.param(forget_object, id="what it was derived from has changed"),
        pytest.param(forget_kind, id="its kind has changed"),
        pytest.param(see_another_answer, id="an apply did not do what its preview said"),
    ],
)
def test_memo_forgets_single_object(told: Callable[[DryRunMemo], None]) -> None:
    memo = a_memo_of_the_intent()
    other = a_config_map("one", a="1")
    memo.remember(other, AUTOPILOT, SIGHTING, now=0.0)
    told(memo)
    assert not memo.knows(INTENT, AUTOPILOT, SIGHTING, now=1.0)
    assert memo.knows(other, AUTOPILOT, SIGHTING, now=1.0)


def test_memo_keeps_entry_when_apply_matches_preview() -> None:
    memo = a_memo_of_the_intent()
    created = {**INTENT, "metadata": {"name": "one", "uid": "random", "resourceVersion": "1"}}
    memo.compare(planned=created, answer={**INTENT, "metadata": {"name": "one", "uid": "u", "resourceVersion": "9"}})
    assert memo.knows(INTENT, AUTOPILOT, SIGHTING, now=1.0)


@modest
@given(seed=st.integers(), now=st.floats(0, 1e9))
def test_memo_entry_expires(seed: int, now: float) -> None:
    memo = DryRunMemo(Random(seed))
    memo.remember(INTENT, AUTOPILOT, SIGHTING, now)
    assert memo.knows(INTENT, AUTOPILOT, SIGHTING, now + 0.79 * HOUR)
    assert not memo.knows(INTENT, AUTOPILOT, SIGHTING, now + 1.21 * HOUR)
    assert len(memo) == 0


def test_memo_expiry_has_jitter() -> None:
    memo = a_memo()
    intents = [a_gadget(f"g-{number}", size=1) for number in range(50)]
    for intent in intents:
        memo.remember(intent, AUTOPILOT, SIGHTING, now=0.0)
    known = [memo.knows(intent, AUTOPILOT, SIGHTING, now=HOUR) for intent in intents]
    assert 10 < sum(known) < 40


@modest
@given(names=st.lists(st.sampled_from("abcdefgh"), min_size=1, max_size=40))
def test_memo_drops_least_recently_used(names: list[str]) -> None:
    memo = a_memo(capacity=3)
    for name in names:
        memo.remember(a_gadget(name), AUTOPILOT, SIGHTING, now=0.0)
    latest = [*dict.fromkeys(reversed(names))][:3]
    assert len(memo) == len(latest)
    assert all(memo.knows(a_gadget(name), AUTOPILOT, SIGHTING, now=1.0) for name in latest)


def test_memo_keeps_used_entry() -> None:
    memo = a_memo(capacity=2)
    for name in ("used", "unused"):
        memo.remember(a_gadget(name), AUTOPILOT, SIGHTING, now=0.0)
    assert memo.knows(a_gadget("used"), AUTOPILOT, SIGHTING, now=1.0)
    memo.remember(a_gadget("new"), AUTOPILOT, SIGHTING, now=1.0)
    known = [name for name in ("used", "unused", "new") if memo.knows(a_gadget(name), AUTOPILOT, SIGHTING, now=2.0)]
    assert known == ["used", "new"]


def test_memo_includes_basis() -> None:
    memo = a_memo_of_the_intent()
    assert not memo.knows(INTENT, AUTOPILOT, SIGHTING, now=1.0, basis="a field is left out")
    memo.remember(INTENT, AUTOPILOT, SIGHTING, now=1.0, basis="a field is left out")
    assert memo.knows(INTENT, AUTOPILOT, SIGHTING, now=2.0, basis="a field is left out")
