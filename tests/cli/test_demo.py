"""The front door: what a newcomer starts first, and the tour that says whether all of it works."""

import os
import re
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.eventually import eventually
from virt_steward.local.processes import Child

LINK = re.compile(r"https?://127\.0\.0\.1:\d+/\S*")


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """The demo keeps all that it makes in a folder that we can look into."""
    return {**os.environ, "TMPDIR": str(tmp_path)}


def test_every_story_of_the_tour_comes_true(environment: dict[str, str]) -> None:
    argv = [sys.executable, "-m", "virt_steward", "demo", "--tour"]
    ended = subprocess.run(argv, env=environment, capture_output=True, text=True, check=False, timeout=400)
    assert ended.returncode == 0, f"{ended.stdout[-2000:]}\n{ended.stderr[-2000:]}"
    told = re.search(r"(\d+) things were told and came true, in (\d+) s", ended.stdout)
    assert told
    assert ended.stdout.count("✓") == int(told[1])


@pytest.fixture
def demo(environment: dict[str, str], tmp_path: Path) -> Iterator[Child]:
    argv = [sys.executable, "-m", "virt_steward", "demo", "--console-bind-address", "127.0.0.1:0"]
    child = Child(argv, log=tmp_path / "demo.log", env=environment)
    yield child
    child.kill()


def test_the_demo_says_what_to_try_opens_the_console_and_leaves_nothing_behind(demo: Child, tmp_path: Path) -> None:
    assert eventually(lambda: "Ctrl-C stops it" in demo.log.read_text(), within=120), demo.log.read_text()
    said = demo.log.read_text()
    link = LINK.search(said[said.index("console") :])
    assert link
    with urllib.request.urlopen(link[0], timeout=30) as page:
        assert page.status == 200
    os.kill(demo.pid, signal.SIGINT)
    assert eventually(lambda: not demo.alive, within=30)
    assert demo.log.read_text().endswith("nothing is left behind\n")
    assert [one.name for one in tmp_path.iterdir() if one.name.startswith("virt-steward")] == []
