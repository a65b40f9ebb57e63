import os
import signal
import subprocess
import sys

import pytest

from virt_steward.kube.errors import BadConfig
from virt_steward.kube.faults import VARIABLE, arm, reach

PROGRAM = """
import os
from virt_steward.kube.faults import arm, reach
print(arm(os.environ), flush=True)
for number in range(1, 5):
    reach("other.point")
    reach("plan.sent")
    print(number, flush=True)
"""
PATIENCE = 20


def started(fault: str) -> subprocess.Popen[str]:
    env = {**os.environ, VARIABLE: fault}
    return subprocess.Popen([sys.executable, "-c", PROGRAM], env=env, stdout=subprocess.PIPE, text=True)


@pytest.mark.parametrize(
    ("fault", "printed", "code"),
    [
        pytest.param("plan.sent:kill", ["plan.sent"], -signal.SIGKILL, id="the first time"),
        pytest.param("plan.sent#3:kill", ["plan.sent", "1", "2"], -signal.SIGKILL, id="the third time"),
        pytest.param("never.reached:kill", ["never.reached", "1", "2", "3", "4"], 0, id="a point that is not reached"),
    ],
)
def test_fault_kills_process(fault: str, printed: list[str], code: int) -> None:
    with started(fault) as process:
        out, _ = process.communicate(timeout=PATIENCE)
    assert (out.split(), process.returncode) == (printed, code)


def test_fault_stops_process() -> None:
    with started("plan.sent#2:stop") as process:
        _, status = os.waitpid(process.pid, os.WUNTRACED)
        assert os.WIFSTOPPED(status)
        process.send_signal(signal.SIGCONT)
        out, _ = process.communicate(timeout=PATIENCE)
    assert (out.split(), process.returncode) == (["plan.sent", "1", "2", "3", "4"], 0)


@pytest.mark.parametrize(
    "text", ["plan.sent", "plan.sent:", "plan.sent:explode", ":kill", "plan.sent#x:kill", "#1:kill", "a#0:kill"]
)
def test_fault_with_invalid_text_is_refused(text: str) -> None:
    with pytest.raises(BadConfig, match="expected POINT"):
        arm({VARIABLE: text})


def test_fault_does_nothing_unless_armed() -> None:
    assert arm({}) is None
    reach("plan.sent")
