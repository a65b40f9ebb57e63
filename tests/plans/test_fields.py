import pytest

from virt_steward.objects.paths import Pointer
from virt_steward.plans.fields import field_of, fields_set_by, only, pointer_to, values

ROLE = "machineconfiguration.openshift.io/role"


@pytest.mark.parametrize(
    ("tokens", "text"),
    [
        pytest.param(("spec", "kernelArguments"), "spec.kernelArguments", id="plain"),
        pytest.param(("metadata", "labels", ROLE), f"metadata.labels['{ROLE}']", id="with-dots-in-a-name"),
        pytest.param(("data", "a.b", "c"), "data['a.b'].c", id="that-goes-on-behind-dots"),
    ],
)
def test_a_field_is_read_as_it_is_written(tokens: tuple[str, ...], text: str) -> None:
    assert field_of(Pointer(tokens)) == text
    assert pointer_to(text) == Pointer(tokens)


def test_an_intent_sets_its_values_and_whole_lists_but_not_its_identity() -> None:
    desired = {
        "apiVersion": "v1",
        "kind": "Thing",
        "metadata": {"name": "one", "namespace": "here", "labels": {ROLE: "worker"}},
        "spec": {"list": [{"a": 1}], "map": {"x": {"y": 1}, "empty": {}}},
    }
    assert fields_set_by(desired) == (f"metadata.labels['{ROLE}']", "spec.list", "spec.map.x.y", "spec.map.empty")
    assert fields_set_by(desired, whole=("spec.map",))[-1] == "spec.map"


def test_values_leave_out_what_is_absent() -> None:
    obj = {"spec": {"a": 0, "b": {"c": None}}}
    assert values(obj, ("spec.a", "spec.b.c", "spec.d", "spec.a.b")) == {"spec.a": 0, "spec.b.c": None}


def test_only_what_is_pointed_at_is_kept_with_the_identity() -> None:
    obj = {
        "apiVersion": "v1",
        "kind": "Thing",
        "metadata": {"name": "one", "labels": {"x": "y"}},
        "spec": {"a": 1, "b": 2},
    }
    assert only(obj, [Pointer(("spec", "b")), Pointer(("spec", "c"))]) == {
        "apiVersion": "v1",
        "kind": "Thing",
        "metadata": {"name": "one"},
        "spec": {"b": 2},
    }
