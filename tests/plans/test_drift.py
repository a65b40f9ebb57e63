"""Drift in words: object, field, live and planned value, and who changed it."""

from typing import Any

import msgspec

from tests.controllers.advisor.builders import an_item
from virt_steward.apis.virtplatformconfig import PlanItem, TargetRef
from virt_steward.plans.drift import ENTRIES_KEPT, FIELDS_SHOWN, drift_lines, drift_of
from virt_steward.ssa.managers import ADVISOR

ITEM = an_item(
    target_ref=TargetRef("operator.openshift.io/v1", "KubeDescheduler", "cluster", "somewhere"),
    managed_fields=("spec.deschedulingIntervalSeconds", "spec.mode"),
    desired_state={"spec": {"deschedulingIntervalSeconds": 60, "mode": "Automatic"}},
)


TIME = "2026-06-01T17:08:00Z"
INTERVAL = "KubeDescheduler cluster: /spec/deschedulingIntervalSeconds"


def lines_of(item: PlanItem, live: dict[str, Any] | None) -> list[str]:
    return list(drift_lines(item, drift_of(item, live, ADVISOR)))


def a_descheduler(*managers: str, **spec: Any) -> dict[str, Any]:
    fields = {"f:spec": {f"f:{name}": {} for name in spec}}
    entries = [
        {"manager": one, "operation": "Update", "apiVersion": "v1", "time": TIME, "fieldsV1": fields}
        for one in managers
    ]
    return {
        "apiVersion": "operator.openshift.io/v1",
        "kind": "KubeDescheduler",
        "metadata": {"name": "cluster", "managedFields": entries},
        "spec": spec,
    }


def test_drift_names_field_values_and_manager() -> None:
    live = a_descheduler("kubectl-edit", deschedulingIntervalSeconds=300, mode="Automatic")
    assert lines_of(ITEM, live) == [f"{INTERVAL} is 300, planned 60 (changed by kubectl-edit, {TIME})"]


def test_drift_of_removed_field_says_not_set() -> None:
    live = a_descheduler(deschedulingIntervalSeconds=60)
    removed = "is not set, planned Automatic (removed; managedFields does not say by whom)"
    assert lines_of(ITEM, live) == [f"KubeDescheduler cluster: /spec/mode {removed}"]


def test_drift_of_deleted_target_says_not_found() -> None:
    assert lines_of(ITEM, None) == ["KubeDescheduler cluster: not found, it was deleted"]


def test_drift_does_not_blame_our_own_manager() -> None:
    live = a_descheduler(ADVISOR.name, deschedulingIntervalSeconds=300, mode="Automatic")
    assert "changed by" not in lines_of(ITEM, live)[0]


def test_drift_masks_secret_values() -> None:
    users = [{"name": "core", "passwordHash": "$6$secret"}]
    desired = {"spec": {"config": {"passwd": {"users": [{"name": "core", "passwordHash": "$6$planned"}]}}}}
    item = msgspec.structs.replace(ITEM, managed_fields=("spec.config",), desired_state=desired)
    live = {
        "apiVersion": "machineconfiguration.openshift.io/v1",
        "kind": "MachineConfig",
        "metadata": {"name": "one"},
        "spec": {"config": {"passwd": {"users": users}}},
    }
    [line] = lines_of(item, live)
    assert "•••" in line
    assert "$6$" not in line


def test_drift_lists_a_few_fields_and_counts_the_rest() -> None:
    names = [f"field{number}" for number in range(FIELDS_SHOWN + 2)]
    item = msgspec.structs.replace(
        ITEM, managed_fields=tuple(f"spec.{name}" for name in names), desired_state={"spec": dict.fromkeys(names, 1)}
    )
    lines = lines_of(item, a_descheduler(**dict.fromkeys(names, 2)))
    assert len(lines) == FIELDS_SHOWN + 1
    assert lines[-1] == "KubeDescheduler cluster: 2 other fields"


def test_drift_keeps_a_bounded_number_of_fields() -> None:
    names = [f"field{number}" for number in range(ENTRIES_KEPT + 5)]
    item = msgspec.structs.replace(
        ITEM, managed_fields=tuple(f"spec.{name}" for name in names), desired_state={"spec": dict.fromkeys(names, 1)}
    )
    live = a_descheduler(**dict.fromkeys(names, 2))
    assert len(drift_of(item, live, ADVISOR)) == ENTRIES_KEPT
    assert lines_of(item, live)[-1] == f"KubeDescheduler cluster: {ENTRIES_KEPT - FIELDS_SHOWN} or more other fields"


def test_drift_masks_what_the_kind_keeps_secret() -> None:
    item = msgspec.structs.replace(ITEM, managed_fields=("data.motto",), desired_state={"data": {"motto": "planned"}})
    live = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "one"}, "data": {"motto": "known to few"}}
    [entry] = drift_of(item, live, ADVISOR)
    assert (entry.live, entry.planned) == ("•••", "•••")
