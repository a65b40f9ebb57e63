"""The commands of a build, one after another: logged, shown while they run, and gone with us."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

from virt_steward_demo.local.errors import LocalError
from virt_steward_demo.local.processes import Child
from virt_steward_demo.local.progress import ProgressPrinter

POLL_SECONDS = 0.1


@dataclass(frozen=True, slots=True)
class Steps:
    """Runs commands in one folder and with one environment, all into one log file."""

    folder: Path
    env: Mapping[str, str]
    log: Path
    narrator: ProgressPrinter

    def run(self, phase: str, argv: Sequence[str], *, total: int | None = None) -> list[str]:
        """Run one command to its end, show the lines it has printed of a total, and answer them."""
        before = self.log.stat().st_size if self.log.exists() else 0
        child = Child(argv, log=self.log, cwd=self.folder, env=self.env)
        try:
            with self.log.open(errors="replace") as output:
                output.seek(before)
                printed = self._follow(child, output, phase, total)
        except BaseException:
            child.kill()
            raise
        if child.exit_code != 0:
            last = next((line for line in reversed(printed) if line), "it said nothing")
            raise LocalError(f"{phase} failed: {last} (all of it is in {self.log}; put that right and try again)")
        return printed

    def _follow(self, child: Child, output: TextIO, phase: str, total: int | None) -> list[str]:
        text = ""
        running = True
        while running:
            running = child.alive  # asked before the read, so that nothing printed at the end is missed
            text += output.read()
            self.narrator.show(phase, text.count("\n"), total)
            if running:
                time.sleep(POLL_SECONDS)
        return text.splitlines()
