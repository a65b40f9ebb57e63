"""Stampers as processes of their own, to be stopped, woken and killed, and what their logs tell."""

import asyncio
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from itertools import count
from pathlib import Path
from typing import Any

import msgspec

from tests.audit import Request
from tests.grants import Account, an_account
from tests.stamper import CONFIG_MAP, Paper, a_paper, a_stamper
from virt_steward.kube.client import Client, Selection
from virt_steward.kube.faults import VARIABLE
from virt_steward.runtime.access import Installation
from virt_steward_demo.local.controlplane import ControlPlane
from virt_steward_demo.local.processes import Child

ROOT = Path(__file__).parents[1]


class Replica:
    """One process."""

    def __init__(
        self, kubeconfig: Path, namespace: str, log: Path, *, fault: str = "", options: tuple[str, ...]
    ) -> None:
        argv = [sys.executable, "-m", "tests.stamper", f"--kubeconfig={kubeconfig}", f"--namespace={namespace}"]
        env = {**os.environ, **({VARIABLE: fault} if fault else {})}
        self._child = Child([*argv, *options], log=log, cwd=ROOT, env=env)

    @property
    def alive(self) -> bool:
        return self._child.alive

    @property
    def exit_code(self) -> int:
        return self._child.exit_code

    @property
    def is_stopped(self) -> bool:
        """By SIGSTOP."""
        return Path(f"/proc/{self._child.pid}/stat").read_text().rpartition(")")[2].split()[0] == "T"

    @property
    def leads(self) -> bool:
        """According to its own log."""
        events = [entry["event"] for entry in self.log() if entry["event"] in {"leading", "no longer leading"}]
        return events[-1:] == ["leading"]

    @property
    def stands_by(self) -> bool:
        """According to its own log."""
        events = [entry["event"] for entry in self.log() if entry["event"].endswith("standing by")]
        return events[-1:] == ["standing by"]

    def send(self, number: signal.Signals) -> None:
        os.kill(self._child.pid, number)

    def kill(self) -> None:
        self._child.kill()

    def log(self) -> list[dict[str, Any]]:
        lines = self._child.log.read_bytes().split(b"\n")
        return [msgspec.json.decode(line) for line in lines[:-1]]  # the last is empty, or not yet complete

    def catches(self, number: signal.Signals) -> bool:
        """Whether it has a handler for a signal."""
        status = Path(f"/proc/{self._child.pid}/status").read_text().split()
        return bool(int(status[status.index("SigCgt:") + 1], 16) >> (number - 1) & 1)

    def said(self, event: str) -> bool:
        return any(entry["event"] == event for entry in self.log())

    def terms(self) -> Iterator["Term"]:
        """When it led, according to its own log."""
        began: datetime | None = None
        for entry in self.log():
            at = datetime.fromisoformat(entry["timestamp"])
            if entry["event"] == "leading":
                began = at
            elif entry["event"] in {"no longer leading", "stopped"} and began:
                yield Term(began, at)
                began = None
        if began:
            yield Term(began, datetime.max.replace(tzinfo=began.tzinfo))


@dataclass(frozen=True, slots=True)
class Term:
    began: datetime
    ended: datetime

    def overlaps(self, other: "Term") -> bool:
        return self.began < other.ended and other.began < self.ended


class Replicas:
    """Starts replicas in one namespace and sees what they have done."""

    def __init__(self, control_plane: ControlPlane, admin: Client, namespace: str, folder: Path) -> None:
        self.namespace = namespace
        self._control_plane = control_plane
        self._admin = admin
        self._folder = folder
        self._numbers = count(1)
        self._started: list[Replica] = []

    async def account(self, name: str) -> Account:
        """A user with the rights of a stamper, so that the audit log can tell one from the other."""
        installation = Installation(self.namespace, name, (self.namespace,))
        return await an_account(self._admin, a_stamper(self.namespace).access, installation)

    def start(self, account: Account, *options: str, fault: str = "", server: str = "") -> Replica:
        """By way of `server`, a proxy, if there is one."""
        path = self._folder / f"stamper-{next(self._numbers)}"
        kubeconfig = account.write_kubeconfig(path.with_suffix(".kubeconfig"), self._control_plane, server)
        replica = Replica(kubeconfig, self.namespace, path.with_suffix(".log"), fault=fault, options=options)
        self._started.append(replica)
        return replica

    def kill(self) -> None:
        for replica in self._started:
            replica.kill()

    async def ask_for_stamps(self, *names: str) -> None:
        await asyncio.gather(*(self._admin.create(a_paper(self.namespace, name)) for name in names))

    async def stamps(self) -> dict[str, int]:
        """How often each object was stamped."""
        papers = await self._admin.list(CONFIG_MAP, Selection(self.namespace, labels="stamp=wanted"), Paper)
        return {paper.metadata.name: paper.stamps for paper in papers}

    async def all_are_stamped(self) -> bool:
        return all((await self.stamps()).values())


@contextmanager
def some_replicas(control_plane: ControlPlane, admin: Client, namespace: str, folder: Path) -> Iterator[Replicas]:
    replicas = Replicas(control_plane, admin, namespace, folder)
    try:
        yield replicas
    finally:
        replicas.kill()


def effective(requests: list[Request], user: str) -> list[Request]:
    """What a user changed. Events tell what was done and undo nothing, so a late one does no harm."""
    return [
        one for one in requests if one.user == user and one.is_write and one.code < 300 and one.resource != "events"
    ]
