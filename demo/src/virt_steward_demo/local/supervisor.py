"""The process that owns a control plane started by `virt-steward local up`: SESSION_FOLDER BINARIES [DATA].

It prints one line of JSON to stdout: the running control plane, or why it failed. It exits on request, on SIGTERM, or
when one of its programs exits.
"""

import contextlib
import datetime as dt
import fcntl
import os
import select
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import NoReturn

import msgspec

from virt_steward_demo.local import LocalError
from virt_steward_demo.local.binaries import Binaries
from virt_steward_demo.local.controlplane import ControlPlane
from virt_steward_demo.local.files import write_file
from virt_steward_demo.local.session import ClusterRunning, LocalSession, StartFailed

CHECK_SECONDS = 1


class Terminated(BaseException):
    """SIGTERM was received. An exception, so that every `with` block stops what it has started."""


def main(folder: str, binaries: str, data: str | None = None) -> None:
    os.umask(0o077)
    session = LocalSession(Path(folder))
    try:
        with _only_one(session) as stop_requests:
            _supervise(session, Binaries(Path(binaries)), Path(data) if data else None, stop_requests)
    except LocalError as error:
        _print_result(StartFailed(str(error)))
        sys.exit(str(error))


@contextlib.contextmanager
def _only_one(session: LocalSession) -> Iterator[int]:
    """Hold the lock of the session, and the pipe for stop requests."""
    with session.lock.open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise LocalError("a control plane is already running: 'virt-steward local status' shows it") from None
        session.record.unlink(missing_ok=True)
        session.stop_requests.unlink(missing_ok=True)
        os.mkfifo(session.stop_requests, 0o600)
        # Open for writing too: without a writer, reading would report the end of the file at once.
        stop_requests = os.open(session.stop_requests, os.O_RDWR | os.O_NONBLOCK)
        try:
            yield stop_requests
        finally:
            session.record.unlink(missing_ok=True)
            # In this order: a pipe without a reader means that the next supervisor can start.
            fcntl.flock(lock, fcntl.LOCK_UN)
            os.close(stop_requests)


def _supervise(session: LocalSession, binaries: Binaries, data: Path | None, stop_requests: int) -> None:
    shutil.rmtree(session.run_folder, ignore_errors=True)
    signal.signal(signal.SIGTERM, _terminate)
    with contextlib.suppress(Terminated), ControlPlane(binaries, session.run_folder, data) as control_plane:
        running = ClusterRunning(
            since=dt.datetime.now(dt.UTC).isoformat(timespec="seconds"),
            version=_version(binaries),
            server=control_plane.server,
            kubeconfig=str(control_plane.kubeconfig),
            data=str(control_plane.data),
            kept=data is not None,
            pids={"supervisor": os.getpid(), **control_plane.pids},
        )
        write_file(session.record, msgspec.json.encode(running))
        _print_result(running)
        while not select.select([stop_requests], [], [], CHECK_SECONDS)[0]:
            control_plane.check()
    # The credentials are useless now. After a failure this line is not reached, and the logs are kept.
    shutil.rmtree(session.run_folder, ignore_errors=True)


def _terminate(number: int, _: FrameType | None) -> NoReturn:
    raise Terminated(number)


def _version(binaries: Binaries) -> str:
    """Ask the program itself: with KUBEBUILDER_ASSETS it is the user's."""
    argv = [str(binaries.program("kube-apiserver")), "--version"]
    answer = subprocess.run(argv, stdout=subprocess.PIPE, check=True, text=True)  # noqa: S603 - the program that was just started
    return answer.stdout.split()[-1]


def _print_result(outcome: ClusterRunning | StartFailed) -> None:
    """Print the result. The command that started us reads one line and closes the pipe."""
    with contextlib.suppress(OSError):
        os.write(sys.stdout.fileno(), msgspec.json.encode(outcome) + b"\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
