"""A member cluster that others run, and run badly: an API server on loopback that is slow, lies, or sends too much.

It has a thread and an event loop of its own, so that what it does costs the tests of the placement no time.
"""

import asyncio
import gzip
import itertools
import json
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from concurrent.futures import Future
from contextlib import asynccontextmanager, contextmanager
from functools import cache, partial
from typing import Any

from aiohttp import web

from tests.fleet import Members
from tests.gateway import certified
from tests.servers import serving
from virt_steward.controllers.placement.search import VIRTUAL_MACHINE
from virt_steward.kube.client import Selection
from virt_steward_demo.local.controlplane import ControlPlane

Behaviour = Callable[[web.BaseRequest], Awaitable[web.StreamResponse | None]]

MARK = "x-hostile-text-x"
"""In every text that a hostile cluster sends, and in nothing that the placement shows."""
MEGABYTES = 31
VMS = 1_200_000
NEVER = 3600.0
PATIENCE = 30.0
CHANGING = "changing"
NAME = "hostile"
"""Its KubevirtConfig."""
VMS_PATH = f"/{VIRTUAL_MACHINE.plural}"


def a_list(*names: str, namespace: str = "", **metadata: str) -> dict[str, Any]:
    items = [{"metadata": {"name": name, "namespace": namespace}} for name in names]
    return {"kind": "PartialObjectMetadataList", "apiVersion": "meta.k8s.io/v1", "metadata": metadata, "items": items}


def discovered(group: str, version: str, kind: str, plural: str) -> dict[str, Any]:
    resource = {"resource": plural, "scope": "Namespaced", "responseKind": {"kind": kind}}
    return {"metadata": {"name": group}, "versions": [{"version": version, "resources": [resource]}]}


