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
def test_field_path_round_trips(tokens: tuple[str, ...], text: str) -> None:
    assert field_of(Pointer(tokens)) == text
    assert pointer_to(text) == Pointer(tokens)


def test_fields_set_by_leaves_out_identity() -> None:
    desired = {
        "apiVersion": "v1",
        "kind": "Thing",
        "metadata": {"name": "one", "namespace": "here", "labels": {ROLE: "worker"}},
        "spec": {"list": [{"a": 1}], "map": {"x": {"y": 1}, "empty": {}}},
    }
    assert fields_set_by(desired) == (f"metadata.labels['{ROLE}']", "spec.list", "spec.map.x.y", "spec.map.empty")
    assert fields_set_by(desired, whole=("spec.map",))[-1] == "spec.map"


def test_values_leave_out_absent_fields() -> None:
    obj = {"spec": {"a": 0, "b": {"c": None}}}
    assert values(obj, ("spec.a", "spec.b.c", "spec.d", "spec.a.b")) == {"spec.a": 0, "spec.b.c": None}


def test_only_keeps_identity_and_pointers() -> None:
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
