"""The time of the second start of the demo, on an idle machine."""

import time
from pathlib import Path

from tests.cli.demos import a_demo

MAX_SECONDS = 15.0
"""From the start of the process until it prints the address of the console."""


def test_demo_second_start_is_fast(tmp_path: Path) -> None:
    with a_demo(tmp_path / "first"):
        pass
    began = time.monotonic()
    with a_demo(tmp_path / "second"):
        took = time.monotonic() - began
    print(f"second start of the demo: {took:.1f} s")
    assert took <= MAX_SECONDS
