"""The times of the demo on an idle machine: of its second start, and of the tour through its stories."""

import re
import subprocess
import sys
import time
from pathlib import Path

from tests.cli.demos import a_demo, keeping_all_in

MAX_SECONDS = 15.0
"""From the start of the process until it prints the address of the console."""
TOUR_SECONDS = 180


def test_demo_second_start_is_fast(tmp_path: Path) -> None:
    with a_demo(tmp_path / "first"):
        pass
    began = time.monotonic()
    with a_demo(tmp_path / "second"):
        took = time.monotonic() - began
    print(f"second start of the demo: {took:.1f} s")
    assert took <= MAX_SECONDS


def test_every_story_of_the_tour_comes_true_within_three_minutes(tmp_path: Path) -> None:
    argv = [sys.executable, "-m", "virt_steward", "demo", "--tour"]
    began = time.monotonic()
    ended = subprocess.run(argv, env=keeping_all_in(tmp_path), capture_output=True, text=True, check=False, timeout=240)
    took = time.monotonic() - began
    assert ended.returncode == 0, f"{ended.stdout[-2000:]}\n{ended.stderr[-2000:]}"
    told = re.search(r"(\d+) checks passed in (\d+) s", ended.stdout)
    assert told
    assert ended.stdout.count("✓") == int(told[1])
    assert int(told[2]) <= took <= TOUR_SECONDS
