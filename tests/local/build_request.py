"""A process that asks for the programs: SOURCES CACHE GO. It prints their folder, or why not."""

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
    """A `go` that is there already."""

    go: Path

    def install(self, folder: Path, steps: BuildSteps) -> Path:
        steps.run("getting the toolchain", ["/bin/mkdir", str(folder)])
        return self.go


def main(sources: str, cache: str, go: str) -> None:
    workshop = Builder(Path(cache), InstalledGo(Path(go)), os.environ, ProgressPrinter())
    try:
        print(workshop.build(ControlPlaneRecipe(Path(sources))))  # noqa: T201 - the answer
    except LocalError as error:
        sys.exit(str(error))


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.default_int_handler)  # background jobs of a shell are started deaf to it
    main(*sys.argv[1:])
