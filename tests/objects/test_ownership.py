"""Who owns what."""

from __future__ import annotations

from typing import Any

import pytest

from tests.objects.builders import a_config_map, a_deployment, a_gadget, an_edited_config_map, managed
from virt_steward.objects.fieldpaths import readable
from virt_steward.objects.fieldsets import FieldSet
from virt_steward.objects.ownership import Owner, owned_by, owned_by_anyone, owners, who_owns
from virt_steward.objects.paths import Pointer

WEB = "/spec/template/spec/containers/1"


def shown(fields: FieldSet) -> list[str]:
    return sorted(map(readable, fields))


def with_managers(*entries: dict[str, Any]) -> dict[str, Any]:
    obj = a_config_map()
    return {**obj, "metadata": {**obj["metadata"], "managedFields": [*entries]}}


@pytest.mark.parametrize(
    ("obj", "pointer", "managers"),
    [
        (an_edited_config_map(), "/data/a", ["owner", "second"]),
        (an_edited_config_map(), "/data/b.txt", ["owner"]),
        (an_edited_config_map(), "/data", ["editor", "owner", "second"]),
        (an_edited_config_map(), "/metadata/labels/app.kubernetes.io~1name", ["owner"]),
        (an_edited_config_map(), "/metadata/uid", []),
        (an_edited_config_map(), "/data/new", []),
        (a_deployment(), f"{WEB}/image", ["owner"]),
        (a_deployment(), f"{WEB}/env/0/value", ["editor"]),
        (a_deployment(), f"{WEB}/ports/0/containerPort", ["owner"]),
        (a_deployment(), f"{WEB}/ports/0/protocol", []),
        (a_deployment(), f"{WEB}/args/1", ["owner"]),
        (a_deployment(), f"{WEB}/env/7", []),
        (a_deployment(), "/spec/selector/matchLabels/app", ["injector", "owner"]),
        (a_deployment(), "/metadata/finalizers/0", ["owner"]),
        (a_deployment(), "/status/replicas", ["kubelet"]),
        (a_gadget(), "/spec/levels/2", ["second"]),
        (a_gadget(), "/spec/tags/2", ["second"]),
        (a_gadget(), "/spec/ratios/2", ["owner"]),
        (a_gadget(), "/spec/empty", ["owner", "second"]),
        (a_gadget(), "/spec/empty/k", ["second"]),
        (a_gadget(), "/spec/atomicMap/a", ["owner"]),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_who_owns_finds_owners(obj: dict[str, Any], pointer: str, managers: list[str]) -> None:
    assert [owner.manager for owner in who_owns(obj, Pointer.parse(pointer))] == managers


def test_owners_has_each_entry() -> None:
    assert {*owners(a_deployment())} == {
        Owner("injector", "Apply"),
        Owner("owner", "Apply"),
        Owner("editor", "Update"),
        Owner("kubelet", "Update", "status"),
    }


def test_owners_keep_api_version() -> None:
    obj = with_managers({**managed("owner", {"f:data": {}}), "apiVersion": "v1beta1"})
    assert [*owners(obj)] == [Owner("owner", "Apply", api_version="v1beta1")]


def test_owned_by_counts_only_applies() -> None:
    obj = with_managers(
        managed("owner", {"f:data": {"f:a": {}}}),
        managed("owner", {"f:data": {"f:b": {}}}, operation="Update"),
        managed("owner", {"f:status": {"f:c": {}}}, subresource="status"),
        managed("other", {"f:data": {"f:d": {}}}),
    )
    assert shown(owned_by(obj, "owner")) == [".data.a"]
    assert shown(owned_by(obj, "owner", subresource="status")) == [".status.c"]
    assert shown(owned_by_anyone(obj)) == [".data.a", ".data.b", ".data.d", ".status.c"]


def test_owned_by_joins_versions() -> None:
    old = {**managed("owner", {"f:data": {"f:a": {}}}), "apiVersion": "v1beta1"}
    assert shown(owned_by(with_managers(old, managed("owner", {"f:data": {"f:b": {}}})), "owner")) == [
        ".data.a",
        ".data.b",
    ]


def test_owners_join_entries() -> None:
    obj = with_managers(managed("owner", {"f:data": {"f:a": {}}}), managed("owner", {"f:data": {"f:b": {}}}))
    assert [shown(fields) for fields in owners(obj).values()] == [[".data.a", ".data.b"]]


@pytest.mark.parametrize(
    "obj",
    [a_config_map(), with_managers(), with_managers({"manager": "owner", "operation": "Apply"}), {}],
    ids=["managed fields", "entries", "fields in its entry", "metadata"],
)
def test_owners_of_object_without_managed_fields(obj: dict[str, Any]) -> None:
    assert owned_by(obj, "owner") == FieldSet()
