"""What promtool is built from: its module at the version of go.mod, with the checksums of go.sum."""

import hashlib
import platform
import re
import sys
from dataclasses import dataclass
from pathlib import Path

from virt_steward.local.recipe import go_build
from virt_steward.local.steps import Steps

PACKAGE = "github.com/prometheus/prometheus/cmd/promtool"
# Rules need no discovery of targets, which would bring the libraries of every cloud.
FLAGS = ("-trimpath", "-buildvcs=false", "-ldflags=-s -w", "-tags=remove_all_sd")


@dataclass(frozen=True, slots=True)
class Recipe:
    """One program, built by the toolchain that the control plane is built with."""

    toolchain: Path

    @property
    def name(self) -> str:
        files = (self.sources / "go.mod", self.sources / "go.sum", self.toolchain)
        ingredients = repr((PACKAGE, FLAGS)).encode() + b"".join(path.read_bytes() for path in files)
        return f"promtool-{hashlib.sha256(ingredients).hexdigest()[:16]}-{sys.platform}-{platform.machine()}"

    @property
    def product(self) -> str:
        return "promtool"

    @property
    def headline(self) -> str:
        version = re.findall(r"prometheus/prometheus (v\S+)", (self.sources / "go.mod").read_text())[0]
        return f"{self.product} {version} (about 2 minutes on two cores, once)"

    @property
    def sources(self) -> Path:
        return Path(__file__).parent

    def compile(self, go: Path, scratch: Path, steps: Steps) -> Path:
        programs = scratch / "programs"
        programs.mkdir()
        go_build(go, [*FLAGS, "-o", f"{programs}/"], [PACKAGE], steps)
        return programs
