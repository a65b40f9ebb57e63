"""Carries a fault out, and ends it."""

import asyncio
import os
import signal
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime
from typing import Any

import aiohttp

from tests.chaos.faults import ON_MEMBERS, Fault
from tests.chaos.gateway import Treatment
from tests.chaos.members import HONEST
from tests.chaos.site import Site
from tests.checker.history import Interval
from tests.eventually import eventually
from virt_steward.kube.client import Client
from virt_steward.kube.discovery import CUSTOM_RESOURCE_DEFINITION
from virt_steward.kube.errors import KubeError, NotFound
from virt_steward.objects.identity import Key, Ref
from virt_steward_demo.simulation.install import install

UNTIL_GONE = 60.0
"""Seconds that a busy machine may take to delete a CRD with its objects."""
CODES = (409, 503, 429, 500)


async def newest_version(client: Client) -> int:
    """The resourceVersion that a list gives now."""
    while True:
        with suppress(KubeError):
            page = await anext(aiter(client.pages(CUSTOM_RESOURCE_DEFINITION)))
            return int(page.metadata.resource_version)
        await asyncio.sleep(0.2)


class Injector:
    """Injects the faults of one seed and notes when the API server or etcd could be late, or lose answers."""

    def __init__(self, site: Site) -> None:
        self.late: list[Interval] = []
        """Times after which a request could be executed late."""
        self.lost: list[Interval] = []
        """Times in which a write could be executed and not logged."""
        self._site = site
        self._cluster = asyncio.Lock()

    async def inject(self, fault: Fault) -> None:
        """From its begin to its end."""
        if fault.kind in ON_MEMBERS:
            await self._mislead(fault)
        elif hasattr(self, name := f"_{fault.kind.replace('-', '_')}"):
            await getattr(self, name)(fault)
        else:
            raise ValueError(f"no such fault: {fault.kind}")

    def _treatments(self, fault: Fault) -> list[Treatment]:
        return [self._site.gateway.treatments[one.name] for one in self._site.matching(fault.target)]

    async def _mislead(self, fault: Fault) -> None:
        member = self._site.members[fault.target]
        member.behaviour = fault.kind
        await asyncio.sleep(fault.seconds)
        member.behaviour = HONEST

    # Faults between a controller and the API server.

    @asynccontextmanager
    async def _treated(self, fault: Fault, **how: Any) -> AsyncIterator[list[Treatment]]:
        treatments = self._treatments(fault)
        before = [{name: getattr(one, name) for name in how} for one in treatments]
        for one in treatments:
            for name, value in how.items():
                setattr(one, name, value)
        yield treatments
        await asyncio.sleep(fault.seconds)
        for one, values in zip(treatments, before, strict=True):
            for name, value in values.items():
                setattr(one, name, value)

    async def _latency(self, fault: Fault) -> None:
        async with self._treated(fault, latency=fault.amount / 1000):
            pass

    async def _unleased(self, fault: Fault) -> None:
        async with self._treated(fault, unleased=True):
            pass

    async def _duplicated(self, fault: Fault) -> None:
        async with self._treated(fault, duplicated=True):
            pass

    async def _lost_answers(self, fault: Fault) -> None:
        for one in self._treatments(fault):
            one.lost_answers += fault.amount

    async def _errors(self, fault: Fault) -> None:
        for one in self._treatments(fault):
            one.errors += [CODES[(fault.amount + number) % len(CODES)] for number in range(fault.amount)]

    async def _gone(self, fault: Fault) -> None:
        for one in self._treatments(fault):
            one.gone += fault.amount
            one.cut()

    async def _truncated(self, fault: Fault) -> None:
        for one in self._treatments(fault):
            one.truncated += fault.amount

    async def _resets(self, fault: Fault) -> None:
        for one in self._treatments(fault):
            one.cut()

    async def _stalled(self, fault: Fault) -> None:
        treatments = self._treatments(fault)
        for one in treatments:
            one.flowing.clear()
        await asyncio.sleep(fault.seconds)
        for one in treatments:
            one.flowing.set()

    async def _unobserved(self, fault: Fault) -> None:
        async with self._treated(fault, coalesced=True):
            await self._stalled(fault)

    async def _stale(self, fault: Fault) -> None:
        """A restart that lists from a server which lags behind."""
        newest = await newest_version(self._site.client)
        async with self._treated(fault, stale=str(max(newest - fault.amount, 1))):
            for process in self._site.matching(fault.target):
                process.signal(signal.SIGCONT)
                process.kill()
                process.start()

    # Faults of the controllers' processes.

    async def _kill(self, fault: Fault) -> None:
        processes = self._site.matching(fault.target)
        for process in processes:
            process.signal(signal.SIGCONT)
            process.kill()
        await asyncio.sleep(fault.seconds)
        for process in processes:
            if not process.alive:
                process.start()

    async def _stop(self, fault: Fault) -> None:
        processes = self._site.matching(fault.target)
        for process in processes:
            process.signal(signal.SIGSTOP)
        await asyncio.sleep(fault.seconds)
        for process in processes:
            process.signal(signal.SIGCONT)

    async def _clock(self, fault: Fault) -> None:
        processes = self._site.matching(fault.target)
        for process in processes:
            process.set_clock(fault.amount)
        await asyncio.sleep(fault.seconds)
        for process in processes:
            process.set_clock(0)

    # Faults of the cluster.

    @asynccontextmanager
    async def _outage(self, *kinds: list[Interval]) -> AsyncIterator[None]:
        """One at a time: an API server that another fault has killed would not become ready."""
        async with self._cluster:
            began = datetime.now(UTC)
            yield
            await asyncio.to_thread(self._site.control_plane.wait_until_ready)
        for one in kinds:
            one.append(Interval(began, datetime.now(UTC)))

    async def _apiserver_stop(self, fault: Fault) -> None:
        async with self._outage(self.late):
            await self._stopped("kube-apiserver", fault.seconds)

    async def _etcd_stop(self, fault: Fault) -> None:
        async with self._outage(self.late):
            await self._stopped("etcd", fault.seconds)

    async def _stopped(self, program: str, seconds: float) -> None:
        pid = self._site.control_plane.pids[program]
        os.kill(pid, signal.SIGSTOP)
        await asyncio.sleep(seconds)
        with suppress(ProcessLookupError):  # another fault has killed it meanwhile
            os.kill(pid, signal.SIGCONT)

    async def _apiserver_kill(self, fault: Fault) -> None:
        async with self._outage(self.late, self.lost):
            self._site.control_plane.kill_apiserver()
            await asyncio.sleep(fault.seconds)
            self._site.control_plane.start_apiserver()

    async def _etcd_kill(self, fault: Fault) -> None:
        async with self._outage(self.late, self.lost):
            self._site.control_plane.kill_etcd()
            await asyncio.sleep(fault.seconds)
            self._site.control_plane.start_etcd()

    async def _compaction(self, _: Fault) -> None:
        """Forget all versions but the newest, so that watches from older ones get 410."""
        revision = await newest_version(self._site.client)
        folder, port = self._site.audit_folder, self._site.control_plane.etcd_port
        trust = ssl.create_default_context(cafile=str(folder / "etcd-ca.crt"))
        trust.load_cert_chain(folder / "etcd-client.crt", folder / "etcd-client.key")
        async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=trust)) as session:
            with suppress(aiohttp.ClientError):  # it is down, or that was compacted already
                url = f"https://127.0.0.1:{port}/v3/kv/compaction"
                async with session.post(url, json={"revision": str(revision)}) as answer:
                    await answer.read()

    async def _crd_vanishes(self, fault: Fault) -> None:
        ref = Ref(CUSTOM_RESOURCE_DEFINITION, Key("", fault.target))
        try:
            definition = await self._insist(lambda: self._site.client.get(ref))
            await self._insist(lambda: self._site.client.delete(ref))
        except NotFound:  # by another fault, which brings it back
            return
        await asyncio.sleep(fault.seconds)
        await eventually(lambda: self._is_gone(ref), within=UNTIL_GONE)  # what is applied until then goes, too
        metadata = {part: definition["metadata"].get(part) for part in ("name", "annotations", "labels")}
        fresh = {**{part: definition[part] for part in ("apiVersion", "kind", "spec")}, "metadata": metadata}
        await self._insist(lambda: install(self._site.client, fresh))

    async def _crd_changes(self, fault: Fault) -> None:
        ref = Ref(CUSTOM_RESOURCE_DEFINITION, Key("", fault.target))
        patch = {"metadata": {"annotations": {"chaos": f"{fault.at}"}}, "spec": {"names": {"shortNames": ["chaos"]}}}
        with suppress(NotFound):  # it has vanished
            await self._insist(lambda: self._site.client.merge_patch(ref, patch))

    async def _is_gone(self, ref: Ref) -> bool:
        try:
            await self._insist(lambda: self._site.client.get(ref))
        except NotFound:
            return True
        return False

    async def _insist(self, action: Any) -> Any:
        while True:
            try:
                return await action()
            except NotFound:
                raise
            except KubeError:
                await asyncio.sleep(0.2)
