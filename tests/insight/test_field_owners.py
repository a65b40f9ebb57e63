"""Who owns which field: by role, with what they share, and within bounds whatever managedFields contain."""

import time
from typing import Any

import msgspec
import pytest

from virt_steward.insight import field_owners as module
from virt_steward.insight.field_owners import FieldOwners, ManagedFieldsRecord, OwnedObject, field_owners, role_of


def owners(*entries: dict[str, Any]) -> FieldOwners:
    raw = msgspec.json.encode({"metadata": {"managedFields": entries}})
    return field_owners(msgspec.json.decode(raw, type=OwnedObject).metadata.managed_fields)


def an_entry(manager: str, fields: dict[str, Any], **changes: Any) -> dict[str, Any]:
    base = {"manager": manager, "operation": "Apply", "time": "2026-03-01T12:00:00Z", "fieldsV1": fields}
    return base | {"apiVersion": "v1", "fieldsType": "FieldsV1"} | changes


MODE, INTERVAL = {"f:spec": {"f:mode": {}}}, {"f:spec": {".": {}, "f:interval": {}}}


@pytest.mark.parametrize(
    ("manager", "role"),
    [
        ("virt-advisor-operator", "advisor"),
        ("virt-platform-autopilot", "autopilot"),
        ("virt-steward-pause", "virt-steward"),
        ("virt-steward-console", "admin"),
        ("kubectl", "admin"),
        ("kubectl-edit", "admin"),
        ("kubectl-client-side-apply", "admin"),
        ("oc", "admin"),
        ("Mozilla", "admin"),
        ("ocean-controller", "other"),
        ("argocd-controller", "other"),
        ("", "other"),
    ],
)
def test_role_of_manager(manager: str, role: str) -> None:
    assert role_of(manager) == role


def test_owners_are_ours_first_and_know_what_they_share() -> None:
    found = owners(
        an_entry("argocd-controller", MODE | {"f:metadata": {"f:labels": {".": {}, "f:app": {}}}}, operation="Update"),
        an_entry("kubectl-edit", INTERVAL),
        an_entry("virt-advisor-operator", {"f:spec": {"f:mode": {}, "f:interval": {}}}),
        an_entry("kubelet", {"f:status": {"f:phase": {}}}, subresource="status"),
    )
    assert [(one.role, one.manager, one.fields, one.shared) for one in found.owners] == [
        ("advisor", "virt-advisor-operator", (".spec.interval", ".spec.mode"), 2),
        ("admin", "kubectl-edit", (".spec.interval",), 1),
        ("other", "argocd-controller", (".metadata.labels.app", ".spec.mode"), 1),
    ]
    assert found.shares == (("advisor", 2), ("admin", 1), ("other", 2))
    assert found.owners[2].operations == ("Update",)
    assert found.owners[0].time == "2026-03-01T12:00:00Z"


def test_owners_fold_entries_of_one_manager() -> None:
    later = an_entry("kubectl", INTERVAL, operation="Update", time="2026-03-01T13:00:00Z")
    (one,) = owners(an_entry("kubectl", MODE), later).owners
    assert (one.count, one.operations, one.time) == (2, ("Apply", "Update"), "2026-03-01T13:00:00Z")


@pytest.mark.parametrize(
    "fields",
    [
        pytest.param({"spec": {}}, id="no-prefix"),
        pytest.param({"f:spec": "text"}, id="no-map"),
        pytest.param({"k:{": {}}, id="broken-key"),
        pytest.param({f"f:{'x' * module.LARGEST_ENTRY}": {}}, id="too-large"),
    ],
)
def test_owners_name_managers_whose_fields_cannot_be_read(fields: dict[str, Any]) -> None:
    found = owners(an_entry("strange", fields), an_entry("kubectl", MODE))
    assert [(one.manager, one.count, one.is_complete) for one in found.owners] == [
        ("kubectl", 1, True),
        ("strange", 0, False),
    ]


def test_owners_survive_deep_nesting() -> None:
    deep = b'{"f:x":' * 4_000 + b"{}" + b"}" * 4_000
    (one,) = field_owners((ManagedFieldsRecord("strange", fields_v1=msgspec.Raw(deep)),)).owners
    assert (one.count, one.is_complete) == (0, False)


def test_owners_are_bounded() -> None:
    names = {f"f:{number:05}": {} for number in range(2_000)}
    many = [an_entry(f"manager-{number:03}", names) for number in range(200)]
    took = []
    for _ in range(3):  # the garbage of other tests may be collected in any of them
        began = time.thread_time()
        found = owners(*many)
        took.append(time.thread_time() - began)
    assert min(took) < 0.2
    assert (len(found.owners), found.more) == (module.OWNERS_SHOWN, module.MOST_ENTRIES - module.OWNERS_SHOWN)
    assert all(len(one.fields) <= module.FIELDS_SHOWN for one in found.owners)
    assert any(not one.is_complete for one in found.owners)
    long = owners(an_entry("m" * 5_000, {f"f:{'x' * 5_000}": {}})).owners[0]
    assert (len(long.manager), len(long.fields[0])) == (module.LONGEST_TEXT, module.LONGEST_TEXT)
