from typing import Any

import msgspec
import pytest

from virt_steward.objects.paths import Pointer
from virt_steward.objects.schemafacts import CrdDefinition, definition_facts, facts_of

A, B = Pointer(("a",)), Pointer(("b",))

FREE = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
SCHEMA = {
    "properties": {
        "spec": {
            "properties": {
                "mode": {"type": "string", "enum": ["Automatic", "Predictive"]},
                "profiles": {"type": "array", "items": {"type": "string", "enum": ["A", "B"]}},
                "rules": {"type": "array", "items": {"properties": {"level": {"enum": [1, 2]}}}},
                "limits": {"additionalProperties": {"properties": {"total": {"type": "integer"}}}},
                "labels": {"additionalProperties": True},
                "free": FREE,
            }
        }
    }
}


@pytest.mark.parametrize(
    ("path", "enum"),
    [
        pytest.param("/spec", (), id="a-map"),
        pytest.param("/spec/mode", ("Automatic", "Predictive"), id="a-field-with-values"),
        pytest.param("/spec/profiles", ("A", "B"), id="a-list-whose-items-have-values"),
        pytest.param("/spec/rules/level", ("1", "2"), id="a-field-of-items"),
        pytest.param("/spec/limits/node/total", (), id="a-field-of-a-map-with-free-keys"),
        pytest.param("/spec/labels/any", (), id="a-free-key"),
        pytest.param("/spec/free/any/thing", (), id="anything-below-what-is-free"),
    ],
)
def test_facts_include_existing_fields(path: str, enum: tuple[str, ...]) -> None:
    pointer = Pointer.parse(path)
    facts = facts_of(SCHEMA, (pointer,))
    assert facts.has(pointer)
    assert facts.enum(pointer) == enum


@pytest.mark.parametrize("path", ["/status", "/spec/modes", "/spec/mode/deeper", "/spec/profiles/name"])
def test_facts_exclude_missing_fields(path: str) -> None:
    facts = facts_of(SCHEMA, (Pointer.parse(path),))
    assert not facts.has(Pointer.parse(path))
    assert facts.enum(Pointer.parse(path)) == ()


def a_version(name: str, *, served: bool = True, storage: bool = False, **more: Any) -> dict[str, Any]:
    """One whose schema has a field of the same name."""
    schema = {"openAPIV3Schema": {"properties": {name: {}}}}
    return {"name": name, "served": served, "storage": storage, "schema": schema, **more}


def raw_definition(*versions: dict[str, Any]) -> bytes:
    return msgspec.json.encode({"spec": {"versions": versions}})


def test_definition_prefers_stored_version() -> None:
    def found(*versions: dict[str, Any]) -> set[str]:
        return {str(path) for path in definition_facts(raw_definition(*versions), (A, B)).enums}

    assert found(a_version("a"), a_version("b", storage=True)) == {"/b"}
    assert found(a_version("a"), a_version("b", served=False, storage=True)) == {"/a"}
    assert found(a_version("a", served=False, storage=True)) == set()


def test_definition_finds_served_version() -> None:
    versions = (a_version("a", subresources={"status": {}}), a_version("b"), a_version("c", served=False, storage=True))
    definition = msgspec.json.decode(raw_definition(*versions), type=CrdDefinition)

    def found(name: str) -> tuple[bool, set[Pointer]] | None:
        version = definition.served(name)
        return (version.has_status, {*facts_of(version.schema, (A, B)).enums}) if version else None

    assert found("a") == (True, {A})
    assert found("b") == (False, {B})
    assert found("c") is None
