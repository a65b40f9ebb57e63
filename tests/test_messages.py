"""How docs/messages.py finds messages in source code."""

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

import virt_steward

SCRIPT = Path(__file__).parents[1] / "docs" / "messages.py"
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
def scanner() -> ModuleType:
    spec = importlib.util.spec_from_file_location("docs_messages", SCRIPT)
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


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
        pytest.param("Check('In a window', 'opens at noon')", [("", "In a window"), ("", "opens at noon")], id="check"),
        pytest.param("raise BadFile(str(error))\nprint('not a message')", [], id="nothing"),
    ],
)
def test_messages_finds_text(scanner: ModuleType, tmp_path: Path, code: str, expected: list[tuple[str, str]]) -> None:
    (tmp_path / "base.py").write_text(BASE)
    (tmp_path / "module.py").write_text(code)
    assert [(one.reason, one.text) for one in scanner.messages(tmp_path)] == expected


def test_messages_include_texts_of_messages_modules(scanner: ModuleType, tmp_path: Path) -> None:
    (tmp_path / "messages.py").write_text("DONE = 'all is done'\ndef late(x):\n    return f'{x} is late today'\n")
    assert [one.text for one in scanner.messages(tmp_path)] == ["all is done", "{x} is late today"]


def test_messages_of_the_source_fill_every_group(scanner: ModuleType) -> None:
    found = scanner.messages(Path(virt_steward.__file__).parent)
    assert {one.group for one in found} == set(scanner.GROUPS)
