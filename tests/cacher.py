"""A process that caches all InstallPlans and prints its memory: `python -m tests.cacher KUBECONFIG`."""

import asyncio
import os
import sys
import time
from pathlib import Path

import msgspec

import virt_steward.app
from tests.installplans import INSTALL_PLAN, InstallPlan
from virt_steward import logs
from virt_steward.kube.watch import projection
from virt_steward.runtime.informer import Informer, Source


class Footprint(msgspec.Struct):
    """Memory in MiB, time in seconds; `peak` includes memory that was freed again."""

    objects: int
    read: float
    imports: float
    rss: float
    peak: float
    seconds: float


async def footprint(kubeconfig: str) -> Footprint:
    imports = _memory("VmRSS")
    async with virt_steward.app.connected(kubeconfig, None) as client:
        read = 0
        decode = projection(InstallPlan)

        def counting(raw: bytes) -> InstallPlan:
            nonlocal read
            read += len(bytes(raw))
            return decode(raw)

        informer = Informer(client, Source(INSTALL_PLAN, counting))
        started = time.perf_counter()
        running = asyncio.create_task(informer.run())
        await informer.settled()
        seconds = time.perf_counter() - started
        found = Footprint(len(informer.store), read / 2**20, imports, _memory("VmRSS"), _memory("VmHWM"), seconds)
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
    return found


def _memory(name: str) -> float:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith(name))


if __name__ == "__main__":
    logs.configure("json", "warning")  # stdout is for the result
    os.write(sys.stdout.fileno(), msgspec.json.encode(asyncio.run(footprint(sys.argv[1]))))
