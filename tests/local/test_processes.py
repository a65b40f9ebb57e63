"""Children that do not outlive their parent."""

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from tests.eventually import eventually_blocking
from virt_steward_demo.local import die_with_parent
from virt_steward_demo.local.processes import Child

START_AND_TELL = """
import signal, sys
from pathlib import Path
from virt_steward_demo.local.processes import Child
print(Child(["/bin/sh", "-c", "echo started; exec sleep 60"], log=Path(sys.argv[1])).pid, flush=True)
signal.pause()
"""


def is_running(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"  # a zombie is only waiting to be noticed


def test_child_exits_with_killed_parent(tmp_path: Path) -> None:
    log = tmp_path / "log"
    argv = [sys.executable, "-c", START_AND_TELL, str(log)]
    with subprocess.Popen(argv, stdout=subprocess.PIPE) as parent:
        assert parent.stdout is not None
        child = int(parent.stdout.readline())
        assert eventually_blocking(lambda: log.read_text() == "started\n")
        parent.send_signal(signal.SIGKILL)
    assert eventually_blocking(lambda: not is_running(child))


def test_child_does_not_start_without_parent(tmp_path: Path) -> None:
    stranger = str(os.getppid())
    argv = [sys.executable, "-I", "-S", die_with_parent.__file__, stranger, "/bin/touch", str(tmp_path / "started")]
    done = subprocess.run(argv, capture_output=True, check=False)
    assert done.returncode == 1
    assert not (tmp_path / "started").exists()


def test_child_kill_reaches_grandchildren(tmp_path: Path) -> None:
    log = tmp_path / "log"
    child = Child(["/bin/sh", "-c", "sleep 60 & echo $!; wait"], log=log)
    assert eventually_blocking(lambda: log.read_text().endswith("\n"))
    child.kill()
    assert eventually_blocking(lambda: not is_running(int(log.read_text())))


def test_child_stop_kills_after_grace(tmp_path: Path) -> None:
    log = tmp_path / "log"
    child = Child(["/bin/sh", "-c", "trap '' TERM; echo deaf; sleep 5"], log=log)
    assert eventually_blocking(lambda: log.read_text() == "deaf\n")
    child.stop(grace=0.1)
    assert child.exit_code == -signal.SIGKILL


def test_child_cannot_be_started_from_thread(tmp_path: Path) -> None:
    refusals: list[str] = []

    def try_it() -> None:
        with pytest.raises(RuntimeError) as refused:
            Child(["/bin/true"], log=tmp_path / "log")
        refusals.append(str(refused.value))

    thread = threading.Thread(target=try_it)
    thread.start()
    thread.join()
    assert refusals == ["children are started from the main thread"]
