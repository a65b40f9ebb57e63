import gzip
from base64 import b64decode
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from virt_steward.catalog.filters import (
    WrongType,
    data_url,
    dig,
    from_yaml,
    gzipped,
    integer,
    merged,
    merged_yaml,
    text,
    texts,
    to_json,
    to_yaml,
)
from virt_steward.catalog.yamlread import BadYaml

values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.text(st.characters(codec="utf-8"), max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("abc-./", min_size=1), inner, max_size=3),
    max_leaves=10,
)


@given(st.text(st.characters(codec="utf-8")))
def test_text_is_read_back(written: str) -> None:
    assert yaml.safe_load(f"a: {text(written)}") == {"a": written}


@given(values)
def test_to_json_is_valid_yaml(value: Any) -> None:
    assert from_yaml(f"a: {to_json(value)}") == {"a": value}


@pytest.mark.parametrize(
    ("write", "value", "reason"),
    [
        pytest.param(integer, "1\na: 2", "an integer is needed here, not text", id="text"),
        pytest.param(integer, True, "an integer is needed here, not a boolean", id="boolean"),
        pytest.param(integer, None, "an integer is needed here, not null", id="null"),
        pytest.param(integer, 2**63, "an integer of 64 bits is needed here, not a larger one", id="huge"),
        pytest.param(text, 1, "text is needed here, not an integer", id="number"),
        pytest.param(texts, "ab", "a list of texts is needed here, not text", id="no-list"),
        pytest.param(texts, ["a", {"b": 1}], "text is needed here, not a map", id="list-of-maps"),
        pytest.param(merged_yaml, 1.5, "text is needed here, not a number", id="yaml-that-is-no-text"),
    ],
)
def test_typed_filter_refuses_other_types(write: Any, value: Any, reason: str) -> None:
    with pytest.raises(WrongType, match=f"^{reason}$"):
        write(value, {}) if write is merged_yaml else write(value)


def test_from_yaml_limits_its_work() -> None:
    with pytest.raises(BadYaml, match="longer than 2000 values"):
        from_yaml("[" + "a," * 2000 + "]")


def test_to_yaml_ends_without_newline() -> None:
    assert to_yaml({"a": [1, "two"]}) == "a:\n- 1\n- two"


def test_to_yaml_writes_plain_scalars() -> None:
    assert to_yaml("one") == "one"


@given(st.binary(max_size=200))
def test_gzip_is_read_back(data: bytes) -> None:
    assert gzip.decompress(gzipped(data)) == data


def test_gzip_header_has_no_time_and_system() -> None:
    assert gzipped("one")[4:10] == b"\0\0\0\0\x02\xff"


def test_data_url_holds_the_text() -> None:
    head, _, body = from_yaml(data_url("echo\n")).partition(",")
    assert (head, b64decode(body)) == ("data:;base64", b"echo\n")


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        pytest.param("/a/b", 1, id="what-is-there"),
        pytest.param("/a/list/0", "x", id="an-item"),
        pytest.param("/a/c", "none", id="what-is-not-there"),
        pytest.param("/a/null", "none", id="null"),
        pytest.param("/a/b/c", "none", id="what-is-below-a-scalar"),
    ],
)
def test_dig_returns_value_or_default(path: str, expected: Any) -> None:
    assert dig({"a": {"b": 1, "null": None, "list": ["x"]}}, path, "none") == expected


def test_dig_in_nothing_returns_default() -> None:
    assert dig(None, "/a", "none") == "none"


def test_merged_merges_at_every_level() -> None:
    base = {"keep": 1, "both": {"keep": 1, "change": 1}, "list": [1], "text": "old"}
    changes = {"both": {"change": 2, "new": 2}, "list": [2], "text": {"now": "a map"}}
    assert merged(base, changes) == {
        "keep": 1,
        "both": {"keep": 1, "change": 2, "new": 2},
        "list": [2],
        "text": {"now": "a map"},
    }


def test_merged_yaml_of_nothing_is_the_changes() -> None:
    assert merged(None, {"a": 1}) == {"a": 1}


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("a: &a [x]\nb: *a", id="an-alias"),
        pytest.param("[" * 500 + "]" * 500, id="too-much-depth"),
        pytest.param("a: 1\n---\nb: 2", id="two-documents"),
        pytest.param("a: !!python/name:os.system", id="a-tag-of-python"),
        pytest.param("a: [", id="an-open-end"),
    ],
)
def test_from_yaml_refuses(text: str) -> None:
    with pytest.raises(BadYaml):
        from_yaml(text)
