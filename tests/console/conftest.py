"""Fixtures: the kinds that the console shows, its own account, users with different rights, and a real browser."""

import asyncio
import uuid
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from playwright.async_api import Browser as Chromium
from playwright.async_api import Page, expect

from tests.clients import a_client
from tests.console.browser import a_browser
from tests.console.objects import define_all, no_config
from tests.console.people import People
from tests.console.rig import Browser, Served, a_console
from tests.grants import Account, an_account
from virt_steward.apis.profiles import HIGHER_DENSITY, LOAD_AWARE
from virt_steward.console.access import ACCESS
from virt_steward.kube.client import Client
from virt_steward.runtime.access import Installation
from virt_steward_demo.local.controlplane import ControlPlane
from virt_steward_demo.simulation.install import make_namespace

expect.set_options(timeout=30_000)
REFUSALS = ("401", "403", "404", "409")
"""Status codes that browsers log as errors."""


@pytest.fixture(scope="session")
def account(control_plane: ControlPlane) -> Account:
    """The account of the console, as `virt-steward rbac` prints it."""

    async def prepare() -> Account:
        namespace = f"console-{uuid.uuid4().hex[:8]}"
        async with a_client(control_plane) as client:
            await make_namespace(client, namespace)
            return await an_account(client, ACCESS, Installation(namespace, prefix=namespace))

    return asyncio.run(prepare())


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def client(control_plane: ControlPlane) -> AsyncIterator[Client]:
    """An admin client for one module; all kinds that the console shows are defined."""
    async with a_client(control_plane) as made:
        await define_all(made)
        yield made
        for profile in (LOAD_AWARE, HIGHER_DENSITY):
            await no_config(made, profile)


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def people(client: Client) -> People:
    namespace = f"people-{uuid.uuid4().hex[:8]}"
    await make_namespace(client, namespace)
    return People(client, namespace)


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def served(control_plane: ControlPlane, account: Account, client: Client) -> AsyncIterator[Served]:
    """One console for all tests of a module."""
    assert client
    async with a_console(control_plane, account.token, heartbeat=0.5, rights_remembered=1.0) as opened:
        yield opened


@pytest_asyncio.fixture(loop_scope="module")
async def browser(served: Served, people: People) -> AsyncIterator[Browser]:
    """A browser with the session of an admin."""
    async with served.browser() as one:
        await one.sign_in(await people.admin())
        yield one


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def chromium() -> AsyncIterator[Chromium]:
    async with a_browser() as started:
        yield started


@pytest_asyncio.fixture(loop_scope="module")
async def page(chromium: Chromium, served: Served, people: People) -> AsyncIterator[Page]:
    """A browser window of an admin; a script error fails the test."""
    async for opened in _window(chromium, served, await people.admin()):
        yield opened


@pytest_asyncio.fixture(loop_scope="module")
async def other(chromium: Chromium, served: Served, people: People) -> AsyncIterator[Page]:
    """A window of another admin."""
    async for opened in _window(chromium, served, await people.admin()):
        yield opened


async def _window(chromium: Chromium, served: Served, token: str) -> AsyncIterator[Page]:
    context = await chromium.new_context(base_url=served.origin, viewport={"width": 1280, "height": 900})
    opened = await context.new_page()
    problems: list[str] = []
    opened.on("pageerror", lambda error: problems.append(str(error)))
    opened.on("console", lambda said: problems.append(said.text) if said.type in {"error", "warning"} else None)
    await opened.goto("/")
    await opened.get_by_label("Cluster token").fill(token)
    await opened.get_by_role("button", name="Sign in").click()
    await expect(opened.get_by_role("heading", name="Overview")).to_be_visible()
    yield opened
    await context.close()
    assert not [one for one in problems if not any(status in one for status in REFUSALS)]
