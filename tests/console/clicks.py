"""Helpers for actions: wait for a page, read a config, put a gateway before the API server."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from tests.console.objects import the_config
from tests.console.people import People
from tests.console.rig import Answer, Browser, a_console
from tests.eventually import eventually
from tests.gateway import Gateway, a_gateway
from tests.grants import Account
from virt_steward.apis.profiles import LOAD_AWARE
from virt_steward.kube.client import Client, Object
from virt_steward_demo.local.controlplane import ControlPlane

PAGE = f"/profiles/{LOAD_AWARE}"
NOTES = "advisor.kubevirt.io"
TARGET = {"apiVersion": "v1", "kind": "ConfigMap", "name": "one"}
GOVERNED = [{"targetRef": TARGET, "managedFields": ["data.a"], "hash": "sha256:1"}]


async def shown(browser: Browser, path: str, text: str) -> Answer:
    async def is_shown() -> bool:
        return text in (await browser.get(path)).text

    assert await eventually(is_shown), (await browser.get(path)).text[-3000:]
    return await browser.get(path)


async def config(client: Client, name: str = LOAD_AWARE) -> Object:
    return await client.get(the_config(name))


@asynccontextmanager
async def behind(
    control_plane: ControlPlane, account: Account, people: People
) -> AsyncIterator[tuple[Browser, Gateway]]:
    """An admin's browser, and the gateway between the console and the API server."""
    async with a_gateway(control_plane) as gateway:
        console = a_console(control_plane, account.token, server=gateway.server, is_filled=False)
        async with console as served, served.browser() as browser:
            await browser.sign_in(await people.admin())
            yield browser, gateway


async def any_form(browser: Browser) -> dict[str, str]:
    """The hidden fields of every form."""
    return (await browser.get("/")).form("/sign-out")
