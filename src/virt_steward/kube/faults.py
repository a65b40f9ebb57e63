"""Named points at which a test can kill or stop this process; in production they cost one comparison.

`VIRT_STEWARD_FAULT=approve.sent:kill` ends the process by SIGKILL the first time that it reaches the point,
`approve.sent#3:stop` halts it by SIGSTOP the third time. One fault per process.
"""

from __future__ import annotations

import os
import re
import signal
from dataclasses import dataclass
from typing import TYPE_CHECKING

from virt_steward.kube.errors import BadConfig

if TYPE_CHECKING:
    from collections.abc import Mapping

VARIABLE = "VIRT_STEWARD_FAULT"
ACTIONS = {"kill": signal.SIGKILL, "stop": signal.SIGSTOP}


@dataclass(slots=True)
class Fault:
    """The signal for one point, and after how many passes."""

    point: str
    action: signal.Signals
    passes_left: int

    @classmethod
    def parse(cls, text: str) -> Fault:
        where, _, action = text.partition(":")
        point, _, nth = where.partition("#")
        if not point or action not in ACTIONS or not re.fullmatch("[1-9][0-9]*", nth or "1"):
            raise BadConfig(f"{VARIABLE}={text}: expected POINT[#NTH]:{'|'.join(ACTIONS)}")
        return cls(point, ACTIONS[action], int(nth or "1"))


_fault: Fault | None = None


def arm(env: Mapping[str, str]) -> str | None:
    """Read the fault from the environment, once at start; return the armed point for the log."""
    global _fault  # noqa: PLW0603 - a fault is of the process, as the signal is
    text = env.get(VARIABLE)
    _fault = Fault.parse(text) if text else None
    return _fault.point if _fault else None


def reach(point: str) -> None:
    """Mark a point, before or after a step at which the process may be killed safely."""
    if _fault is None or _fault.point != point:
        return
    _fault.passes_left -= 1
    if _fault.passes_left == 0:
        os.kill(os.getpid(), _fault.action)
