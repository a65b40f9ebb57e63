"""Silent connections to the servers of a process, and probes as the kubelet sends them.

`python -m tests.stress.connections PORT...` opens them from a process of their own, until it is killed.
"""

import asyncio
import resource
import socket
import sys
from contextlib import ExitStack

import aiohttp

SILENT = 1_100
"""Connections to each port, which send nothing."""
REOPEN = 5.0
"""Seconds after which those that the server closed are opened again."""
OPEN_FILES = 1_024
"""The limit of a container without a setting of its own."""
PROBE_TIMEOUT = 1.0
"""As the kubelet has it by default."""
FAILURE_THRESHOLD = 3
"""Failures in a row after which the kubelet restarts a pod, by default."""


def longest_failure(outcomes: list[bool]) -> int:
    return max(len(run) for run in "".join("+" if one else "-" for one in outcomes).split("+"))


async def flood(port: int, connections: ExitStack) -> int:
    """Keep as many silent connections open as wanted; how many were opened when it is cancelled."""
    loop = asyncio.get_running_loop()
    opened, silent = 0, []
    try:
        while True:
            for one in [one for one in silent if _is_closed(one)]:
                one.close()
                silent.remove(one)
            while len(silent) < SILENT:
                one = connections.enter_context(socket.socket())
                one.setblocking(False)
                await loop.sock_connect(one, ("127.0.0.1", port))
                silent.append(one)
                opened += 1
            await asyncio.sleep(REOPEN)
    except asyncio.CancelledError:
        return opened


def _is_closed(connection: socket.socket) -> bool:
    try:
        return connection.recv(1) == b""
    except BlockingIOError:
        return False
    except OSError:
        return True


async def probe(url: str) -> int | str:
    """The status of the answer on a new connection, as the kubelet asks; or what went wrong."""
    timeout = aiohttp.ClientTimeout(total=PROBE_TIMEOUT)
    try:
        async with aiohttp.ClientSession(timeout=timeout) as session, session.get(url) as answer:
            await answer.read()
            return answer.status
    except (aiohttp.ClientError, TimeoutError, OSError) as error:
        return type(error).__name__


async def all_answer(probes: dict[str, int]) -> bool:
    return [await probe(url) for url in probes] == list(probes.values())


def open_files_limit(pid: int) -> int:
    return resource.prlimit(pid, resource.RLIMIT_NOFILE)[0]


def raise_own_limit() -> None:
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 65_536) if hard > 0 else 65_536, hard))


async def flood_all(ports: list[int]) -> None:
    raise_own_limit()
    with ExitStack() as connections:
        await asyncio.gather(*(flood(port, connections) for port in ports))


if __name__ == "__main__":
    asyncio.run(flood_all([int(port) for port in sys.argv[1:]]))
