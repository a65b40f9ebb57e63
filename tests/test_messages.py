"""How docs/messages.py finds messages in source code."""

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import virt_steward

FOLDER = Path(__file__).parents[1] / "docs"
BASE = """
class UserError(Exception): ...
class BadFile(UserError): ...
class Reason(StrEnum):
    MISSING = "NotFound"
class Verdict:
    reason: Reason
    message: str
class Check:
    title: str
    reason: str
"""


@pytest.fixture(scope="module")
def scanner() -> Iterator[ModuleType]:
    """The modules beside the script import each other by their plain names."""
    sys.path.insert(0, str(FOLDER))
    yield importlib.import_module("messages")
    sys.path.remove(str(FOLDER))
    for name in ("messages", "made"):
        sys.modules.pop(name)


def messages_of(scanner: ModuleType, folder: Path) -> list[Any]:
    made = sys.modules["made"]
    trees = made.parsed(folder)
    found: list[Any] = scanner.messages(trees, made.collect(trees))
    return found


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        pytest.param(
            "raise BadFile(f'cannot read {path.name}: {error}')", [("", "cannot read {name}: {error}")], id="error"
        ),
        pytest.param(
            "Verdict(Reason.MISSING, f'{len(names)} not found')", [("NotFound", "{names} not found")], id="reason"
        ),
        pytest.param(
            "def f():\n    text = 'is paused' if x else 'is degraded'\n    return Verdict(code, message=text)",
            [("", "is degraded"), ("", "is paused")],
            id="variable",
        ),
        pytest.param("LATE = 'too late now'\nVerdict(code, LATE)", [("", "too late now")], id="constant"),
        pytest.param(
            'def why():\n    return f\'deleted{f" by {user}" if user else ""} long ago\'\nVerdict(code, why())',
            [("", "deleted[ by {user}] long ago")],
            id="function",
        ),
        pytest.param(
            "def f():\n    a = 'is paused'\n    Verdict('A', a)\n    a = 'is degraded'\n    Verdict('B', a)",
            [("B", "is degraded"), ("A", "is paused")],
            id="variable that is assigned again",
        ),
        pytest.param(
            "def f():\n    text = 'is paused'\n    if x:\n        text = 'is degraded'\n    Verdict('A', text)",
            [("A", "is degraded"), ("A", "is paused")],
            id="variable that a branch assigns",
        ),
        pytest.param(
            "def f(code, text):\n    return Verdict(code, text)\nf('A', 'is paused')",
            [("A", "is paused")],
            id="function that passes it on",
        ),
        pytest.param("Check('In a window', 'opens at noon')", [("", "In a window"), ("", "opens at noon")], id="check"),
        pytest.param("raise BadFile(str(error))\nprint('not a message')", [], id="nothing"),
    ],
)
def test_messages_finds_text(scanner: ModuleType, tmp_path: Path, code: str, expected: list[tuple[str, str]]) -> None:
    (tmp_path / "base.py").write_text(BASE)
    (tmp_path / "module.py").write_text(code)
    assert [(one.reason, one.text) for one in messages_of(scanner, tmp_path)] == expected


def test_messages_include_texts_of_messages_modules(scanner: ModuleType, tmp_path: Path) -> None:
    (tmp_path / "messages.py").write_text("DONE = 'all is done'\ndef late(x):\n    return f'{x} is late today'\n")
    assert [one.text for one in messages_of(scanner, tmp_path)] == ["all is done", "{x} is late today"]


def test_messages_of_the_source_fill_every_group(scanner: ModuleType) -> None:
    found = messages_of(scanner, Path(virt_steward.__file__).parent)
    assert {one.group for one in found} == set(scanner.GROUPS)
