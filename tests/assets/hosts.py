"""A host as its scripts see it: a folder that stands for its root, with programs of our own in it."""

import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import virt_steward.assets

ASSETS = Path(virt_steward.assets.__file__).parent
SCRIPTS = {path.name: path for path in ASSETS.rglob("kubevirt-*.py")}


@dataclass(frozen=True, slots=True)
class FakeHost:
    root: Path

    def write(self, path: str, text: str) -> None:
        target = self.root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)

    def read(self, path: str) -> str:
        return (self.root / path).read_text().strip()

    def has_memory(self, gib: float) -> None:
        self.write("proc/meminfo", f"MemTotal:       {int(gib * 2**20)} kB\nMemFree:        1024 kB\n")

    def has_program(self, name: str, body: str) -> None:
        self.write(f"usr/bin/{name}", f"#!/bin/sh\nroot={self.root}\n{body}\n")
        (self.root / "usr/bin" / name).chmod(0o755)

    def run(self, script: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, str(SCRIPTS[script]), str(self.root)]
        return subprocess.run(command, check=False, capture_output=True, text=True, timeout=60)
