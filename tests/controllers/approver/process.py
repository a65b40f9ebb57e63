"""A controller as a process of its own, under its own rights, to be watched and killed."""

import os
import signal
import sys
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec

from tests.clients import a_client
from tests.controllers.approver.lifecycle import define_all
from tests.forkserver import Fork, fork_server
from tests.grants import Account, an_account
from virt_steward.controllers.approver.definition import ACCESS
from virt_steward.kube.faults import VARIABLE
from virt_steward.runtime.access import Installation
from virt_steward_demo.local.controlplane import ControlPlane
from virt_steward_demo.local.files import open_log
from virt_steward_demo.local.processes import Child

ALONE = ("--no-leader-elect",)
FREQUENT_RENEWALS = ("--lease-duration=15", "--lease-retry=0.1")
SHORT_LEASE = ("--lease-duration=4", "--lease-retry=0.1")
"""Another replica takes over soon; long enough for a busy machine, on which a renewal may take a second."""


async def an_installation(control_plane: ControlPlane) -> Account:
    """The kinds, a namespace for the approver, and its generated rights on the whole cluster."""
    namespace = f"steward-{uuid.uuid4().hex[:8]}"
    async with a_client(control_plane) as client:
        await define_all(client)
        await client.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}})
        return await an_account(client, ACCESS, Installation(namespace, prefix=namespace))


def home_of(account: Account) -> str:
    """The namespace in which the approver runs."""
    return account.user.split(":")[2]


class Process:
    """`virt-steward run`, which logs as JSON and serves nothing."""

    def __init__(self, running: Fork | Child, log: Path) -> None:
        self._running = running
        self._log = log

    @property
    def pid(self) -> int:
        return self._running.pid

    @property
    def alive(self) -> bool:
        return self._running.alive

    @property
    def was_killed(self) -> bool:
        """Whether SIGKILL ended it."""
        return not self.alive and self._running.exit_code == -signal.SIGKILL

    @property
    def cpu(self) -> float:
        """Seconds that it has used so far, for itself and in the kernel."""
        fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    @property
    def rss(self) -> float:
        """MiB of memory that it holds now."""
        status = Path(f"/proc/{self.pid}/status").read_text().split()
        return int(status[status.index("VmRSS:") + 1]) / 1024

    def kill(self) -> None:
        self._running.kill()

    def log(self) -> list[dict[str, Any]]:
        lines = self._log.read_bytes().split(b"\n")
        return [msgspec.json.decode(line) for line in lines[:-1]]  # the last is empty, or not yet complete

    def said(self, event: str, **facts: Any) -> bool:
        return any(entry["event"] == event and facts.items() <= entry.items() for entry in self.log())

    @property
    def troubles(self) -> list[dict[str, Any]]:
        """But for odd objects, which other tests have left in the cluster, and for turns of the loop.

        Those are judged by their CPU time (`tests/lag_limits.py`): on a busy machine, every turn may take long.
        """
        warnings = [entry for entry in self.log() if entry["level"] in {"warning", "error"}]
        return [entry for entry in warnings if entry["event"] not in {"object unreadable", "event loop blocked"}]


@contextmanager
def a_process(
    kubeconfig: Path,
    namespace: str,
    *options: str,
    fault: str = "",
    controller: str = "approver",
    measured: bool = False,
) -> Iterator[Process]:
    """Logs beside the kubeconfig, each process into a file of its own.

    One whose memory or CPU is measured is started as users start it, since a fork shares memory with its server.
    """
    number = len(list(kubeconfig.parent.glob(f"{controller}-*.log")))
    log = kubeconfig.parent / f"{controller}-{number}.log"
    argv = ["run", "--log-format=json", f"--kubeconfig={kubeconfig}", f"--namespace={namespace}"]
    argv += [f"--{server}-bind-address=0" for server in ("metrics", "debug", "health-probe")]
    argv += [f"--controllers={controller}", *(options or ALONE)]
    env = {**os.environ, **({VARIABLE: fault} if fault else {})}
    running: Fork | Child
    if measured:
        running = Child([sys.executable, "-m", "virt_steward", *argv], log=log, env=env)
    else:
        with Path(os.devnull).open("rb") as nothing, open_log(log) as output:
            running = fork_server().start(argv, env, (nothing.fileno(), output.fileno(), output.fileno()))
    try:
        yield Process(running, log)
    finally:
        running.kill()
