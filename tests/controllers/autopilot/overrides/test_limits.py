"""Annotations of any length: what is too long is refused with a reason."""

from virt_steward.controllers.autopilot.overrides import exclusions, scope
from virt_steward.controllers.autopilot.overrides.exclusions import UnreadableExclusions
from virt_steward.controllers.autopilot.overrides.scope import Idle


def test_scope_refuses_very_long_list() -> None:
    found = scope.parse("a," * 5001)
    assert isinstance(found, Idle)
    assert found.typo
    assert "longer than 10000 characters" in found.why


def test_exclusions_refuse_very_long_text() -> None:
    found = exclusions.parse("- {kind: Service, name: one}\n" * 600)
    assert isinstance(found, UnreadableExclusions)
    assert found.why.startswith("it is longer than 16384 characters")


def test_exclusions_are_read_once() -> None:
    text = "- {kind: Service, name: read-once}"
    assert exclusions.parse(text) is exclusions.parse(text)
