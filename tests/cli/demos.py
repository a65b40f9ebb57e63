"""The demo as a newcomer starts it."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.eventually import eventually_blocking
from virt_steward_demo.local.processes import Child


@contextmanager
def a_demo(folder: Path) -> Iterator[Child]:
    """One that has said what to try. The folder is made for it, and its log is beside that."""
    folder.mkdir()
    argv = [sys.executable, "-m", "virt_steward", "demo", "--console-bind-address", "127.0.0.1:0"]
    child = Child(argv, log=folder.with_suffix(".log"), env=keeping_all_in(folder))
    try:
        assert eventually_blocking(lambda: "Ctrl-C stops it" in child.log.read_text(), within=120), (
            child.log.read_text()
        )
        yield child
    finally:
        child.kill()


def keeping_all_in(folder: Path) -> dict[str, str]:
    """The environment of a demo into whose folder we can look."""
    return {**os.environ, "TMPDIR": str(folder)}
