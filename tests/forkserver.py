"""Starts `virt-steward` as forks of a process that has imported it already, which saves most of the CPU of a start.

Importing takes half a second of CPU and the tests start hundreds of commands. A fork has a pid, an environment, files
and signals of its own and runs the same `main`, so that a test sees what it would see of the installed program. What a
fork does not show is how Python itself comes up: `on_a_terminal` and `tests/demo/test_packaging.py` start the program.
"""

import asyncio
import atexit
import ctypes
import gc
import os
import pkgutil
import select
import signal
import socket
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec

import virt_steward
from tests.eventually import eventually_blocking
from tests.image import allocator_settings
from virt_steward_demo.local.die_with_parent import PR_SET_PDEATHSIG
from virt_steward_demo.local.processes import Child

ROOT = Path(__file__).parents[1]
PATIENCE = 120
"""Seconds until its start counts as failed: it imports everything, which took 25 s on a busy machine."""
MAX_REQUEST = 200_000
"""Bytes of arguments and environment, in one packet."""
MAX_NUMBER = 64
HOOK = "FORK_HOOK"
"""The name of a variable: MODULE:FUNCTION is called in the fork first."""


class Start(msgspec.Struct):
    """What is to be run; its standard files come with the message."""

    argv: list[str]
    env: dict[str, str]


class Fork:
    """A running command. The server sends its pid, and its exit code when it has ended."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._exit_code: int | None = None
        self.pid = int(connection.recv(MAX_NUMBER))

    @property
    def alive(self) -> bool:
        if self._exit_code is None and self._has_news():
            self._note(self._connection.recv(MAX_NUMBER))
        return self._exit_code is None

    def _has_news(self) -> bool:
        """By poll, since select knows no descriptor above 1023."""
        poll = select.poll()
        poll.register(self._connection, select.POLLIN)
        return bool(poll.poll(0))

    @property
    def exit_code(self) -> int:
        """Waits for it. It is the negated number of a signal if that ended it."""
        if self._exit_code is None:
            self._note(self._connection.recv(MAX_NUMBER))
        assert self._exit_code is not None
        return self._exit_code

    async def communicate(self, *, within: float) -> int:
        """The exit code. It is killed if it takes longer, or if the caller is cancelled."""
        self._connection.setblocking(False)
        try:
            async with asyncio.timeout(within):
                self._note(await asyncio.get_running_loop().sock_recv(self._connection, MAX_NUMBER))
        except BaseException:
            self._connection.setblocking(True)
            self.kill()
            raise
        return self.exit_code

    def kill(self) -> None:
        """End it and what it has started by SIGKILL."""
        if self.alive:
            os.kill(self.pid, signal.SIGKILL)
            with suppress(ProcessLookupError):  # there is no such group if it was killed before it became a session
                os.killpg(self.pid, signal.SIGKILL)
        _ = self.exit_code  # waits until it is gone

    def _note(self, message: bytes) -> None:
        self._exit_code = int(message)
        self._connection.close()


class ForkServer:
    """The process that forks; it ends with this one."""

    def __init__(self) -> None:
        self._folder = TemporaryDirectory(prefix="forkserver-")  # removed when this process ends
        self._path = Path(self._folder.name) / "socket"
        argv = [sys.executable, "-m", "tests.forkserver", str(self._path)]
        env = {**os.environ, **allocator_settings()}
        self._process = Child(argv, log=Path(self._folder.name) / "log", cwd=ROOT, env=env)
        atexit.register(self._process.kill)
        assert eventually_blocking(self._path.exists, within=PATIENCE), self._process.last_output()

    def start(self, argv: list[str], env: Mapping[str, str], files: tuple[int, int, int]) -> Fork:
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        connection.connect(str(self._path))
        socket.send_fds(connection, [msgspec.msgpack.encode(Start(argv, dict(env)))], files)
        return Fork(connection)


@cache
def fork_server() -> ForkServer:
    """One per process, started when it is first needed."""
    return ForkServer()


def import_everything() -> None:
    for module in pkgutil.walk_packages(virt_steward.__path__, "virt_steward."):
        if not module.name.endswith("__main__") and ".assets." not in module.name:
            import_module(module.name)
    gc.collect()
    gc.freeze()  # so that a fork does not copy pages only to count references


def serve(path: str) -> Start:
    """Fork for every connection. Return in the fork only, with what it has to run."""
    awake, wake = os.pipe()
    os.set_blocking(wake, False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(wake)
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    listener.bind(f"{path}.starting")
    listener.listen(64)
    Path(f"{path}.starting").rename(path)
    clients: dict[int, socket.socket] = {}
    while True:
        ready, _, _ = select.select([listener, awake], [], [])
        if awake in ready:
            os.read(awake, 4096)
            _report_exits(clients)
        if listener in ready:
            client, _ = listener.accept()
            message, files, _, _ = socket.recv_fds(client, MAX_REQUEST, 3)
            if (pid := os.fork()) == 0:
                return _become(msgspec.msgpack.decode(message, type=Start), files)
            clients[pid] = client
            client.send(str(pid).encode())
            for file in files:
                os.close(file)


def _report_exits(clients: dict[int, socket.socket]) -> None:
    while clients:
        pid, status = os.waitpid(-1, os.WNOHANG)
        if not pid:
            return
        with clients.pop(pid) as client:
            client.send(str(os.waitstatus_to_exitcode(status)).encode(), socket.MSG_NOSIGNAL)


def _become(start: Start, files: list[int]) -> Start:
    """Make this fork look as if it had just been started."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    os.setsid()
    for standard, file in enumerate(files):
        os.dup2(file, standard)
    os.closerange(3, 1024)
    os.environ.clear()
    os.environ.update(start.env)
    time.tzset()
    sys.argv = ["virt-steward", *start.argv]
    return start


def prepare(env: Mapping[str, str]) -> None:
    """Call the function that HOOK names, such as one that plants a bug, before the program runs."""
    if hook := env.get(HOOK):
        module, _, function = hook.partition(":")
        getattr(import_module(module), function)()


if __name__ == "__main__":
    import_everything()
    prepare(serve(sys.argv[1]).env)
    from virt_steward.cli.main import main

    main()
