"""Machines are counted from the moment in which their cluster is chosen, and once."""

import msgspec
import pytest

from tests.controllers.placement.builders import a_machine
from virt_steward.controllers.placement.assignments import Assignments
from virt_steward.controllers.placement.observation import Machine
from virt_steward.objects.identity import Key

WEB = Key("default", "web")


def seen_as(version: str, config: str = "", provider: str = "") -> Machine:
    machine = a_machine("web", config=config, provider=provider)
    metadata = msgspec.structs.replace(machine.metadata, resource_version=version)
    return msgspec.structs.replace(machine, metadata=metadata)


@pytest.fixture
def ledger() -> Assignments:
    return Assignments()


def test_what_the_watch_shows_counts(ledger: Assignments) -> None:
    ledger.take(WEB, None, seen_as("1", "east"))
    ledger.take(Key("default", "other"), None, a_machine("other", config="east"))
    assert (ledger.machines_on("east"), ledger.machines_on("west")) == (2, 0)


def test_machines_of_other_providers_do_not_count(ledger: Assignments) -> None:
    ledger.take(WEB, None, seen_as("1", "east", provider="aws"))
    assert ledger.machines_on("east") == 0


def test_a_choice_counts_before_the_watch_shows_it_and_not_twice_when_it_does(ledger: Assignments) -> None:
    ledger.assume(seen_as("1"), "east")
    assert ledger.machines_on("east") == 1
    ledger.take(WEB, seen_as("1"), seen_as("2", "east"))
    assert ledger.machines_on("east") == 1


def test_the_watch_is_right_whatever_was_assumed(ledger: Assignments) -> None:
    ledger.assume(seen_as("1"), "east")
    ledger.take(WEB, seen_as("1"), seen_as("2", "west"))
    ledger.release(WEB)
    assert (ledger.machines_on("east"), ledger.machines_on("west")) == (0, 1)


def test_a_change_from_before_the_choice_does_not_undo_it(ledger: Assignments) -> None:
    ledger.assume(seen_as("1"), "east")
    ledger.take(WEB, seen_as("0"), seen_as("1"))
    assert ledger.machines_on("east") == 1


def test_a_choice_that_was_not_written_does_not_count(ledger: Assignments) -> None:
    ledger.assume(seen_as("1"), "east")
    ledger.release(WEB)
    assert ledger.machines_on("east") == 0
    assert not ledger.awaits(seen_as("1"))


def test_a_machine_that_goes_takes_its_choice_along(ledger: Assignments) -> None:
    ledger.assume(seen_as("1"), "east")
    ledger.take(WEB, seen_as("1"), None)
    assert ledger.machines_on("east") == 0


def test_a_choice_is_awaited_for_just_the_version_that_it_was_made_for(ledger: Assignments) -> None:
    ledger.assume(seen_as("1"), "east")
    assert ledger.awaits(seen_as("1"))
    assert not ledger.awaits(seen_as("2"))


@pytest.mark.parametrize(
    "later",
    [
        pytest.param(seen_as("3"), id="without-it-since-somebody-took-it-off"),
        pytest.param(seen_as("3", provider="aws"), id="as-one-of-another-provider"),
    ],
)
def test_a_choice_counts_no_longer_once_the_watch_shows_the_machine(ledger: Assignments, later: Machine) -> None:
    ledger.assume(seen_as("1"), "east")
    ledger.take(WEB, seen_as("1"), later)
    assert ledger.machines_on("east") == 0
    assert not ledger.awaits(seen_as("1"))