def a_discovery(*groups: dict[str, Any]) -> dict[str, Any]:
    return {"kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "items": list(groups)}


KUBEVIRT = discovered(VIRTUAL_MACHINE.group, "v1", VIRTUAL_MACHINE.name, VIRTUAL_MACHINE.plural)


async def honest(request: web.BaseRequest) -> web.StreamResponse:
    """A cluster with KubeVirt and no VM, for what a behaviour does not answer itself."""
    answers: dict[str, Any] = {
        "/version": {"gitVersion": "v1.36.3"},
        "/api": a_discovery(discovered("", "v1", "Node", "nodes")),
        "/apis": a_discovery(KUBEVIRT),
    }
    answer = a_list() if request.path.endswith(VMS_PATH) else answers.get(request.path)
    return web.json_response(answer) if answer else web.Response(status=404, text="404 page not found")


def zipped(body: bytes, status: int = 200) -> web.Response:
    headers = {"Content-Encoding": "gzip", "Content-Type": "application/json"}
    return web.Response(body=body, status=status, headers=headers)


@cache
def long_version() -> bytes:
    return gzip.compress(b'{"gitVersion": "' + MARK.encode() + b"v" * MEGABYTES * 2**20 + b'"}', 1)


@cache
def long_status() -> bytes:
    status = b'{"kind": "Status", "code": 500, "reason": "InternalError", "message": "'
    return gzip.compress(status + MARK.encode() + b"\xc3\xa4" * (MEGABYTES * 2**19) + b'"}', 1)


@cache
def full_page() -> bytes:
    return gzip.compress(b'{"kind": "L", "metadata": {}, "items": [' + b'{"metadata":{"name":"a"}},' * VMS + b"{}]}", 1)


@cache
def many_small_vms() -> bytes:
    """A page below the limit of bytes, with far more items than anybody asked for."""
    return gzip.compress(b'{"kind": "VMList", "metadata": {}, "items": [' + b"{}," * 1_900_000 + b"{}]}", 1)


@cache
def long_discovery() -> bytes:
    resources = ",".join([json.dumps({"resource": "r", "scope": "Namespaced"})] * 100_000)
    groups = f'{{"metadata": {{"name": "g"}}, "versions": [{{"version": "v1", "resources": [{resources}]}}]}}'
    return gzip.compress(f'{{"kind": "APIGroupDiscoveryList", "items": [{groups}]}}'.encode(), 1)


def everywhere(response: Callable[[], web.StreamResponse]) -> Behaviour:
    async def answer(_request: web.BaseRequest) -> web.StreamResponse:
        return response()

    return answer


def on(path: str, response: Callable[[], web.StreamResponse]) -> Behaviour:
    """The answer to paths that end so; all others are answered honestly."""

    async def answer(request: web.BaseRequest) -> web.StreamResponse | None:
        return response() if request.path.endswith(path) else None

    return answer


def text(body: str, status: int = 200, **headers: str) -> Behaviour:
    shown = {name.replace("_", "-"): value for name, value in headers.items()}
    return everywhere(lambda: web.Response(text=body, status=status, headers=shown))


async def silent(_request: web.BaseRequest) -> web.StreamResponse:
    await asyncio.sleep(NEVER)
    raise AssertionError


async def endless(request: web.BaseRequest) -> web.StreamResponse:
    response = web.StreamResponse()
    await response.prepare(request)
    while request.transport is not None and not request.transport.is_closing():
        await response.write(b" " * 2**20)
        await asyncio.sleep(0)
    return response


async def dripping(request: web.BaseRequest) -> web.StreamResponse:
    response = web.StreamResponse()
    await response.prepare(request)
    while request.transport is not None and not request.transport.is_closing():
        await response.write(b" ")
        await asyncio.sleep(0.05)
    return response


async def no_http(request: web.BaseRequest) -> web.StreamResponse:
    assert request.transport is not None
    request.transport.write(f"HTTP/9 \x00{MARK}\r\n\r\n".encode())  # type: ignore[attr-defined]
    request.transport.close()
    await asyncio.sleep(NEVER)
    raise AssertionError


async def cut_short(request: web.BaseRequest) -> web.StreamResponse:
    response = web.StreamResponse(headers={"Content-Length": "1000"})
    await response.prepare(request)
    await response.write(b'{"kind": ')
    assert request.transport is not None
    request.transport.close()
    return response


async def other_namespaces(request: web.BaseRequest) -> web.StreamResponse | None:
    answer = a_list("vm-web", namespace=MARK)
    return web.json_response(answer) if request.path.endswith(VMS_PATH) else None


async def new_versions(request: web.BaseRequest) -> web.StreamResponse | None:
    version = f"v1.{next(_numbers)}.0{MARK * 9}\x1b[31m\n"
    return web.json_response({"gitVersion": version}) if request.path == "/version" else None


_numbers = itertools.count()


HOSTILE: dict[str, Behaviour] = {
    "long version": on("/version", lambda: zipped(long_version())),
    "long error": everywhere(lambda: zipped(long_status(), 500)),
    "page of a million": on(VMS_PATH, lambda: zipped(full_page())),
    "page of small items": on(VMS_PATH, lambda: zipped(many_small_vms())),
    "endless continue": on(VMS_PATH, lambda: web.json_response(a_list(**{"continue": MARK}))),
    "endless body": endless,
    "long discovery": on("/apis", lambda: zipped(long_discovery())),
    "page of a login": text(f"<html>{MARK}</html>", Content_Type="text/html"),
    "JSON of a login": everywhere(lambda: web.json_response({"error": MARK, "items": None})),
    "another type": text(f'["{MARK}"]'),
    "nested": text('{"items":' * 5000 + "0"),
    "lone surrogate": text('{"gitVersion": "\\ud800", "kind": "\\ud800"}'),
    "no gzip": text(MARK, Content_Encoding="gzip"),
    "unknown encoding": text(MARK, Content_Encoding="br"),
    "no HTTP": no_http,
    "cut short": cut_short,
    "redirect": text(MARK, 302, Location="http://169.254.169.254/latest"),
    "invalid cookie": text(MARK, 500, Set_Cookie='=;="'),
    "pause of no number": text(MARK, 429, Retry_After="²"),
    "pause of a day": text(MARK, 429, Retry_After="86400"),
    "failure with a pause": text(MARK, 503, Retry_After="9" * 4000),
    "silent": silent,
    "dripping": dripping,
    "VMs of others": other_namespaces,
    "new versions": new_versions,
}


class HostileMember:
    """The server. It behaves as one row of HOSTILE, or as the next one with each request."""

    def __init__(self, control_plane: ControlPlane) -> None:
        self.behaviour = CHANGING
        self.requests = 0
        self.server = ""
        self._control_plane = control_plane
        self._rows = itertools.cycle(HOSTILE.values())
        self._started: Future[Callable[[], object]] = Future()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._run()), name="hostile-member", daemon=True)

    def start(self) -> None:
        self._thread.start()
        self._started.result(PATIENCE)

    @staticmethod
    def prepare() -> None:
        """Make the large answers now, which takes seconds."""
        for large in (long_version, long_status, full_page, many_small_vms, long_discovery):
            large()

    def stop(self) -> None:
        self._started.result()()
        self._thread.join(PATIENCE)

    async def _run(self) -> None:
        try:
            stop = asyncio.Event()
            runner = web.ServerRunner(web.Server(self._handle), shutdown_timeout=0.05)
            async with serving(runner, certified(self._control_plane)) as (port,):
                self.server = f"https://127.0.0.1:{port}"
                self._started.set_result(partial(asyncio.get_running_loop().call_soon_threadsafe, stop.set))
                await stop.wait()
        except Exception as error:
            if not self._started.done():
                self._started.set_exception(error)
            raise

    async def _handle(self, request: web.BaseRequest) -> web.StreamResponse:
        self.requests += 1
        behaves = next(self._rows) if self.behaviour == CHANGING else HOSTILE[self.behaviour]
        try:
            return await behaves(request) or await honest(request)
        except ConnectionError:  # nobody wants to hear the rest
            return web.Response()


@contextmanager
def a_hostile_member(control_plane: ControlPlane) -> Iterator[HostileMember]:
    member = HostileMember(control_plane)
    member.start()
    try:
        yield member
    finally:
        member.stop()


@asynccontextmanager
async def beside(members: Members, hostile: HostileMember) -> AsyncIterator[None]:
    """The fleet also has the hostile member, and asks it whenever its backoff allows that."""
    await members.join(NAME, server=hostile.server)

    async def ask() -> None:
        while True:
            await members.fleet.probe(NAME)
            await members.fleet.ask(NAME, lambda reader: reader.list(VIRTUAL_MACHINE, Selection(members.namespace)))
            await asyncio.sleep(0.05)

    asking = asyncio.create_task(ask())
    try:
        yield
        assert not asking.done(), "whatever it answers, the fleet goes on"
    finally:
        asking.cancel()
        await asyncio.wait((asking,))
