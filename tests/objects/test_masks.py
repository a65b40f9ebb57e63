"""Masked secrets."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.objects.builders import a_config_map, a_secret
from tests.objects.strategies import modest, values
from virt_steward.objects.canonical import canonical
from virt_steward.objects.diff import changes, unified
from virt_steward.objects.masks import CHANGED, MASK, masked, masked_change
from virt_steward.objects.paths import Pointer, get, with_value

LAST_APPLIED = "/metadata/annotations/kubectl.kubernetes.io~1last-applied-configuration"
SECRET = "hunter2hunter2"


def an_object(api_version: str, kind: str) -> dict[str, Any]:
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": "x"}}


@pytest.mark.parametrize(
    ("api_version", "kind", "where"),
    [
        ("v1", "Secret", "/data/password"),
        ("v1", "Secret", "/stringData/password"),
        ("v1", "Secret", LAST_APPLIED),
        ("v1", "Secret", "/data"),
        ("machineconfiguration.openshift.io/v1", "MachineConfig", LAST_APPLIED),
        ("kubevirt.io/v1", "VirtualMachine", LAST_APPLIED),
    ],
)
def test_mask_hides_secrets(api_version: str, kind: str, where: str) -> None:
    obj = with_value(an_object(api_version, kind), Pointer.parse(where), SECRET)
    assert get(masked(obj), Pointer.parse(where)) == MASK


@pytest.mark.parametrize(
    ("api_version", "kind", "where", "name"),
    [
        ("machineconfiguration.openshift.io/v1", "MachineConfig", "/spec/config/passwd/users", "passwordHash"),
        ("kubevirt.io/v1", "VirtualMachine", "/spec/template/spec/volumes", "userData"),
        ("kubevirt.io/v1alpha3", "VirtualMachineInstance", "/spec/volumes", "networkDataBase64"),
    ],
)
def test_mask_keeps_names_in_items(api_version: str, kind: str, where: str, name: str) -> None:
    item = {name: SECRET} if name == "passwordHash" else {"cloudInitNoCloud": {name: SECRET}}
    obj = with_value(an_object(api_version, kind), Pointer.parse(where), [{"name": "plain"}, {"name": "n", **item}])
    shown = masked(obj)
    assert SECRET not in str(shown)
    assert [held["name"] for held in get(shown, Pointer.parse(where))] == ["plain", "n"]


@pytest.mark.parametrize(
    "obj", [a_config_map(password=SECRET), an_object("example.com/v1", "Secret") | {"data": SECRET}]
)
def test_mask_shows_other_kinds(obj: dict[str, Any]) -> None:
    assert masked(obj) == obj


def test_mask_shows_only_whether_value_changed() -> None:
    before, after = masked_change(
        a_secret(kept="same", edited="short", gone="x"),
        a_secret(kept="same", edited="much longer", new="", other=SECRET),
    )
    assert before["data"] == {"kept": MASK, "edited": MASK, "gone": MASK}
    assert after["data"] == {"kept": MASK, "edited": CHANGED, "new": MASK, "other": MASK}


def test_mask_marks_changed_item() -> None:
    users = Pointer.parse("/spec/config/passwd/users")
    config = an_object("machineconfiguration.openshift.io/v1", "MachineConfig")
    before = with_value(config, users, [{"passwordHash": "a"}, {"passwordHash": "b"}])
    after = with_value(config, users, [{"passwordHash": "a"}, {"passwordHash": "c"}, {"passwordHash": "d"}])
    shown = get(masked_change(before, after)[1], users)
    assert [user["passwordHash"] for user in shown] == [MASK, CHANGED, MASK]


def test_mask_does_not_change_the_object() -> None:
    obj = a_secret(password=SECRET)
    masked_change(obj, obj)
    assert obj == a_secret(password=SECRET)


@modest
@given(values, values)
def test_mask_is_independent_of_content(one: Any, other: Any) -> None:
    secret = {**a_secret(), "data": {"key": [one]}}
    edited = {**a_secret(), "data": {"key": [other]}}
    expected = MASK if canonical(one) == canonical(other) else CHANGED
    assert masked_change(secret, edited)[1]["data"] == {"key": expected}


@modest
@given(st.text(alphabet="abcdefgh", min_size=12, max_size=20), st.text(alphabet="ijklmnop", min_size=12, max_size=20))
def test_diff_hides_secrets(one: str, other: str) -> None:
    before, after = (with_value(a_secret(key=text), Pointer.parse(LAST_APPLIED), text) for text in (one, other))
    for live, planned in ((before, after), (None, after), (before, None)):
        shown = unified(live, planned) + repr(changes(live, planned))
        assert MASK in shown
        assert one not in shown
        assert other not in shown
