"""Changes of fields, as people read them."""

import gzip
from base64 import b64encode
from typing import Any

import msgspec
import pytest

from virt_steward.objects.field_changes import LARGEST_FILE, FieldChange, field_changes


def a_file(content: bytes) -> str:
    return f"data:;base64,{b64encode(content).decode()}"


CUT = a_file(gzip.compress(b"a\nb")[:-9])
BOMB = a_file(gzip.compress(bytes(LARGEST_FILE + 1)))


def test_new_object_is_shown_by_its_content() -> None:
    source = a_file(gzip.compress(b"a: 1\nb: 2\n"))
    planned = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "one", "namespace": "two"}, "data": {}}
    found = field_changes(None, planned | {"data": {"source": source, "size": 2}})
    assert [one.assignment for one in found] == ["/data/source: a: 1\nb: 2", "/data/size: 2"]


def test_lines_of_a_long_file_are_compared_quickly() -> None:
    lines = [f"{number}\n".encode() for number in range(200_001)]
    live, planned = a_file(b"".join(lines[:-1])), a_file(b"".join(lines[1:]))
    [found] = changed(live, planned)
    assert (found.live, found.planned) == ("0", "200000")


def changed(live: Any, planned: Any) -> tuple[FieldChange, ...]:
    kind = {"apiVersion": "v1", "kind": "ConfigMap"}
    return field_changes({**kind, "data": {"source": live}}, {**kind, "data": {"source": planned}})


@pytest.mark.parametrize(
    ("live", "planned", "shown"),
    [
        pytest.param(a_file(b"a: 1\nb: 2\n"), a_file(b"a: 1\nb: 3\n"), ("b: 2", "b: 3"), id="lines-that-differ"),
        pytest.param(a_file(b"a\n"), a_file(b"a\nb\n"), (msgspec.UNSET, "b"), id="a-line-more"),
        pytest.param("data:,a%20b", "data:,a%20c", ("a b", "a c"), id="percent-encoded"),
        pytest.param(a_file(b"\xff"), a_file(b"\xfe"), (a_file(b"\xff"), a_file(b"\xfe")), id="no-text"),
        pytest.param("data:;base64,!", a_file(b"a"), ("data:;base64,!", a_file(b"a")), id="broken"),
        pytest.param(a_file(b"a\nb"), a_file(b"b\na"), (a_file(b"a\nb"), a_file(b"b\na")), id="only-the-order"),
        pytest.param(a_file(gzip.compress(b"a\nb")), a_file(b"a\nc"), ("b", "c"), id="compressed"),
        pytest.param(CUT, a_file(b"a"), (CUT, a_file(b"a")), id="compressed-and-cut"),
        pytest.param(BOMB, a_file(b"a"), (BOMB, a_file(b"a")), id="too-large-to-decompress"),
        pytest.param(1, 2, (1, 2), id="no-file"),
    ],
)
def test_embedded_file_is_shown_by_its_lines(live: Any, planned: Any, shown: tuple[Any, Any]) -> None:
    assert changed(live, planned) == (FieldChange("/data/source", *shown),)


def test_path_is_a_pointer_into_the_live_list() -> None:
    live = {"spec": {"files": [{"name": "x", "mode": 1}, {"name": "a/b", "mode": 1}], "labels": {"a/b": 1}}}
    planned = {"spec": {"files": [{"name": "a/b", "mode": 2}, {"name": "new", "mode": 3}], "labels": {"a/b": 2}}}
    head = {"apiVersion": "v1", "kind": "Widget", "metadata": {"name": "one"}}
    found = {one.path: one for one in field_changes(head | live, head | planned)}
    assert found["/spec/files/1/mode"].planned == 2
    assert found["/spec/labels/a~1b"].live == 1
    removed, added = found["/spec/files/0/mode"], found["/spec/files/2/name"]
    assert (removed.live, removed.planned, added.planned) == (1, msgspec.UNSET, "new")
