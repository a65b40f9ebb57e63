"""Runs operators one after the other on the same load, and measures each beside a bare request of the same moment.

Nothing is asked of an operator but that it takes a kubeconfig: what it does is read from the API server and its audit
log, and what it uses from the kernel.
"""

import asyncio
import os
import shlex
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from time import perf_counter
from typing import Any

from tests.audit import AuditLog, Mark, Request
from tests.bench.bare import PATCH, REPOSE, Bare
from tests.bench.figures import Figure, Round
from tests.bench.loads import Load
from tests.clients import a_client
from tests.controllers.approver.process import ALONE, home_of
from tests.eventually import eventually
from tests.grants import Account
from tests.image import allocator_settings
from virt_steward.kube.client import Client
from virt_steward.kube.errors import NotFound
from virt_steward.objects.identity import Ref
from virt_steward_demo.local.accounts import token_for
from virt_steward_demo.local.controlplane import ControlPlane
from virt_steward_demo.local.processes import Child

ROUNDS, SAMPLES = 5, 10
PATIENCE = 120.0
QUIET, REST = 2.0, 10.0
"""Seconds without a request after which an operator is at rest, and for which its requests are then counted."""
OURS = "virt-steward"


@dataclass(frozen=True, slots=True)
class Subject:
    """A program to measure. Its command may contain {kubeconfig} and {namespace}; KUBECONFIG is set, too."""

    name: str
    command: tuple[str, ...]
    user: str
    """Its name in the audit log."""
    token: str
    namespace: str
    env: Mapping[str, str] = field(default_factory=dict)

    def child(self, folder: Path, control_plane: ControlPlane) -> Child:
        kubeconfig = folder / f"{self.name}.kubeconfig"
        kubeconfig.write_text(control_plane.kubeconfig.read_text().replace(control_plane.token, self.token))
        values = {"kubeconfig": str(kubeconfig), "namespace": self.namespace}
        argv = [word.format(**values) for word in self.command]
        env = {**os.environ, "KUBECONFIG": str(kubeconfig), "POD_NAMESPACE": self.namespace, **self.env}
        return Child(argv, log=folder / f"{self.name}.log", env=env)


def ours(load: Load, account: Account) -> Subject:
    """Started as users start it, with the rights that it declares."""
    servers = [f"--{server}-bind-address=0" for server in ("metrics", "debug", "health-probe")]
    run = [sys.executable, "-m", "virt_steward", "run", f"--controllers={load.controller}", *ALONE, *servers]
    command = (*run, "--log-format=json", "--kubeconfig={kubeconfig}", "--namespace={namespace}", *load.options)
    env = {**allocator_settings(), **load.env}
    return Subject(OURS, command, account.user, account.token, home_of(account), env)


async def another(client: Client, command: str, namespace: str, number: int) -> Subject:
    """Any operator, as a cluster admin: which rights it needs is not known here. Two may be of the same program."""
    name = f"bench-{number}"
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name, "namespace": namespace}}
    binding = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": name},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
        "subjects": [{"kind": "ServiceAccount", "name": name, "namespace": namespace}],
    }
    words = tuple(shlex.split(command))
    token = await token_for(client, (account, binding))
    title = f"{Path(words[0]).name} ({number})"
    return Subject(title, words, f"system:serviceaccount:{namespace}:{name}", token, namespace)


@dataclass(frozen=True, slots=True)
class Performance:
    """What one operator took for a load of one size."""

    operator: str
    size: int
    unit: str
    """What the size counts."""
    start: float
    """Seconds from its start to its first result."""
    reaction: Figure
    requests: float
    """For one reaction, with status and events; watches and leases aside."""
    cpu: float
    """Milliseconds for one reaction."""
    memory: float
    """MiB at the end."""
    peak: float
    """MiB at most."""
    at_rest: float
    """Requests in a minute in which nothing changes."""

    def document(self) -> dict[str, Any]:
        return {
            "operator": self.operator,
            "size": self.size,
            "unit": self.unit,
            "startSeconds": self.start,
            "reaction": self.reaction.document(),
            "requestsPerReaction": self.requests,
            "cpuMillisecondsPerReaction": self.cpu,
            "memoryMiB": self.memory,
            "peakMemoryMiB": self.peak,
            "requestsPerMinuteAtRest": self.at_rest,
        }


async def compare(
    control_plane: ControlPlane, kind: type[Load], folder: Path, *, size: int, against: Sequence[str] = ()
) -> list[Performance]:
    """Measure ours, then the others, on one cluster."""
    async with a_client(control_plane) as client, AsyncExitStack() as stack:
        load = kind(control_plane, client, stack, size)
        subjects = [ours(load, await load.prepare())]
        home = subjects[0].namespace
        subjects += [await another(client, command, home, number) for number, command in enumerate(against, 2)]
        bare = await Bare.on(client)
        bench = Bench(load, bare, AuditLog(control_plane.audit_log), folder)
        return [await bench.measure(subject) for subject in subjects]


