"""Member clusters for the placement: small servers that know some VMs, fall silent or misbehave, and keep a journal."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import UTC, datetime

from aiohttp import web

from tests.checker.facts import MemberAnswer
from tests.gateway import certified
from tests.hostile import HOSTILE, VMS_PATH, a_list, honest
from tests.servers import serving
from virt_steward_demo.local.controlplane import ControlPlane

HONEST = "honest"
LIES = (
    "page of a login",
    "JSON of a login",
    "another type",
    "nested",
    "lone surrogate",
    "no gzip",
    "cut short",
    "redirect",
    "pause of a day",
    "failure with a pause",
    "endless continue",
)
"""What a hostile member answers, one after the other. Rows of `tests/hostile.py` that cost no time."""


class ChaosMember:
    """Answers as long as it is honest; a list of VMs is noted in the journal, also one that it did not give."""

    def __init__(self, name: str, journal: list[MemberAnswer]) -> None:
        self.name = name
        self.server = ""
        self.behaviour = HONEST
        self.vms: set[tuple[str, str]] = set()
        self._journal = journal
        self._answers = 0

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        namespace = request.path.partition("/namespaces/")[2].partition("/")[0]
        is_list = request.path.endswith(VMS_PATH)
        if self.behaviour == HONEST:
            if not is_list:
                return await honest(request)
            names = frozenset(name for where, name in self.vms if where == namespace)
            self._note(namespace, names)
            return web.json_response(a_list(*sorted(names), namespace=namespace))
        if is_list:
            self._note(namespace, None)
        return await self._misbehave(request)

    async def _misbehave(self, request: web.BaseRequest) -> web.StreamResponse:
        if self.behaviour == "silent":
            await asyncio.sleep(3600)
        if self.behaviour == "hostile":
            self._answers += 1
            answer = await HOSTILE[LIES[self._answers % len(LIES)]](request)
            if answer is not None:
                return answer
        if request.transport is not None:
            request.transport.abort()
        return web.Response()

    def _note(self, namespace: str, vms: frozenset[str] | None) -> None:
        self._journal.append(MemberAnswer(self.name, datetime.now(UTC), namespace, vms))


@asynccontextmanager
async def some_members(control_plane: ControlPlane, *members: ChaosMember) -> AsyncIterator[None]:
    async with AsyncExitStack() as running:
        for member in members:
            runner = web.ServerRunner(web.Server(member.handle, handler_cancellation=True), shutdown_timeout=0.05)
            [port] = await running.enter_async_context(serving(runner, certified(control_plane)))
            member.server = f"https://127.0.0.1:{port}"
        yield
