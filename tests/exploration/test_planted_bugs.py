"""The exploration finds planted bugs that chaos can miss, as its checker must allow for old views."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.chaos.mutations import MUTATIONS

HERE = Path(__file__).parent
PLANTED = """
import sys, pytest
from tests.chaos.mutations import MUTATIONS
if sys.argv[1]:
    MUTATIONS[sys.argv[1]].plant()
sys.exit(pytest.main(["-n0", "-q", "-x", "-p", "no:cacheprovider", *sys.argv[2:]]))
"""
EXPLORED = {
    "": "passed",
    "ignore-window": "written in spite of a freeze, a window or a gate",
    "ignore-gate": "written in spite of a freeze, a window or a gate",
    "count-too-few": "a plan is executed that too few have agreed to",
}


@pytest.mark.parametrize("name", EXPLORED, ids=lambda name: name or "none")
def test_exploration_finds(name: str) -> None:
    assert not name or name in MUTATIONS
    command = [sys.executable, "-c", PLANTED, name, str(HERE / "test_advisor.py")]
    ended = subprocess.run(command, cwd=HERE.parent.parent, capture_output=True, text=True, check=False, timeout=300)
    assert ended.returncode == (1 if name else 0), ended.stdout + ended.stderr
    assert EXPLORED[name] in ended.stdout
