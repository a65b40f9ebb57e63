"""Run a program that the kernel kills as soon as its parent is gone: PARENT_PID PROGRAM [ARGUMENT...].

Executed as a script between fork and exec, because Python code in a forked child of a threaded process is not safe.
"""

import ctypes
import os
import signal
import sys

PR_SET_PDEATHSIG = 1


def main(parent: int, program: list[str]) -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:  # it died before the kernel knew whom to watch
        sys.exit(f"the parent {parent} is gone")
    os.execv(program[0], program)  # noqa: S606 - no shell is wanted


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2:])
