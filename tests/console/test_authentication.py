"""Sign-in by token and link, and how sessions end."""

import aiohttp
import pytest

from tests.console.people import People, user_of
from tests.console.rig import Browser, Served, a_console
from tests.eventually import eventually
from tests.grants import Account
from tests.runtime.clocks import ManualClock
from virt_steward.console.handlers import COOKIE
from virt_steward_demo.local.controlplane import ControlPlane

pytestmark = pytest.mark.asyncio(loop_scope="module")


async def test_page_redirects_to_sign_in(served: Served) -> None:
    async with served.browser() as browser:
        answer = await browser.get("/profiles?q=x")
        assert "Cluster token" in answer.text
        assert "to=/profiles" in str(answer.url)
        assert 'value="/profiles?q=x"' in answer.text


async def test_sign_in_accepts_cluster_token(served: Served, people: People) -> None:
    token = await people.watcher()
    async with served.browser() as browser:
        answer = await browser.sign_in(token)
        assert answer.status == 200
        assert user_of(token) in answer.text


@pytest.mark.parametrize("token", ["", "nonsense", "a b", "ü" * 20, "x" * 5000], ids=lambda token: token[:8] or "none")
async def test_sign_in_refuses_invalid_token(served: Served, token: str) -> None:
    async with served.browser() as browser:
        answer = await browser.sign_in(token)
        assert (answer.status, browser.session) == (401, "")


async def test_link_works_once_and_is_renewed(served: Served) -> None:
    link = served.links[-1]
    async with served.browser() as first, served.browser() as second:
        path = link.removeprefix(served.origin)
        assert "Inbox" in (await first.get(path)).text
        assert (await second.get(path)).status == 401
        assert served.links[-1] != link
        assert "Inbox" in (await second.get(served.links[-1].removeprefix(served.origin))).text


async def test_sign_in_starts_new_session(served: Served, people: People) -> None:
    token = await people.watcher()
    async with served.browser() as victim, served.browser() as attacker:
        await attacker.sign_in(token)
        victim.plant(attacker.session)
        await victim.sign_in(token)
        assert victim.session
        assert victim.session != attacker.session
        assert "Cluster token" in (await attacker.get("/")).text, "the planted session is over"


async def test_cookie_is_http_only_and_strict(served: Served, people: People) -> None:
    token = await people.watcher()
    async with aiohttp.ClientSession() as http:
        origin = {"Origin": served.origin}
        form = {"token": token}
        async with http.post(f"{served.origin}/sign-in", data=form, headers=origin, allow_redirects=False) as answer:
            cookie = answer.headers["Set-Cookie"]
    assert cookie.startswith(f"{COOKIE}=")
    assert {"HttpOnly", "Path=/", "SameSite=Strict"} <= {part.strip() for part in cookie.split(";")}


async def test_sign_out_ends_session(browser: Browser, served: Served) -> None:
    session = browser.session
    page = await browser.get("/")
    await browser.post("/sign-out", page.form("/sign-out"))
    async with served.browser() as other:
        other.plant(session)
        assert "Cluster token" in (await other.get("/")).text


@pytest.mark.parametrize("to", ["//evil.example", "/\\evil.example", "https://evil.example", "evil"])
async def test_sign_in_redirects_only_within_console(served: Served, people: People, to: str) -> None:
    token = await people.watcher()
    async with served.browser() as browser:
        answer = await browser.post("/sign-in", {"token": token, "to": to})
        assert str(answer.url) == f"{served.origin}/"


async def test_session_ends_when_idle(control_plane: ControlPlane, account: Account) -> None:
    clock = ManualClock()
    async with a_console(control_plane, account.token, clock=clock, idle=600.0) as served, served.browser() as browser:
        await browser.get(served.links[-1].removeprefix(served.origin))
        await clock.advance(599)
        assert "Inbox" in (await browser.get("/")).text
        await clock.advance(601)
        assert "Cluster token" in (await browser.get("/")).text


async def test_revoked_token_closes_live_pages(served: Served, people: People) -> None:
    token = await people.watcher()
    async with served.browser() as browser:
        await browser.sign_in(token)
        async with browser.live("/") as stream:
            assert await eventually(lambda: stream.received("page"))
            await people.dismiss(token)
            assert await eventually(lambda: stream.received("bye"), within=40)
            assert await eventually(lambda: stream.ended)
        assert "Cluster token" in (await browser.get("/")).text
