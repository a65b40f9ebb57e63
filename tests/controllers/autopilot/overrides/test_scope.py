"""Activation."""

from dataclasses import dataclass

import pytest

from virt_steward.controllers.autopilot.overrides.scope import Activation, Everything, Idle, Only, parse, unmatched


@dataclass(frozen=True)
class Asset:
    name: str
    group: str = ""


@pytest.mark.parametrize("text", ["true", " true ", "true\n"])
def test_scope_true_means_everything(text: str) -> None:
    assert parse(text) == Everything()


@pytest.mark.parametrize("text", [None, "", "  ", "false", " false", ",", " , ,, "])
def test_scope_is_idle_with_reason(text: str | None) -> None:
    scope = parse(text)
    assert isinstance(scope, Idle)
    assert "platform.kubevirt.io/autopilot" in scope.why
    assert not scope.typo


@pytest.mark.parametrize("text", ["True", "TRUE", "False", "true,", "tRuE"])
def test_scope_notices_likely_typo(text: str) -> None:
    scope = parse(text)
    assert isinstance(scope, Idle)
    assert scope.typo
    assert repr(text.strip()) in scope.why


@pytest.mark.parametrize(
    ("text", "scope"),
    [
        (None, Everything()),
        ("", Everything()),
        (" , ", Everything()),
        (" true", Everything()),
        ("swap-enable", Only(frozenset(("swap-enable",)))),
        ("a,b", Only(frozenset("ab"))),
    ],
)
def test_scope_opt_out_is_on_and_lists_narrow_it(text: str | None, scope: object) -> None:
    assert parse(text, Activation.OPT_OUT) == scope


@pytest.mark.parametrize("text", ["false", " false\n"])
def test_scope_opt_out_ends_with_false_alone(text: str) -> None:
    assert isinstance(parse(text, Activation.OPT_OUT), Idle)


@pytest.mark.parametrize("text", ["False", "FALSE", "True", "false,"])
def test_scope_opt_out_is_on_with_likely_typo(text: str) -> None:
    scope = parse(text, Activation.OPT_OUT)
    assert isinstance(scope, Everything)
    assert repr(text) in scope.typo
    assert scope.typo.endswith("until it is 'false'")


def test_scope_opt_out_reads_no_endless_list() -> None:
    assert isinstance(parse("a," * 5001, Activation.OPT_OUT), Idle)


@pytest.mark.parametrize("text", ["swap-enable,psi-enable", " psi-enable , swap-enable,", "swap-enable,,psi-enable"])
def test_scope_reads_names(text: str) -> None:
    assert parse(text) == Only(frozenset(("swap-enable", "psi-enable")))


def test_scope_reads_names_of_go_autopilot() -> None:
    assert parse("monitoring-ui-plugin,swap-enable") == Only(
        frozenset(("observability-operator", "swap-enable")), renamed=frozenset(("monitoring-ui-plugin",))
    )


def test_unmatched_lists_unknown_names() -> None:
    assets = [Asset("psi-enable", "descheduler-loadaware"), Asset("swap-enable")]
    names = frozenset(("psi-enable", "descheduler-loadaware", "swap", "true", ""))
    assert unmatched(names - {""}, assets) == ("swap", "true")
