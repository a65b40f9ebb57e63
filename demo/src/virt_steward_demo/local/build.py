"""Build programs from Go sources, once, however many processes ask at the same time.

A build happens in a folder beside its target and is renamed when complete, so that what looks finished is.
"""

import fcntl
import os
import shutil
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

from virt_steward_demo.local.private import make_folder
from virt_steward_demo.local.progress import ProgressPrinter
from virt_steward_demo.local.recipe import go_environment
from virt_steward_demo.local.steps import Steps
from virt_steward_demo.local.toolchain import Toolchain


class Buildable(Protocol):
    """What is built, and how."""

    @property
    def name(self) -> str:
        """Its folder in the cache."""

    @property
    def product(self) -> str:
        """What people call it."""

    @property
    def headline(self) -> str:
        """The same with its version and the time that it takes."""

    @property
    def sources(self) -> Path:
        """Where the commands of the build run."""

    def compile(self, go: Path, scratch: Path, steps: Steps) -> Path:
        """Build in a folder that goes away afterwards, and answer the part of it that is to be kept."""


class Workshop:
    """Builds into one cache folder."""

    def __init__(self, cache: Path, toolchain: Toolchain, env: Mapping[str, str], narrator: ProgressPrinter) -> None:
        self._cache = cache
        self._toolchain = toolchain
        self._env = env
        self._narrator = narrator

    def build(self, recipe: Buildable) -> Path:
        """Answer the folder with the programs, built by us or by whoever was faster."""
        make_folder(self._cache)
        target = self._cache / recipe.name
        if target.is_dir():
            return target
        with self._alone(recipe):
            if not target.is_dir():
                self._build(recipe, target)
        return target

    @contextmanager
    def _alone(self, recipe: Buildable) -> Iterator[None]:
        with (self._cache / f"{recipe.name}.lock").open("a+") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                lock.seek(0)
                builder = lock.read() or "unknown"
                self._narrator.say(f"waiting for process {builder}, which builds {recipe.product} already")
                fcntl.flock(lock, fcntl.LOCK_EX)
            lock.truncate(0)
            lock.write(str(os.getpid()))
            lock.flush()
            yield

    def _build(self, recipe: Buildable, target: Path) -> None:
        for leftover in self._cache.glob(f"{target.name}.building-*"):  # of builders that were killed
            shutil.rmtree(leftover, ignore_errors=True)
        started = time.monotonic()
        self._narrator.say(f"building {recipe.headline}")
        # Kept when a build is interrupted, so that the next one goes on from there; of no use after success,
        # since another version shares next to nothing with this one.
        compiled = self._cache / f"{target.name}.gocache"
        log = self._cache / f"{target.name}.log"
        log.unlink(missing_ok=True)
        scratch = Path(tempfile.mkdtemp(prefix=f"{target.name}.building-", dir=self._cache))
        try:
            steps = Steps(recipe.sources, go_environment(self._env, scratch, compiled), log, self._narrator)
            with self._narrator:
                go = self._toolchain.install(scratch / "toolchain", steps)
                programs = recipe.compile(go, scratch, steps)
            programs.rename(target)
        finally:
            shutil.rmtree(scratch, ignore_errors=True)  # the toolchain goes too: 240 MB that no later run needs
        shutil.rmtree(compiled, ignore_errors=True)
        log.unlink()
        self._narrator.say(f"built {recipe.product} in {time.monotonic() - started:.0f} s: {target}")
