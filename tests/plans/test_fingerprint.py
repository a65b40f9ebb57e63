from typing import Any

import msgspec
import pytest

from virt_steward.apis.virtplatformconfig import PlanItem, TakenField, TargetRef
from virt_steward.plans.annotations import is_annotated, with_annotations, without_annotations
from virt_steward.plans.fields import governing, without
from virt_steward.plans.fingerprint import fields_hash, plan_hash, snapshot_hash

FIELDS = ("spec.a", "spec.b")
ITEM = PlanItem(
    name="one",
    target_ref=TargetRef("v1", "Thing", "one"),
    impact_severity="Low",
    desired_state={"spec": {"a": 1}},
    managed_fields=FIELDS,
    hash="sha256:1",
    planned_hash="sha256:2",
)


def test_fields_hash_covers_managed_fields_only() -> None:
    seen = {"spec": {"a": 1, "b": 2, "c": 3}, "status": {}}
    assert fields_hash(seen, FIELDS) == fields_hash({"spec": {"b": 2, "a": 1}}, FIELDS)
    assert fields_hash(seen, FIELDS) != fields_hash({"spec": {"a": 1}}, FIELDS)
    assert fields_hash(None, FIELDS) != fields_hash({"spec": {}}, FIELDS)
    assert fields_hash(None, FIELDS).startswith("sha256:")


@pytest.mark.parametrize(
    "change",
    [
        {"desired_state": {"spec": {"a": 2}}},
        {"hash": "sha256:3"},
        {"managed_fields": ("spec.a",)},
        {"takes": (TakenField("somebody", ".spec.a"),)},
        {"target_ref": TargetRef("v1", "Thing", "two")},
    ],
    ids=lambda change: next(iter(change)),
)
def test_plan_hash_differs_for_other_plan(change: dict[str, Any]) -> None:
    assert plan_hash("p", [msgspec.structs.replace(ITEM, **change)]) != plan_hash("p", [ITEM])


def test_plan_hash_ignores_progress_and_blast_radius() -> None:
    moved = msgspec.structs.replace(ITEM, state="InProgress", message="2/3", impact_severity="High")
    assert plan_hash("p", [moved]) == plan_hash("p", [ITEM])
    assert plan_hash("p", [ITEM], back=True) != plan_hash("p", [ITEM])
    assert len(plan_hash("p", [ITEM])) == 64
    assert snapshot_hash([moved]) == snapshot_hash([ITEM])


def test_annotations_are_added_and_removed() -> None:
    obj = {"metadata": {"name": "one", "annotations": {"theirs": "x"}}, "spec": {}}
    ours = with_annotations(obj, "profile", "sha256:1")
    assert is_annotated(ours, "profile", "sha256:1")
    assert not is_annotated(ours, "profile", "sha256:2")
    assert not is_annotated(obj, "profile", "sha256:1")
    assert without_annotations(ours) == obj
    assert without_annotations(with_annotations({"metadata": {"name": "one"}}, "p", "h")) == {
        "metadata": {"name": "one"}
    }


def test_governed_targets_add_up_until_rolled_back() -> None:
    first = governing((), ITEM)
    later = governing(first, msgspec.structs.replace(ITEM, managed_fields=("spec.c",), planned_hash="sha256:9"))
    assert [(one.hash, set(one.managed_fields)) for one in later] == [("sha256:9", {"spec.a", "spec.b", "spec.c"})]
    assert without(later, ITEM) == ()
