"""The control plane behind `virt-steward local`: one per user, started and stopped by separate commands."""

import contextlib
import errno
import os
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import msgspec

from virt_steward_demo.local.binaries import Binaries
from virt_steward_demo.local.errors import LocalError
from virt_steward_demo.local.private import make_folder, open_log

STOP_SECONDS = 20
POLL_SECONDS = 0.05


class ClusterRunning(msgspec.Struct, frozen=True, tag_field="state", tag="running"):
    """A control plane that is up, as its supervisor wrote it down."""

    since: str
    version: str
    server: str
    kubeconfig: str
    data: str
    kept: bool
    """Whether the data outlives the control plane."""
    pids: dict[str, int]


class StartFailed(msgspec.Struct, frozen=True, tag_field="state", tag="failed"):
    """Why a supervisor gave up."""

    because: str


class Starting(msgspec.Struct, frozen=True, tag_field="state", tag="starting"):
    """Somebody is bringing it up right now."""


class Stopped(msgspec.Struct, frozen=True, tag_field="state", tag="stopped"):
    """Nothing runs."""


Status = ClusterRunning | Starting | Stopped


@dataclass(frozen=True, slots=True)
class LocalSession:
    """The files by which the commands and the supervisor find each other."""

    folder: Path

    @property
    def run_folder(self) -> Path:
        return self.folder / "run"

    @property
    def kept_data(self) -> Path:
        return self.folder / "data"

    @property
    def record(self) -> Path:
        return self.folder / "session.json"

    @property
    def lock(self) -> Path:
        return self.folder / "supervisor.lock"

    @property
    def log(self) -> Path:
        return self.folder / "supervisor.log"

    @property
    def stop_requests(self) -> Path:
        """A named pipe: the supervisor reads it as long as it lives, so no process id need be trusted."""
        return self.folder / "stop"

    def status(self) -> Status:
        pipe = self._open_stop_requests()
        if pipe is None:
            return Stopped()
        os.close(pipe)
        try:
            return msgspec.json.decode(self.record.read_bytes(), type=ClusterRunning)
        except FileNotFoundError:
            return Starting()

    def up(self, binaries: Binaries, data: Path | None) -> ClusterRunning:
        """Start a supervisor and return when the control plane works; `data` is kept when it stops."""
        make_folder(self.folder)
        argv = [sys.executable, "-m", "virt_steward_demo.local.supervisor", str(self.folder), str(binaries.folder)]
        if data:
            argv.append(str(data.absolute()))
        answers, telling = os.pipe()
        with open_log(self.log) as log:
            supervisor = subprocess.Popen(  # noqa: S603 - no shell, and the arguments are ours
                argv,
                stdin=subprocess.DEVNULL,
                stdout=telling,
                stderr=log,
                start_new_session=True,  # it outlives this command and its terminal
            )
        os.close(telling)
        try:
            with os.fdopen(answers, "rb") as pipe:
                return self._outcome(pipe.readline())
        except BaseException:
            supervisor.terminate()  # also when the user has lost patience
            supervisor.wait(STOP_SECONDS)
            raise

    def down(self) -> Status:
        """Ask the supervisor to stop and wait until all is gone; answer what was there before."""
        before = self.status()
        pipe = self._open_stop_requests()
        if pipe is None:
            return Stopped()
        with contextlib.suppress(BrokenPipeError):  # it has just ended by itself
            os.write(pipe, b"stop\n")
        os.close(pipe)
        deadline = time.monotonic() + STOP_SECONDS
        while not isinstance(self.status(), Stopped):
            if time.monotonic() > deadline:
                raise LocalError(f"the control plane does not stop within {STOP_SECONDS} s: see {self.log}")
            time.sleep(POLL_SECONDS)
        return before

    def _outcome(self, told: bytes) -> ClusterRunning:
        if not told:
            raise LocalError(f"the supervisor of the control plane ended without a word: see {self.log}")
        outcome: ClusterRunning | StartFailed = msgspec.json.decode(told, type=ClusterRunning | StartFailed)
        match outcome:
            case ClusterRunning() as running:
                return running
            case StartFailed() as failed:
                raise LocalError(failed.because)

    def _open_stop_requests(self) -> int | None:
        try:
            return os.open(self.stop_requests, os.O_WRONLY | os.O_NONBLOCK)
        except FileNotFoundError:
            return None
        except OSError as error:
            if error.errno == errno.ENXIO:  # nobody reads it
                return None
            raise
