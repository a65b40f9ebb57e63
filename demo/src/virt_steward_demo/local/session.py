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

from virt_steward_demo.local import LocalError
from virt_steward_demo.local.binaries import Binaries
from virt_steward_demo.local.files import make_folder, open_log

STOP_SECONDS = 20
POLL_SECONDS = 0.05


class ClusterRunning(msgspec.Struct, frozen=True, tag_field="state", tag="running"):
    """A control plane that runs, as recorded by its supervisor."""

    since: str
    version: str
    server: str
    kubeconfig: str
    data: str
    kept: bool
    """Whether the data outlives the control plane."""
    pids: dict[str, int]


class StartFailed(msgspec.Struct, frozen=True, tag_field="state", tag="failed"):
    """The control plane could not be started."""

    message: str


class Starting(msgspec.Struct, frozen=True, tag_field="state", tag="starting"):
    """Another command is starting it."""


class Stopped(msgspec.Struct, frozen=True, tag_field="state", tag="stopped"):
    """No control plane runs."""


Status = ClusterRunning | Starting | Stopped


@dataclass(frozen=True, slots=True)
class LocalSession:
    """The files that the commands and the supervisor share."""

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
        """A named pipe that the supervisor reads while it runs. A pipe without a reader means that it has exited.

        A process id would not do: it may belong to another process by now.
        """
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
        """Start a supervisor and return when the control plane is ready; `data` is kept when it stops."""
        make_folder(self.folder)
        argv = [sys.executable, "-m", "virt_steward_demo.local.supervisor", str(self.folder), str(binaries.folder)]
        if data:
            argv.append(str(data.absolute()))
        result, supervisor_end = os.pipe()
        with open_log(self.log) as log:
            supervisor = subprocess.Popen(  # noqa: S603 - no shell, and the arguments are ours
                argv,
                stdin=subprocess.DEVNULL,
                stdout=supervisor_end,
                stderr=log,
                start_new_session=True,  # it outlives this command and its terminal
            )
        os.close(supervisor_end)
        try:
            with os.fdopen(result, "rb") as pipe:
                return self._outcome(pipe.readline())
        except BaseException:
            supervisor.terminate()  # also after Ctrl-C
            supervisor.wait(STOP_SECONDS)
            raise

    def down(self) -> Status:
        """Stop the supervisor, wait until everything has exited, and return the status from before."""
        before = self.status()
        pipe = self._open_stop_requests()
        if pipe is None:
            return Stopped()
        with contextlib.suppress(BrokenPipeError):  # it has just exited by itself
            os.write(pipe, b"stop\n")
        os.close(pipe)
        deadline = time.monotonic() + STOP_SECONDS
        while not isinstance(self.status(), Stopped):
            if time.monotonic() > deadline:
                raise LocalError(f"the control plane did not stop within {STOP_SECONDS} s; see {self.log}")
            time.sleep(POLL_SECONDS)
        return before

    def _outcome(self, line: bytes) -> ClusterRunning:
        if not line:
            raise LocalError(f"the supervisor of the control plane exited without a result; see {self.log}")
        outcome: ClusterRunning | StartFailed = msgspec.json.decode(line, type=ClusterRunning | StartFailed)
        match outcome:
            case ClusterRunning() as running:
                return running
            case StartFailed() as failed:
                raise LocalError(failed.message)

    def _open_stop_requests(self) -> int | None:
        try:
            return os.open(self.stop_requests, os.O_WRONLY | os.O_NONBLOCK)
        except FileNotFoundError:
            return None
        except OSError as error:
            if error.errno == errno.ENXIO:  # no process reads it
                return None
            raise