@dataclass(frozen=True, slots=True)
class Bench:
    load: Load
    bare: Bare
    audit_log: AuditLog
    folder: Path

    async def measure(self, subject: Subject) -> Performance:
        waiting = await self.load.begin()
        started = perf_counter()
        async with self._running(subject) as child:
            await self._done(subject, child, waiting)
            start = perf_counter() - started
            await eventually(lambda: self._is_quiet(subject), within=PATIENCE)
            used, mark = cpu_of(child.pid), self.audit_log.mark()
            rounds = [await self._round(subject, child) for _ in range(ROUNDS)]
            await eventually(lambda: self._is_quiet(subject), within=PATIENCE)
            cpu = (cpu_of(child.pid) - used) * 1000 / (ROUNDS * SAMPLES)
            requests = len(self._asked(subject, mark)) / (ROUNDS * SAMPLES)
            mark = self.audit_log.mark()
            await asyncio.sleep(REST)
            at_rest = len(self._asked(subject, mark)) * 60 / REST
            reaction = Figure(self.load.what, "ms", PATCH, tuple(rounds))
            return Performance(
                subject.name,
                self.load.size,
                self.load.unit,
                start,
                reaction,
                requests,
                cpu,
                memory_of(child.pid),
                memory_of(child.pid, "VmHWM:"),
                at_rest,
            )

    @asynccontextmanager
    async def _running(self, subject: Subject) -> AsyncIterator[Child]:
        child = subject.child(self.folder, self.load.control_plane)
        try:
            yield child
        finally:
            child.stop(10)

    async def _round(self, subject: Subject, child: Child) -> Round:
        """Milliseconds by the clock of the server, from our response to the operator's."""
        reactions, patches = [], []
        for _ in range(SAMPLES):
            mark = self.audit_log.mark()
            ref = await self.load.provoke()
            answered = await self._done(subject, child, ref, mark)
            cause = [one for one in self.audit_log.since(mark) if _changes(one, ref) and one.user != subject.user][-1]
            reactions.append((answered - cause.time).total_seconds() * 1000)
            await eventually(lambda: self._is_quiet(subject, 0.2), within=PATIENCE)
            await asyncio.sleep(REPOSE)
            before = perf_counter()
            await self.bare.patch()
            patches.append((perf_counter() - before) * 1000)
        return Round(tuple(reactions), tuple(patches))

    async def _done(self, subject: Subject, child: Child, ref: Ref, mark: Mark | None = None) -> datetime:
        """When the operator has written what makes it done."""

        async def is_done() -> bool:
            if not child.alive:
                raise RuntimeError(f"{subject.name} has exited: {child.last_output()}")
            try:
                return self.load.is_done(await self.load.client.get(ref))
            except NotFound:
                return False

        if not await eventually(is_done, within=PATIENCE):
            raise RuntimeError(f"{subject.name}: {ref} is not done after {PATIENCE:.0f} s; {child.last_output()}")
        if mark is None:
            return datetime.now(UTC)
        assert await eventually(lambda: bool(self._writes(subject, mark, ref)), within=QUIET)  # logged a moment later
        return self._writes(subject, mark, ref)[-1].time

    def _writes(self, subject: Subject, mark: Mark, ref: Ref) -> list[Request]:
        return [one for one in self._asked(subject, mark) if _changes(one, ref)]

    async def _is_quiet(self, subject: Subject, seconds: float = QUIET) -> bool:
        mark = self.audit_log.mark()
        await asyncio.sleep(seconds)
        return not self._asked(subject, mark)

    def _asked(self, subject: Subject, mark: Mark) -> list[Request]:
        asked = (one for one in self.audit_log.since(mark) if one.user == subject.user)
        return [one for one in asked if one.verb != "watch" and one.resource != "leases"]


def _changes(one: Request, ref: Ref) -> bool:
    is_it = one.resource == ref.kind.plural and one.name in ("", ref.key.name)
    return is_it and one.is_write and "dryRun" not in one.uri and one.code < 300


def family_of(pid: int) -> list[int]:
    """The process and those that it has started, as a script may."""
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [pid, *(one for child in children for one in family_of(int(child)))]


def cpu_of(pid: int) -> float:
    """Seconds."""
    ticks = 0
    for one in family_of(pid):
        fields = Path(f"/proc/{one}/stat").read_text().rpartition(")")[2].split()
        ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")


def memory_of(pid: int, which: str = "VmRSS:") -> float:
    """MiB of resident memory; VmHWM: the most so far."""
    return sum(_resident(one, which) for one in family_of(pid))


def _resident(pid: int, which: str) -> float:
    words = Path(f"/proc/{pid}/status").read_text().split()
    return int(words[words.index(which) + 1]) / 1024
