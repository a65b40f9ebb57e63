import gzip
from base64 import b64decode
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from virt_steward.catalog.filters import data_url, dig, from_yaml, gzipped, merged, quote, to_json, to_yaml
from virt_steward.catalog.yamlread import BadYaml

values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.text(st.characters(codec="utf-8"), max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("abc-./", min_size=1), inner, max_size=3),
    max_leaves=10,
)


@given(st.text(st.characters(codec="utf-8")))
def test_quote_is_read_back(text: str) -> None:
    assert yaml.safe_load(f"a: {quote(text)}") == {"a": text}


@given(values)
def test_to_json_is_valid_yaml(value: Any) -> None:
    assert from_yaml(f"a: {to_json(value)}") == {"a": value}


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
    head, _, body = data_url("echo\n").partition(",")
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
