"""A process that requests a build: SOURCES CACHE GO. It prints the folder of the programs, or the error."""

import os
import signal
import sys
from dataclasses import dataclass
from pathlib import Path

from virt_steward_demo.local import LocalError
from virt_steward_demo.local.binaries import ControlPlaneRecipe
from virt_steward_demo.local.build import Builder, BuildSteps
from virt_steward_demo.local.progress import ProgressPrinter


@dataclass(frozen=True, slots=True)
class InstalledGo:
    """A `go` that is already installed."""

    go: Path

    def install(self, folder: Path, steps: BuildSteps) -> Path:
        steps.run("installing the toolchain", ["/bin/mkdir", str(folder)])
        return self.go


def main(sources: str, cache: str, go: str) -> None:
    builder = Builder(Path(cache), InstalledGo(Path(go)), os.environ, ProgressPrinter())
    try:
        print(builder.build(ControlPlaneRecipe(Path(sources))))  # noqa: T201 - the result
    except LocalError as error:
        sys.exit(str(error))


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.default_int_handler)  # background jobs of a shell ignore SIGINT
    main(*sys.argv[1:])
