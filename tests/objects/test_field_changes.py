"""Changes of fields, as people read them."""

from base64 import b64encode
from typing import Any

import msgspec
import pytest

from virt_steward.objects.field_changes import FieldChange, field_changes


def a_file(content: bytes) -> str:
    return f"data:;base64,{b64encode(content).decode()}"


@pytest.mark.parametrize(
    ("live", "planned", "shown"),
    [
        pytest.param(a_file(b"a: 1\nb: 2\n"), a_file(b"a: 1\nb: 3\n"), ("b: 2", "b: 3"), id="lines-that-differ"),
        pytest.param(a_file(b"a\n"), a_file(b"a\nb\n"), (msgspec.UNSET, "b"), id="a-line-more"),
        pytest.param("data:,a%20b", "data:,a%20c", ("a b", "a c"), id="percent-encoded"),
        pytest.param(a_file(b"\xff"), a_file(b"\xfe"), (a_file(b"\xff"), a_file(b"\xfe")), id="no-text"),
        pytest.param("data:;base64,!", a_file(b"a"), ("data:;base64,!", a_file(b"a")), id="broken"),
        pytest.param(a_file(b"a\nb"), a_file(b"b\na"), (a_file(b"a\nb"), a_file(b"b\na")), id="only-the-order"),
        pytest.param(1, 2, (1, 2), id="no-file"),
    ],
)
def test_embedded_file_is_shown_by_its_lines(live: Any, planned: Any, shown: tuple[Any, Any]) -> None:
    kind = {"apiVersion": "v1", "kind": "ConfigMap"}
    found = field_changes({**kind, "data": {"source": live}}, {**kind, "data": {"source": planned}})
    assert found == (FieldChange(".data.source", *shown),)
