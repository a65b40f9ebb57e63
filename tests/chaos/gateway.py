"""An HTTP gateway between the controllers and the API server, which treats each account as a fault demands."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

import aiohttp
from aiohttp import web

from tests.gateway import a_status, certified
from tests.servers import serving
from virt_steward.kube.tls import Trust, ssl_context
from virt_steward_demo.local.controlplane import ControlPlane

CONFLICT = 409
LEASES = "/apis/coordination.k8s.io/"
REASONS = {CONFLICT: "Conflict", 429: "TooManyRequests", 500: "InternalError", 503: "ServiceUnavailable"}
NOT_FORWARDED = ("Host", "Accept-Encoding")


@dataclass(slots=True)
class Trap:
    """Waits for a kind of write: `before` runs before it is forwarded, `after` before it is answered."""

    method: str
    resource: str
    """With its group and subresource, such as `machines.vitistack.io/status`."""
    manager: str
    before: Callable[[], Awaitable[None]]
    after: Callable[[], Awaitable[None]]
    sprung: bool = False

    def matches(self, request: web.BaseRequest) -> bool:
        what = (request.method, resource_of(request.path), request.query.get("fieldManager", ""))
        return not self.sprung and "dryRun" not in request.query and what == (self.method, self.resource, self.manager)


def resource_of(path: str) -> str:
    """`/apis/GROUP/VERSION[/namespaces/NAMESPACE]/PLURAL[/NAME[/SUBRESOURCE]]`, or `/api/v1/...`."""
    parts = path.strip("/").split("/")
    group, rest = (parts[1], parts[3:]) if parts[0] == "apis" else ("", parts[2:])
    if rest[0] == "namespaces" and len(rest) > 2:
        rest = rest[2:]
    resource = f"{rest[0]}.{group}" if group else rest[0]
    return f"{resource}/{rest[2]}" if len(rest) > 2 else resource


@dataclass(slots=True)
class Treatment:
    """How the requests of one account are treated now."""

    latency: float = 0.0
    lost_answers: int = 0
    errors: list[int] = field(default_factory=list)
    gone: int = 0
    truncated: int = 0
    duplicated: bool = False
    coalesced: bool = False
    stale: str = ""
    """The resourceVersion of lists; empty: the newest."""
    flowing: asyncio.Event = field(default_factory=asyncio.Event)
    """Whether watches deliver."""
    open: set[Any] = field(default_factory=set)
    unleased: bool = False
    traps: tuple[Trap, ...] = ()

    def __post_init__(self) -> None:
        self.flowing.set()

    def cut(self) -> None:
        for transport in list(self.open):
            transport.abort()
        self.open.clear()


class ChaosGateway:
    """Knows accounts by their tokens; whoever is unknown is forwarded as it is."""

    def __init__(self, server: str, upstream: aiohttp.ClientSession) -> None:
        self.server = ""
        self.treatments: dict[str, Treatment] = {}
        self._names: dict[str, str] = {}
        self._target = server
        self._upstream = upstream

    def admit(self, name: str, token: str) -> None:
        self._names[f"Bearer {token}"] = name
        self.treatments[name] = Treatment()

    def heal(self) -> None:
        """End all faults; traps stay."""
        for name, treatment in self.treatments.items():
            treatment.flowing.set()
            self.treatments[name] = Treatment(open=treatment.open, traps=treatment.traps)

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        treatment = self.treatments[self._names[request.headers.get("Authorization", "")]]
        if request.transport is not None:
            treatment.open.add(request.transport)
        await asyncio.sleep(treatment.latency)
        try:
            return await self._treated(request, treatment)
        except (aiohttp.ClientError, OSError):  # a side went away: the caller sees a reset
            _abort(request)
            return web.Response()

    async def _treated(self, request: web.BaseRequest, treatment: Treatment) -> web.StreamResponse:
        if "watch" in request.query:
            return _refusal_of_watch(request, treatment) or await self._watch(request, treatment)
        if treatment.unleased and request.path.startswith(LEASES):
            return a_status(503, REASONS[503])
        is_write = request.method != "GET"
        if treatment.errors and (is_write or treatment.errors[-1] != CONFLICT):
            code = treatment.errors.pop()
            return a_status(code, REASONS[code])
        if is_write and (trap := next((one for one in treatment.traps if one.matches(request)), None)):
            return await self._trapped(request, trap)
        if is_write and treatment.lost_answers:
            treatment.lost_answers -= 1
            async with self._sent(request) as answer:
                await answer.read()
            raise ConnectionResetError
        if treatment.stale and "limit" in request.query and "continue" not in request.query:
            return await self._forward(request, resourceVersion=treatment.stale, resourceVersionMatch="Exact")
        return await self._forward(request)

    async def _trapped(self, request: web.BaseRequest, trap: Trap) -> web.StreamResponse:
        trap.sprung = True
        await trap.before()
        answer = await self._forward(request)
        await trap.after()
        return answer

    @asynccontextmanager
    async def _sent(self, request: web.BaseRequest, **changed: str) -> AsyncIterator[aiohttp.ClientResponse]:
        headers = {name: value for name, value in request.headers.items() if name not in NOT_FORWARDED}
        async with self._upstream.request(
            request.method,
            self._target + request.path,
            params={**request.query, **changed},
            headers={**headers, "Accept-Encoding": "identity"},
            data=await request.read() or None,
        ) as answer:
            yield answer

    async def _forward(self, request: web.BaseRequest, **changed: str) -> web.StreamResponse:
        async with self._sent(request, **changed) as answer:
            kept = {name: answer.headers[name] for name in ("Content-Type", "Retry-After") if name in answer.headers}
            return web.Response(body=await answer.read(), status=answer.status, headers=kept)

    async def _watch(self, request: web.BaseRequest, treatment: Treatment) -> web.StreamResponse:
        async with self._sent(request) as answer:
            response = web.StreamResponse(status=answer.status, headers={"Content-Type": answer.content_type})
            await response.prepare(request)
            lines: asyncio.Queue[bytes] = asyncio.Queue()
            reading = asyncio.create_task(_read_lines(answer, lines))
            try:
                while line := await lines.get():
                    treatment = self.treatments[self._names[request.headers["Authorization"]]]
                    await treatment.flowing.wait()
                    batch = [line, *_drained(lines)]
                    await _deliver(response, request, _last_states(batch) if treatment.coalesced else batch, treatment)
                    if batch[-1] == b"":
                        break
            finally:
                reading.cancel()
            return response


def _refusal_of_watch(request: web.BaseRequest, treatment: Treatment) -> web.StreamResponse | None:
    if treatment.gone:
        treatment.gone -= 1
        return a_status(410, "Expired", "too old resource version")
    if treatment.stale and "sendInitialEvents" in request.query:  # a stream cannot begin in the past, a list can
        return a_status(422, "Invalid", "sendInitialEvents is forbidden")
    return None


async def _read_lines(answer: aiohttp.ClientResponse, lines: asyncio.Queue[bytes]) -> None:
    """An empty line is the end, however it came."""
    rest = b""
    with suppress(aiohttp.ClientError, OSError):
        async for chunk in answer.content.iter_any():
            *whole, rest = (rest + chunk).split(b"\n")
            for line in whole:
                lines.put_nowait(line + b"\n")
    lines.put_nowait(b"")


def _drained(lines: asyncio.Queue[bytes]) -> list[bytes]:
    return [lines.get_nowait() for _ in range(lines.qsize())]


def _last_states(batch: Iterable[bytes]) -> list[bytes]:
    """Only the last event of each object, as somebody sees it who lists instead. Bookmarks stay where they are."""
    kept: dict[str, bytes] = {}
    for number, line in enumerate(batch):
        metadata = json.loads(line).get("object", {}).get("metadata", {}) if line else {}
        key = metadata.get("uid") or f"event {number}"
        kept.pop(key, None)
        kept[key] = line
    return list(kept.values())


async def _deliver(
    response: web.StreamResponse, request: web.BaseRequest, batch: list[bytes], treatment: Treatment
) -> None:
    for line in batch:
        if line and treatment.truncated:
            treatment.truncated -= 1
            await response.write(line[: len(line) // 2])
            _abort(request)
            raise ConnectionResetError
        await response.write(line * 2 if treatment.duplicated else line)


def _abort(request: web.BaseRequest) -> None:
    if request.transport is not None:
        request.transport.abort()


@asynccontextmanager
async def a_chaos_gateway(control_plane: ControlPlane) -> AsyncIterator[ChaosGateway]:
    trust = ssl_context(Trust("tests", control_plane.authority.certificate), None)
    async with aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(ssl=trust, limit=0), timeout=aiohttp.ClientTimeout(total=None)
    ) as upstream:
        gateway = ChaosGateway(control_plane.server, upstream)
        server = web.Server(gateway.handle, handler_cancellation=True)  # else watches outlive those who opened them
        runner = web.ServerRunner(server, shutdown_timeout=0.05)
        async with serving(runner, certified(control_plane)) as (port,):
            gateway.server = f"https://127.0.0.1:{port}"
            yield gateway
