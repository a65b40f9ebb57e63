"""A console that runs in this process with its own account, and HTTP clients that act as browsers without scripts."""

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from html import unescape
from typing import Any, Self

import aiohttp
from yarl import URL

from tests.clients import a_client
from tests.console.people import user_of
from tests.eventually import eventually
from virt_steward.console.authentication import Authenticator, SignInLink
from virt_steward.console.cache import PlatformOptions
from virt_steward.console.handlers import COOKIE
from virt_steward.console.server import Console, ConsoleParts
from virt_steward.kube.connection import unobserved
from virt_steward.runtime.access import NAMESPACE
from virt_steward.runtime.addresses import Address
from virt_steward.runtime.clock import Clock, SystemClock
from virt_steward.runtime.informer import InformerState
from virt_steward.runtime.informers import Informers
from virt_steward.runtime.manager import Environment, Manager
from virt_steward.runtime.metrics import Metrics
from virt_steward.runtime.notifications import Notification
from virt_steward.settings import ConsoleSettings
from virt_steward_demo.local.controlplane import ControlPlane

ANYWHERE = Address("--console-bind-address", "127.0.0.1", 0)


class Nobody:
    """A notifier without endpoints."""

    endpoints: tuple[str, ...] = ()

    def send(self, _endpoint: str, _notice: Notification) -> None:
        raise AssertionError


@dataclass(slots=True)
class Answer:
    status: int
    text: str
    headers: Any
    url: URL

    def form(self, action: str) -> dict[str, str]:
        """The hidden fields of the form with this action."""
        return self._fields(f'action="{action}"')

    def form_with(self, field: str) -> dict[str, str]:
        """The hidden fields of the form that contains this field."""
        return self._fields(f'name="{field}"')

    def _fields(self, mark: str) -> dict[str, str]:
        for form in re.findall(r"<form.*?</form>", self.text, re.DOTALL):
            if mark in form:
                hidden = re.findall(r'<input type="hidden" name="([^"]*)" value="([^"]*)">', form)
                return {name: unescape(value) for name, value in hidden}
        raise AssertionError(f"no form with {mark} at {self.url}: {self.text[-3000:]}")


class Browser:
    """Follows redirects, keeps cookies, and sends the Origin of its forms."""

    def __init__(self, origin: str) -> None:
        self.origin = origin
        self._http = aiohttp.ClientSession(cookie_jar=aiohttp.CookieJar(unsafe=True))

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._http.close()

    @property
    def session(self) -> str:
        cookies = self._http.cookie_jar.filter_cookies(URL(self.origin))
        return cookies[COOKIE].value if COOKIE in cookies else ""

    def plant(self, session: str) -> None:
        self._http.cookie_jar.update_cookies({COOKIE: session}, URL(self.origin))

    async def get(self, path: str, **headers: str) -> Answer:
        return await self._ask("GET", path, headers)

    async def post(self, path: str, fields: dict[str, str], **headers: str) -> Answer:
        return await self._ask("POST", path, {"Origin": self.origin, **headers}, fields)

    async def sign_in(self, token: str) -> Answer:
        return await self.post("/sign-in", {"token": token})

    @asynccontextmanager
    async def live(self, page: str) -> AsyncIterator["Stream"]:
        path = URL(self.origin) / "live" % {"page": page}
        async with self._http.get(path, timeout=aiohttp.ClientTimeout(total=60)) as response:
            assert response.status == 200, await response.text()
            stream = Stream()
            reading = asyncio.create_task(stream.read(response))
            try:
                yield stream
            finally:
                reading.cancel()
                await asyncio.gather(reading, return_exceptions=True)

    async def _ask(self, method: str, path: str, headers: dict[str, str], fields: Any = None) -> Answer:
        async with self._http.request(method, f"{self.origin}{path}", headers=headers, data=fields) as response:
            return Answer(response.status, await response.text(), response.headers, response.url)


@dataclass(slots=True)
class Stream:
    """The events that a live page has received."""

    events: list[tuple[str, str]] = field(default_factory=list)
    heartbeats: int = 0
    ended: bool = False

    async def read(self, response: aiohttp.ClientResponse) -> None:
        rest = ""
        try:
            async for chunk in response.content.iter_any():
                *frames, rest = (rest + chunk.decode()).split("\n\n")
                self.events += [event for frame in frames if (event := _event(frame))]
                self.heartbeats += sum(frame.startswith(":") for frame in frames)
        finally:
            self.ended = True

    def has(self, text: str) -> bool:
        return any(text in data for _, data in self.events)

    def received(self, event: str) -> bool:
        return any(name == event for name, _ in self.events)


def _event(frame: str) -> tuple[str, str] | None:
    lines = dict(line.split(": ", 1) for line in frame.split("\n") if line and not line.startswith(":"))
    return (lines["event"], lines["data"]) if lines else None


@dataclass(slots=True)
class Served:
    """A running console."""

    console: Console
    links: list[str]

    @property
    def origin(self) -> str:
        return f"http://{self.console.address}"

    def browser(self) -> Browser:
        return Browser(self.origin)


@asynccontextmanager
async def a_console(
    control_plane: ControlPlane,
    token: str,
    *,
    clock: Clock | None = None,
    platform: PlatformOptions | None = None,
    server: str = "",
    is_filled: bool = True,
    **settings: Any,
) -> AsyncIterator[Served]:
    """A running console with filled caches; `server` replaces the address of the API server."""
    time = clock or SystemClock()
    links: list[str] = []
    async with a_client(control_plane, token, server=server) as client, a_client(control_plane) as owner:
        around = Environment(client.connection, client.discovery, time, Metrics(), "console", None, 1.0, Nobody())
        manager = Manager(around, ())
        parts = ConsoleParts(
            manager.informers,
            client,
            Authenticator(client.connection.cluster, client.discovery, unobserved, time.utc),
            time,
            replace(platform or PlatformOptions(), namespace=namespace_of(token)),
            SignInLink(owner.connection.cluster, links.append),
        )
        console = Console(ConsoleSettings(ANYWHERE, **settings), parts)
        stop = asyncio.Event()
        running = asyncio.create_task(manager.run(stop) if is_filled else stop.wait())
        await console.start()
        try:
            assert not is_filled or await eventually(lambda: _is_filled(manager.informers), within=60)
            yield Served(console, links)
        finally:
            await console.stop()
            stop.set()
            await asyncio.wait_for(running, 30)


def namespace_of(token: str) -> str:
    """Where the controllers run: in the namespace of the console's account, if it is a ServiceAccount."""
    return user_of(token).split(":")[2] if "." in token else NAMESPACE


def _is_filled(informers: Informers) -> bool:
    return all(informer.state is not InformerState.STARTING or informer.is_denied for informer in informers)
