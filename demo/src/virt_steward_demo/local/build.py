"""Build programs from Go sources with a pinned toolchain, once, also if several processes ask at the same time.

A build runs in a folder beside its target and is renamed when complete, so an incomplete build never looks finished.
"""

import fcntl
import importlib.util
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, TextIO

from virt_steward_demo.local import LocalError
from virt_steward_demo.local.files import make_folder
from virt_steward_demo.local.processes import Child
from virt_steward_demo.local.progress import ProgressPrinter

POLL_SECONDS = 0.1
# They would change the result, or break a toolchain that is not the user's own.
DROPPED_VARIABLES = frozenset({"GOOS", "GOARCH", "GOROOT", "GOEXPERIMENT", "GOBIN", "GODEBUG"})


@dataclass(frozen=True, slots=True)
class BuildSteps:
    """Runs the commands of a build in one folder and with one environment, and logs all of them to one file."""

    folder: Path
    env: Mapping[str, str]
    log: Path
    progress: ProgressPrinter

    def run(self, step: str, argv: Sequence[str], *, total: int | None = None) -> list[str]:
        """Run one command to its end, show how many of `total` lines it has printed, and return the lines."""
        before = self.log.stat().st_size if self.log.exists() else 0
        child = Child(argv, log=self.log, cwd=self.folder, env=self.env)
        try:
            with self.log.open(errors="replace") as output:
                output.seek(before)
                printed = self._follow(child, output, step, total)
        except BaseException:
            child.kill()
            raise
        if child.exit_code != 0:
            last = next((line for line in reversed(printed) if line), "no output")
            raise LocalError(f"{step} failed: {last}; fix that and try again (the whole log is {self.log})")
        return printed

    def _follow(self, child: Child, output: TextIO, step: str, total: int | None) -> list[str]:
        text = ""
        running = True
        while running:
            running = child.alive  # checked before the read, so that no output at the end is missed
            text += output.read()
            self.progress.show(step, text.count("\n"), total)
            if running:
                time.sleep(POLL_SECONDS)
        return text.splitlines()


class Toolchain(Protocol):
    """Provides a `go` command."""

    def install(self, folder: Path, steps: BuildSteps) -> Path:
        """Install into the folder and return the path of `go`."""


class PinnedGo:
    """The Go toolchain of a hash-pinned requirements file, from the Python package index: no Go need be installed."""

    def __init__(self, requirements: Path) -> None:
        self._requirements = requirements

    def install(self, folder: Path, steps: BuildSteps) -> Path:
        options = ["--target", str(folder), "--require-hashes", "--only-binary", ":all:", "-r", str(self._requirements)]
        steps.run("installing the Go toolchain", [*_installer(), *options])
        return folder / "go" / "bin" / "go"


class Buildable(Protocol):
    """What is built, and how."""

    @property
    def name(self) -> str:
        """The name of its folder in the cache."""

    @property
    def product(self) -> str:
        """The name that messages use."""

    @property
    def headline(self) -> str:
        """The name with its version and the time that a build takes."""

    @property
    def sources(self) -> Path:
        """The folder in which the commands of the build run."""

    def compile(self, go: Path, scratch: Path, steps: BuildSteps) -> Path:
        """Build in a temporary folder and return the part of it to keep."""


class Builder:
    """Builds into one cache folder."""

    def __init__(self, cache: Path, toolchain: Toolchain, env: Mapping[str, str], progress: ProgressPrinter) -> None:
        self._cache = cache
        self._toolchain = toolchain
        self._env = env
        self._progress = progress

    def build(self, recipe: Buildable) -> Path:
        """Return the folder with the programs; build them unless they are cached or another process builds them."""
        make_folder(self._cache)
        target = self._cache / recipe.name
        if target.is_dir():
            return target
        with self._locked(recipe):
            if not target.is_dir():
                self._build(recipe, target)
        return target

    @contextmanager
    def _locked(self, recipe: Buildable) -> Iterator[None]:
        with (self._cache / f"{recipe.name}.lock").open("a+") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                lock.seek(0)
                builder = lock.read() or "unknown"
                self._progress.say(f"waiting for process {builder}, which is building {recipe.product}")
                fcntl.flock(lock, fcntl.LOCK_EX)
            lock.truncate(0)
            lock.write(str(os.getpid()))
            lock.flush()
            yield

    def _build(self, recipe: Buildable, target: Path) -> None:
        for leftover in self._cache.glob(f"{target.name}.building-*"):  # from builds that were killed
            shutil.rmtree(leftover, ignore_errors=True)
        started = time.monotonic()
        self._progress.say(f"building {recipe.headline}")
        # An interrupted build keeps its compiled packages, so that the next one continues. A successful build removes
        # them: another version shares almost nothing with this one.
        compiled = self._cache / f"{target.name}.gocache"
        log = self._cache / f"{target.name}.log"
        log.unlink(missing_ok=True)
        scratch = Path(tempfile.mkdtemp(prefix=f"{target.name}.building-", dir=self._cache))
        try:
            steps = BuildSteps(recipe.sources, go_environment(self._env, scratch, compiled), log, self._progress)
            with self._progress:
                go = self._toolchain.install(scratch / "toolchain", steps)
                programs = recipe.compile(go, scratch, steps)
            programs.rename(target)
        finally:
            shutil.rmtree(scratch, ignore_errors=True)  # with the toolchain: 240 MB that no later run needs
        shutil.rmtree(compiled, ignore_errors=True)
        log.unlink()
        self._progress.say(f"built {recipe.product} in {time.monotonic() - started:.0f} s: {target}")


def go_build(go: Path, flags: Sequence[str], packages: Sequence[str], steps: BuildSteps) -> None:
    """Compile, and show the progress."""
    tags = [flag for flag in flags if flag.startswith("-tags=")]  # they decide what is imported
    listed = steps.run("downloading modules", [str(go), "list", *tags, "-deps", *packages])
    total = sum(not line.startswith("go: ") for line in listed)  # lines with "go: " report downloads
    steps.run("compiling packages", [str(go), "build", "-v", *flags, *packages], total=total)


def go_environment(env: Mapping[str, str], scratch: Path, cache: Path) -> dict[str, str]:
    """Keep the user's settings for proxies and caches, and drop what would change the result."""
    kept = {name: value for name, value in env.items() if name not in DROPPED_VARIABLES}
    fixed = {
        "CGO_ENABLED": "0",
        "GOFLAGS": "-mod=readonly",
        "GOTOOLCHAIN": "local",
        "GOWORK": "off",
        "GOTMPDIR": str(scratch),
    }
    return {"GOCACHE": str(cache), **kept, **fixed}


def _installer() -> list[str]:
    if importlib.util.find_spec("uv"):
        return [sys.executable, "-m", "uv", "pip", "install", "--python", sys.executable]
    if uv := shutil.which("uv"):
        return [uv, "pip", "install", "--python", sys.executable]
    return [sys.executable, "-m", "pip", "install"]
