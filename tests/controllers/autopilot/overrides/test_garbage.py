"""Whatever an annotation says: no crash, a reason, and nothing that must not be."""

from typing import Any

from hypothesis import HealthCheck, given, settings

from tests.controllers.autopilot.overrides import garbage

many = settings(max_examples=200, deadline=None, database=None, suppress_health_check=[HealthCheck.too_slow])


@many
@given(garbage.scopes)
def test_scope_reads_any_text(text: str) -> None:
    garbage.scope_is_told(text)


@many
@given(garbage.exclusion_rules)
def test_exclusions_read_any_text(text: str) -> None:
    garbage.exclusions_are_told(text)


@many
@given(garbage.intents, garbage.patches)
def test_patch_never_writes_protected_fields(intent: dict[str, Any], text: str) -> None:
    garbage.patch_spares_what_is_protected(intent, text)


@many
@given(garbage.masked_objects())
def test_mask_sends_nothing_but_live_values(
    scene: tuple[dict[str, Any], dict[str, Any], str],
) -> None:
    garbage.mask_sends_no_other_value(*scene)


@many
@given(garbage.moments)
def test_expiry_reads_any_end(text: str) -> None:
    garbage.expiry_is_told(text)


def test_largest_annotation_is_handled() -> None:
    for piece in (
        "/spec/a,",
        "/a",
        "- kind: A\n  name: b\n",
        "- ",
        '{"op":',
        "[",
        "a",
        "\\",
        "*",
        "~",
        ",",
        "\x00",
        "é",
    ):
        text = piece * (256 * 1024 // len(piece.encode()))
        intent = {"apiVersion": "v1", "kind": "Gadget", "metadata": {"name": "g"}, "spec": {"a": 1}}
        garbage.scope_is_told(text)
        garbage.exclusions_are_told(text)
        garbage.patch_spares_what_is_protected(intent, text)
        garbage.mask_sends_no_other_value(intent, {**intent, "spec": {"a": 2}}, text)
        garbage.expiry_is_told(text)
