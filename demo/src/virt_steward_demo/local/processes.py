"""Child processes that are killed when their parent exits, however it exits.

On Linux the kernel does that, also after a SIGKILL of the parent. On other systems an orderly exit of the parent
kills the children, and a SIGKILL of the parent does not.
"""

import atexit
import os
import signal
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Mapping, Sequence
from pathlib import Path

from virt_steward_demo.local import die_with_parent
from virt_steward_demo.local.files import open_log

LAST_LINES = 5


class Child:
    """A running program whose output goes to a log file."""

    def __init__(
        self,
        argv: Sequence[str],
        *,
        log: Path,
        cwd: Path | None = None,
        env: Mapping[str, str] | None = None,
    ) -> None:
        if threading.current_thread() is not threading.main_thread():
            # The kernel kills the child when the thread that started it ends, and other threads end early.
            raise RuntimeError("children are started from the main thread")
        self.name = Path(argv[0]).name
        self.log = log
        shim = [sys.executable, "-I", "-S", die_with_parent.__file__, str(os.getpid())]
        with open_log(log) as output:
            self._process = subprocess.Popen(  # noqa: S603 - no shell, and the arguments are ours
                [*shim, *argv],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                cwd=cwd,
                env=env,
                start_new_session=True,  # Ctrl-C reaches only the parent, which then stops its children in order
                umask=0o077,
            )
        if sys.platform != "linux":
            atexit.register(self.kill)

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def alive(self) -> bool:
        return self._process.poll() is None

    @property
    def exit_code(self) -> int:
        return self._process.wait()

    def last_output(self) -> str:
        """The end of the log, as one line."""
        with self.log.open(errors="replace") as log:
            return " / ".join(line.strip() for line in deque(log, LAST_LINES))

    def freeze(self) -> None:
        """Send SIGSTOP and wait until it has taken effect: on a busy machine the program may answer once more."""
        self._process.send_signal(signal.SIGSTOP)
        if sys.platform == "linux" and self.alive:
            os.waitid(os.P_PID, self.pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)

    def thaw(self) -> None:
        self._process.send_signal(signal.SIGCONT)

    def stop(self, grace: float) -> None:
        """Send SIGTERM, and SIGKILL after `grace` seconds."""
        self._process.terminate()
        try:
            self._process.wait(grace)
        except subprocess.TimeoutExpired:
            self.kill()

    def kill(self) -> None:
        """Send SIGKILL to the program and to the processes that it has started."""
        if self.alive:
            os.killpg(self.pid, signal.SIGKILL)
        self._process.wait()
