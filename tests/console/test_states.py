"""Pages before everything is known, when nothing is there, and when the cluster cannot be reached."""

import pytest

from tests.console.people import People
from tests.console.rig import Browser, Served, a_console
from tests.eventually import soon
from tests.grants import Account
from tests.proxy import FaultProxy
from virt_steward.kube.client import Client
from virt_steward.local.controlplane import ControlPlane

pytestmark = pytest.mark.asyncio(loop_scope="module")
PAGES = ("/", "/profiles", "/autopilot", "/approvals", "/placement", "/activity")


@pytest.mark.parametrize("path", PAGES)
async def test_a_page_says_that_it_is_not_complete_yet(
    control_plane: ControlPlane, account: Account, people: People, path: str
) -> None:
    token = await people.admin()
    async with a_console(control_plane, account.token, is_filled=False) as served, served.browser() as browser:
        await browser.sign_in(token)
        assert "Still reading the cluster" in (await browser.get(path)).text


@pytest.mark.parametrize("path", PAGES)
async def test_a_page_with_nothing_to_show_says_what_would_stand_there(
    served: Served, people: People, path: str
) -> None:
    async with served.browser() as browser:
        await browser.sign_in(await people.stranger())
        page = await browser.get(path)
        assert page.status == 200
        assert 'class="empty"' in page.text or path == "/profiles"


async def test_nothing_is_shown_while_nobody_can_tell_what_may_be_seen(
    control_plane: ControlPlane, account: Account, people: People, client: Client
) -> None:
    assert client
    async with FaultProxy(control_plane.port) as proxy:
        way = a_console(control_plane, account.token, server=proxy.server, rights_remembered=0.0, heartbeat=0.2)
        async with way as served, served.browser() as browser:
            await browser.sign_in(await people.admin())
            assert (await browser.get("/profiles")).status == 200
            async with browser.live("/profiles") as stream:
                assert await soon(lambda: stream.said("page"))
                proxy.refuse()
                await proxy.cut()
                page = await browser.get("/profiles")
                assert page.status == 503
                assert "cannot be asked what you may see" in page.text
                assert await soon(lambda: stream.said("trouble"))
                await proxy.accept()
                assert await soon(lambda: _answers(browser))


async def _answers(browser: Browser) -> bool:
    return (await browser.get("/profiles")).status == 200


async def test_an_address_without_a_page_says_so(served: Served, people: People) -> None:
    async with served.browser() as browser:
        await browser.sign_in(await people.stranger())
        for path in ("/nothing", "/profiles/a/b", "/approvals/one", "/static/secret", "/profiles/%0d%0aX"):
            assert (await browser.get(path)).status == 404
        page = await browser.get("/")
        assert (await browser.post("/nothing", page.form("/sign-out"))).status == 404
