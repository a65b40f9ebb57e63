from typing import Any

import msgspec
import pytest

from virt_steward.platform.storage import Storage, StorageClassFacts, profile_facts, summarize_storage

SHARED = {"accessModes": ["ReadWriteMany", "ReadWriteOnce"], "volumeMode": "Filesystem"}
SHARED_BLOCK = {"accessModes": ["ReadWriteMany"], "volumeMode": "Block"}
OWN = {"accessModes": ["ReadWriteOnce"], "volumeMode": "Filesystem"}


def a_profile(name: str, *claims: dict[str, Any]) -> bytes:
    status = {"storageClass": name, "provisioner": "example.org/csi", "claimPropertySets": list(claims)}
    return msgspec.json.encode({"metadata": {"name": name}, "spec": {}, "status": status})


@pytest.mark.parametrize(
    ("claims", "is_shared"),
    [
        pytest.param((SHARED,), True, id="several-nodes"),
        pytest.param(({"accessModes": ["ReadWriteMany"]},), True, id="several-nodes-which-by-default-is-a-file-system"),
        pytest.param((SHARED_BLOCK, SHARED), True, id="several-nodes-besides-block-devices"),
        pytest.param((SHARED_BLOCK,), False, id="nobody-if-only-block-devices-are-shared"),
        pytest.param((SHARED_BLOCK, OWN), False, id="one-node-if-only-block-devices-are-shared"),
        pytest.param((OWN,), False, id="one-node"),
        pytest.param((), False, id="nobody-knows-whom"),
    ],
)
def test_profile_with_shared_file_system(claims: tuple[dict[str, Any], ...], is_shared: bool) -> None:
    assert profile_facts(a_profile("fast", *claims)).is_shared is is_shared


def test_empty_profile_is_not_shared() -> None:
    assert not profile_facts(msgspec.json.encode({"metadata": {"name": "new"}, "spec": {}})).is_shared


def test_shared_classes_are_sorted() -> None:
    profiles = [a_profile("nfs", SHARED), a_profile("block", SHARED_BLOCK), a_profile("cephfs", SHARED)]
    assert summarize_storage(map(profile_facts, profiles), ()) == Storage(("cephfs", "nfs"))


def a_class(name: str, made: str = "2030-01-01T00:00:00Z", default: str = "true", *, beta: bool = False) -> Any:
    key = f"storageclass.{'beta.' if beta else ''}kubernetes.io/is-default-class"
    metadata = {"name": name, "creationTimestamp": made, "annotations": {key: default}}
    return msgspec.convert({"metadata": metadata, "provisioner": "x"}, StorageClassFacts)


@pytest.mark.parametrize(
    ("classes", "default"),
    [
        pytest.param((), "", id="no-class"),
        pytest.param((a_class("a", default="false"), a_class("b", default="True")), "", id="no-default"),
        pytest.param((a_class("a", default="false"), a_class("b")), "b", id="one"),
        pytest.param((a_class("a", beta=True),), "a", id="the-beta-annotation"),
        pytest.param((a_class("a"), a_class("b", "2031-01-01T00:00:00Z"), a_class("c")), "b", id="the-newest"),
        pytest.param((a_class("c"), a_class("b")), "b", id="by-name-if-equally-new"),
    ],
)
def test_default_storage_class(classes: tuple[StorageClassFacts, ...], default: str) -> None:
    assert summarize_storage((), classes).default == default
