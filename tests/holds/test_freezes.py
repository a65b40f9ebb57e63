"""Freezes: when they are in force, and that what cannot be followed is."""

from datetime import UTC, datetime, timedelta

import msgspec
import pytest

from virt_steward.apis.meta import WindowSpec
from virt_steward.holds.freezes import (
    BY_DEFAULT,
    NOT_FROZEN,
    FreezeRecord,
    FreezeSettings,
    FreezeState,
    Frozen,
    NotFrozen,
    combined,
    parse_freeze,
    state_of_spec,
)
from virt_steward.holds.installation import FreezeView, freezes_in
from virt_steward.objects.identity import Key
from virt_steward.runtime.store import Store

NOON = datetime(2030, 1, 4, 12, tzinfo=UTC)  # a Friday
HOUR = timedelta(hours=1)
SOURCE = "ConfigMap steward/virt-steward-freeze"
KEY = Key("steward", "virt-steward-freeze")


def state(now: datetime = NOON, controller: str = "advisor", **data: str) -> FreezeState:
    settings = msgspec.convert(data, FreezeSettings)
    return parse_freeze(settings, SOURCE).state(controller, now)


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        ({}, Frozen(SOURCE)),
        ({"reason": "incident 7"}, Frozen(SOURCE, "incident 7")),
        ({"scope": "all"}, Frozen(SOURCE, is_total=True)),
        ({"from": "2030-01-04T13:00:00Z"}, NotFrozen(NOON + HOUR)),
        ({"from": "2030-01-04T12:00:00Z", "to": "2030-01-04T13:00:00Z"}, Frozen(SOURCE, until=NOON + HOUR)),
        ({"to": "2030-01-04T13:00:00+01:00"}, NOT_FROZEN),
        ({"schedule": "0 11 * * *", "duration": "2h"}, Frozen(SOURCE, until=NOON + HOUR)),
        ({"schedule": "0 13 * * *", "duration": "2h"}, NotFrozen(NOON + HOUR)),
        ({"schedule": "0 12 * * *", "duration": "1h", "timeZone": "Europe/Oslo"}, NotFrozen(NOON + 23 * HOUR)),
        ({"controllers": "approver, autopilot"}, NOT_FROZEN),
        ({"controllers": "advisor"}, Frozen(SOURCE)),
    ],
)
def test_installation_freeze_is_in_force_at_its_times(data: dict[str, str], expected: FreezeState) -> None:
    assert state(**data) == expected


@pytest.mark.parametrize(
    ("data", "words"),
    [
        ({"from": "tomorrow"}, "from: 'tomorrow' is not a time; write RFC 3339"),
        ({"to": "2030-01-04T13:00:00"}, "to: '2030-01-04T13:00:00' is not a time"),
        ({"from": "2030-01-04T13:00:00Z", "to": "2030-01-04T12:00:00Z"}, "to is not after from"),
        ({"schedule": "0 25 * * *", "duration": "1h"}, "'25' is not a valid hour"),
        ({"schedule": "0 22 * * *"}, "schedule and duration come together"),
        ({"duration": "2h"}, "schedule and duration come together"),
        ({"schedule": "0 22 * * *", "duration": "1h", "to": "2030-01-04T13:00:00Z"}, "both schedule and from or to"),
        ({"controllers": "advisors"}, "controllers: 'advisors' is none of advisor, approver, autopilot, placement"),
    ],
)
def test_invalid_freeze_is_in_force_and_says_what_to_correct(data: dict[str, str], words: str) -> None:
    found = state(**data)
    assert isinstance(found, Frozen)
    assert words in found.message
    assert found.message.endswith("nothing begins until it is corrected or removed")


def test_placement_is_frozen_only_where_named() -> None:
    assert state(controller="placement") == NOT_FROZEN
    assert isinstance(state(controller="placement", controllers="placement"), Frozen)
    assert isinstance(state(controller="placement", controllers="placement", to="x"), Frozen)
    assert state(controller="placement", to="x") == NOT_FROZEN


@pytest.mark.parametrize("controller", [*BY_DEFAULT, "placement"])
def test_unreadable_or_denied_freeze_is_in_force(controller: str) -> None:
    store: Store[FreezeRecord] = Store({})
    view = FreezeView(store, "steward", controller)
    assert view.state(NOON) == NOT_FROZEN
    store.put_unreadable(KEY, "Object contains unknown field `unitl` - at `$.data`")
    assert "unknown field `unitl`" in _message(view)
    store.remove(KEY)
    store.denied.add("steward")
    assert "forbidden (403)" in _message(view)


def _message(view: FreezeView) -> str:
    found = view.state(NOON)
    assert isinstance(found, Frozen)
    return found.message


@pytest.mark.parametrize(
    "data",
    [{"unitl": "2030-01-04T13:00:00Z"}, {"scope": "everything"}, {"reason": "x" * 300}, {"from": "9" * 200}],
)
def test_record_refuses_what_it_does_not_know(data: dict[str, str]) -> None:
    raw = msgspec.json.encode({"metadata": {"name": KEY.name, "namespace": KEY.namespace}, "data": data})
    with pytest.raises(msgspec.ValidationError):
        freezes_in("steward").decode(raw)


def test_view_follows_time_and_changes() -> None:
    store: Store[FreezeRecord] = Store({})
    view = FreezeView(store, "steward", "advisor")
    raw = {"metadata": {"name": KEY.name, "namespace": KEY.namespace}, "data": {"to": "2030-01-04T13:00:00Z"}}
    store.put(msgspec.convert(raw, FreezeRecord))
    assert isinstance(view.state(NOON), Frozen)
    assert view.state(NOON + HOUR) == NOT_FROZEN
    assert isinstance(view.state(NOON), Frozen)  # the clock was put back
    store.put(msgspec.convert({**raw, "data": {"controllers": "approver"}}, FreezeRecord))
    assert view.state(NOON) == NOT_FROZEN


def test_longest_freeze_is_named_and_any_total_one_counts() -> None:
    short = Frozen("policy.freezes", until=NOON, is_total=True)
    long = Frozen("spec.freeze", until=NOON + HOUR)
    endless, broken = Frozen(SOURCE), Frozen("spec.freeze", problem="is invalid (x)")
    assert combined((short, long)) == Frozen("spec.freeze", until=NOON + HOUR, is_total=True)
    assert combined((long, endless)) == endless
    assert combined((broken, endless)) == broken
    assert combined((NotFrozen(NOON + HOUR), NotFrozen(NOON), NOT_FROZEN)) == NotFrozen(NOON)


def test_freeze_of_object_denies_while_its_window_is_open() -> None:
    freeze = WindowSpec("0 11 * * FRI", "2h")
    assert state_of_spec(freeze, "spec.freeze", NOON) == Frozen("spec.freeze", until=NOON + HOUR)
    assert isinstance(state_of_spec(freeze, "spec.freeze", NOON + HOUR), NotFrozen)
    assert state_of_spec(None, "spec.freeze", NOON) == NOT_FROZEN
    invalid = state_of_spec(WindowSpec("0 11 * * FRI", "2h", "Europe/Atlantis"), "spec.freeze", NOON)
    assert isinstance(invalid, Frozen)
    assert "Europe/Atlantis" in invalid.problem
