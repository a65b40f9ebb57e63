import pytest

from virt_steward.objects.paths import Pointer
from virt_steward.objects.schemafacts import definition_facts, facts_of

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
def test_a_schema_has(path: str, enum: tuple[str, ...]) -> None:
    pointer = Pointer.parse(path)
    facts = facts_of(SCHEMA, (pointer,))
    assert facts.has(pointer)
    assert facts.enum(pointer) == enum


@pytest.mark.parametrize("path", ["/status", "/spec/modes", "/spec/mode/deeper", "/spec/profiles/name"])
def test_a_schema_lacks(path: str) -> None:
    facts = facts_of(SCHEMA, (Pointer.parse(path),))
    assert not facts.has(Pointer.parse(path))
    assert facts.enum(Pointer.parse(path)) == ()


def test_the_stored_version_counts_if_it_is_served_else_the_first_that_is() -> None:
    def version(name: str, *, served: bool, storage: bool) -> str:
        schema = f'{{"openAPIV3Schema": {{"properties": {{"{name}": {{}}}}}}}}'
        return f'{{"served": {str(served).lower()}, "storage": {str(storage).lower()}, "schema": {schema}}}'

    def found(*versions: str) -> set[str]:
        raw = f'{{"spec": {{"versions": [{", ".join(versions)}]}}}}'.encode()
        return {str(path) for path in definition_facts(raw, (Pointer(("a",)), Pointer(("b",)))).enums}

    assert found(version("a", served=True, storage=False), version("b", served=True, storage=True)) == {"/b"}
    assert found(version("a", served=True, storage=False), version("b", served=False, storage=True)) == {"/a"}
    assert found(version("a", served=False, storage=True)) == set()
