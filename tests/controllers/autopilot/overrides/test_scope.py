"""Activation."""

from dataclasses import dataclass

import pytest

from virt_steward.controllers.autopilot.overrides.scope import Everything, Idle, Only, parse, unmatched


@dataclass(frozen=True)
class Asset:
    name: str
    group: str = ""


@pytest.mark.parametrize("text", ["true", " true ", "true\n"])
def test_true_means_everything(text: str) -> None:
    assert parse(text) == Everything()


@pytest.mark.parametrize("text", [None, "", "  ", "false", " false", ",", " , ,, "])
def test_it_is_idle_and_says_why_with(text: str | None) -> None:
    scope = parse(text)
    assert isinstance(scope, Idle)
    assert "platform.kubevirt.io/autopilot" in scope.why
    assert not scope.typo


@pytest.mark.parametrize("text", ["True", "TRUE", "False", "true,", "tRuE"])
def test_a_likely_typo_is_idle_and_called_one(text: str) -> None:
    scope = parse(text)
    assert isinstance(scope, Idle)
    assert scope.typo
    assert repr(text.strip()) in scope.why


@pytest.mark.parametrize("text", ["swap-enable,psi-enable", " psi-enable , swap-enable,", "swap-enable,,psi-enable"])
def test_names_are_read_from_a_list(text: str) -> None:
    assert parse(text) == Only(frozenset(("swap-enable", "psi-enable")))


def test_names_of_no_asset_and_no_group_are_told() -> None:
    assets = [Asset("psi-enable", "descheduler-loadaware"), Asset("swap-enable")]
    names = frozenset(("psi-enable", "descheduler-loadaware", "swap", "true", ""))
    assert unmatched(names - {""}, assets) == ("swap", "true")
