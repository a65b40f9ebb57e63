from typing import Any

import pytest

from virt_steward.objects.coverage import lacking


@pytest.mark.parametrize(
    ("wanted", "live"),
    [
        pytest.param({"a": 1}, {"a": 1, "b": 2}, id="has more"),
        pytest.param({"a": [{"name": "x", "v": 1}]}, {"a": [{"name": "y"}, {"name": "x", "v": 1}]}, id="lists more"),
        pytest.param({"cpu": "1000m"}, {"cpu": "1"}, id="says as much in other words"),
        pytest.param({"cpu": "1"}, {"cpu": 1}, id="says it as a number"),
        pytest.param({"a": {}, "b": [], "c": None}, {}, id="leaves out what is empty"),
    ],
)
def test_lacking_is_empty_for_covered_object(wanted: Any, live: Any) -> None:
    assert [*lacking(wanted, live)] == []


@pytest.mark.parametrize(
    ("wanted", "live", "pointers"),
    [
        pytest.param({"a": {"b": 1, "c": 2}}, {"a": {"b": 3}}, ["/a/b", "/a/c"], id="another value and none"),
        pytest.param({"a": ["x", "y"]}, {"a": ["y"]}, ["/a/0"], id="an item less"),
        pytest.param({"a": [{"n": "x", "v": 1}]}, {"a": [{"n": "x", "v": 2}]}, ["/a/0"], id="an item that differs"),
        pytest.param({"a": ["x"]}, {"a": []}, ["/a/0"], id="no items"),
        pytest.param({"a": True}, {"a": 1}, ["/a"], id="a number for a truth"),
        pytest.param({"a": {"b": 1}}, {"a": "b"}, ["/a"], id="a text for a map"),
        pytest.param({"a": ""}, {}, ["/a"], id="no text"),
    ],
)
def test_lacking_points_at_missing_values(wanted: Any, live: Any, pointers: list[str]) -> None:
    assert [str(pointer) for pointer in lacking(wanted, live)] == pointers
