"""How long somebody waits who starts the demo again, on a machine that does nothing else."""

import time
from pathlib import Path

from tests.cli.demos import a_demo

AT_MOST = 15.0
"""Seconds from the start of the process until it has said where the console is."""


def test_a_second_start_of_the_demo_takes_no_longer_than_a_newcomer_waits(tmp_path: Path) -> None:
    with a_demo(tmp_path / "first"):
        pass
    began = time.monotonic()
    with a_demo(tmp_path / "second"):
        took = time.monotonic() - began
    print(f"the demo, started again: {took:.1f} s")
    assert took <= AT_MOST
