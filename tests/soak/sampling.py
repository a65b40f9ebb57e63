"""What the processes of a controller hold, sampled every few seconds: memory, descriptors, tasks, metric series."""

import asyncio
import time
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path

import aiohttp
import msgspec

from tests.chaos.faults import CONTROLLERS
from tests.chaos.site import Process, Site
from tests.ports import a_free_port
from tests.soak.slope import Allowance, Sample
from tests.stress.limits import open_files

EVERY = 5.0
"""Seconds between two samples."""
TIMEOUT = aiohttp.ClientTimeout(total=30)
MEMORY, DESCRIPTORS, TASKS, SERIES = "memory MiB", "descriptors", "tasks", "metric series"
ALLOWED = {
    MEMORY: Allowance(per_hour=8.0, noise=4.0),
    DESCRIPTORS: Allowance(per_hour=4.0, noise=3.0),
    TASKS: Allowance(per_hour=4.0, noise=3.0),
    SERIES: Allowance(per_hour=30.0, noise=20.0),
}
"""Of both replicas together. Series have some noise, since one begins with the first answer of its kind."""


class ProcessFailed(Exception):
    """A process ended or does not answer, although nobody stopped it."""


@dataclass(frozen=True, slots=True)
class Ports:
    """Where a process serves its metrics and its debug pages."""

    metrics: int = field(default_factory=a_free_port)
    debug: int = field(default_factory=a_free_port)

    @property
    def options(self) -> tuple[str, ...]:
        return tuple(
            f"--{server}-bind-address=127.0.0.1:{port}"
            for server, port in (("metrics", self.metrics), ("debug", self.debug))
        )


@dataclass(slots=True)
class Sampler:
    """Replicas take turns in leading, so that what counts is the sum over those of a controller."""

    site: Site
    ports: dict[str, Ports]
    pids: dict[str, int]
    began: float = field(default_factory=time.monotonic)
    samples: dict[tuple[str, str], list[Sample]] = field(default_factory=lambda: defaultdict(list))
    series: dict[str, dict[str, float]] = field(default_factory=lambda: defaultdict(dict))
    """When each series was first seen, by process."""

    async def run(self) -> None:
        """Until it is cancelled."""
        async with aiohttp.ClientSession(timeout=TIMEOUT) as session:
            while True:
                await self._sample(session)
                await asyncio.sleep(EVERY)

    def note(self, who: str, quantity: str, value: float) -> None:
        self.samples[who, quantity].append(Sample(round(time.monotonic() - self.began, 1), round(value, 2)))

    def newest_series(self, controller: str, number: int) -> list[str]:
        """Those that came last, for a person who looks for what grows."""
        found = (
            (at, one) for name in self.series if name.endswith(controller) for one, at in self.series[name].items()
        )
        return [one for _, one in sorted(found, reverse=True)[:number]]

    async def _sample(self, session: aiohttp.ClientSession) -> None:
        for controller in CONTROLLERS:
            processes = self.site.matching(f"*-{controller}")
            held = [await self._held(session, one) for one in processes]
            for quantity in ALLOWED:
                self.note(controller, quantity, sum(one[quantity] for one in held))

    async def _held(self, session: aiohttp.ClientSession, process: Process) -> dict[str, float]:
        pid, ports = self.pids[process.name], self.ports[process.name]
        if not process.alive or process.pid != pid:
            raise ProcessFailed(f"{process.name} ended; the end of its log:\n{_tail(process.log)}")
        try:
            async with session.get(f"http://127.0.0.1:{ports.metrics}/metrics") as answer:
                series = series_of(await answer.text())
            async with session.get(f"http://127.0.0.1:{ports.debug}/debug/tasks") as answer:
                tasks = msgspec.json.decode(await answer.read())
        except (aiohttp.ClientError, TimeoutError) as error:
            raise ProcessFailed(f"{process.name} does not answer: {error!r}; its log:\n{_tail(process.log)}") from error
        for one in series:
            self.series[process.name].setdefault(one, time.monotonic() - self.began)
        return {
            MEMORY: rss(pid),
            DESCRIPTORS: open_files(pid),
            TASKS: len(tasks),
            SERIES: len(series),
        }


def series_of(metrics: str) -> list[str]:
    """Names with labels. Buckets are left out: there are a dozen for each other series of a histogram."""
    lines = (line for line in metrics.splitlines() if line and not line.startswith("#"))
    return [name for line in lines if "_bucket{" not in (name := line.rpartition(" ")[0])]


def rss(pid: int) -> float:
    """MiB that a process holds."""
    status = Path(f"/proc/{pid}/status").read_text().split()
    return int(status[status.index("VmRSS:") + 1]) / 1024


def _tail(log: Path) -> str:
    return "\n".join(log.read_text().splitlines()[-20:])
