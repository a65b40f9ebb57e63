"""A Go program for tests: our own module pins its dependencies; it is built once and kept in the cache."""

import hashlib
import platform
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from virt_steward_demo.local.binaries import shipped_recipe
from virt_steward_demo.local.build import Builder, BuildSteps, PinnedGo, go_build
from virt_steward_demo.local.files import cache_folder
from virt_steward_demo.local.progress import ProgressPrinter

FLAGS = ("-trimpath", "-buildvcs=false", "-ldflags=-s -w")


@dataclass(frozen=True, slots=True)
class GoProgram:
    """One program, built with the toolchain of the control plane."""

    product: str
    sources: Path
    """The folder with go.mod and go.sum."""
    package: str
    headline: str
    toolchain: Path
    flags: tuple[str, ...] = FLAGS

    @property
    def name(self) -> str:
        own = sorted(self.sources.glob("*.go"))
        files = (self.sources / "go.mod", self.sources / "go.sum", self.toolchain, *own)
        inputs = repr((self.package, self.flags)).encode() + b"".join(path.read_bytes() for path in files)
        return f"{self.product}-{hashlib.sha256(inputs).hexdigest()[:16]}-{sys.platform}-{platform.machine()}"

    def compile(self, go: Path, scratch: Path, steps: BuildSteps) -> Path:
        programs = scratch / "programs"
        programs.mkdir()
        go_build(go, [*self.flags, "-o", f"{programs}/"], [self.package], steps)
        return programs

    def built(self, env: Mapping[str, str]) -> Path:
        """The folder with the program; builds it first if needed."""
        return Builder(cache_folder(env), PinnedGo(self.toolchain), env, ProgressPrinter()).build(self)


def usual_toolchain() -> Path:
    return shipped_recipe().toolchain
