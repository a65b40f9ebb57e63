"""The origin policy: other hosts, other origins, missing CSRF tokens, untrusted proxies."""

import asyncio
from ipaddress import ip_network

import aiohttp
import pytest

from tests.console.objects import PLAN, a_review, put_config, the_config
from tests.console.people import People
from tests.console.rig import Browser, Served, a_console
from tests.eventually import eventually
from tests.grants import Account
from virt_steward.apis.profiles import LOAD_AWARE
from virt_steward.console import origin_policy
from virt_steward.kube.client import Client
from virt_steward_demo.local.controlplane import ControlPlane

pytestmark = pytest.mark.asyncio(loop_scope="module")
APPROVE = f"/profiles/{LOAD_AWARE}/approve"


async def action(client: Client) -> str:
    return str((await client.get(the_config()))["spec"]["action"])


@pytest.mark.parametrize("path", ["/", "/sign-in", "/static/console.css", "/live?page=/"])
async def test_policy_refuses_unknown_host(browser: Browser, path: str) -> None:
    answer = await browser.get(path, Host="rebound.example:8090")
    assert answer.status == 421
    assert "virt-steward" not in answer.text


@pytest.mark.parametrize(
    "headers",
    [
        pytest.param({"Origin": "https://evil.example"}, id="another-origin"),
        pytest.param({"Origin": "null"}, id="null-origin"),
        pytest.param({"Sec-Fetch-Site": "cross-site"}, id="cross-site"),
        pytest.param({"Sec-Fetch-Site": "same-site"}, id="same-site"),
    ],
)
async def test_policy_refuses_cross_site_form(browser: Browser, client: Client, headers: dict[str, str]) -> None:
    await put_config(client, a_review())
    assert await eventually(lambda: _is_shown(browser))
    form = (await browser.get(f"/profiles/{LOAD_AWARE}")).form_with("plan")
    answer = await browser.post(APPROVE, form, **headers)
    assert answer.status == 403
    assert await action(client) == "DryRun"


async def test_action_refuses_form_without_csrf_token(
    browser: Browser, client: Client, served: Served, people: People
) -> None:
    await put_config(client, a_review())
    async with served.browser() as other:
        await other.sign_in(await people.admin())
        assert await eventually(lambda: _is_shown(other))
        theirs = (await other.get(f"/profiles/{LOAD_AWARE}")).form_with("plan")["csrf"]
        for csrf in ("", "guess", theirs):
            answer = await browser.post(APPROVE, {"plan": PLAN, "csrf": csrf})
            assert answer.status == 403
    assert await action(client) == "DryRun"


async def test_approve_is_forbidden_for_readers(client: Client, served: Served, people: People) -> None:
    await put_config(client, a_review())
    async with served.browser() as watcher:
        await watcher.sign_in(await people.watcher())
        assert await eventually(lambda: _is_shown(watcher))
        page = await watcher.get(f"/profiles/{LOAD_AWARE}")
        assert "Your account may not approve this plan" in page.text
        answer = await watcher.post(APPROVE, page.form_with("plan"))
        assert answer.status == 403
        assert "Your account may not do this" in answer.text
    assert await action(client) == "DryRun"


@pytest.mark.parametrize("path", ["/", "/sign-in", "/no-such-page", "/live?page=/no-such-page"])
async def test_responses_have_security_headers(browser: Browser, path: str) -> None:
    headers = (await browser.get(path)).headers
    policy = headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy
    assert "frame-ancestors 'none'" in policy
    assert "unsafe" not in policy
    assert headers["X-Frame-Options"] == "DENY"
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert headers["Cache-Control"] == "no-store"


async def test_token_header_is_ignored_by_default(served: Served, people: People) -> None:
    async with served.browser() as browser:
        answer = await browser.get("/", **{"X-Forwarded-Access-Token": await people.admin()})
        assert "Cluster token" in answer.text


async def test_token_header_of_configured_proxy_signs_in(
    control_plane: ControlPlane, account: Account, people: People
) -> None:
    proxies = (ip_network("127.0.0.0/8"),)
    one, another = await people.watcher(), await people.watcher()
    async with a_console(control_plane, account.token, proxies=proxies) as served, served.browser() as browser:
        first = await browser.get("/", **{"X-Forwarded-Access-Token": one})
        assert "Inbox" in first.text
        session = browser.session
        await browser.get("/", **{"X-Forwarded-Access-Token": one})
        assert browser.session == session
        await browser.get("/", **{"X-Forwarded-Access-Token": another})
        assert browser.session != session, "another user came by the same browser"
        assert (await browser.get("/", **{"X-Forwarded-Access-Token": "nonsense"})).url.path == "/sign-in"


@pytest.mark.parametrize(
    ("headers", "is_secure"),
    [
        pytest.param({}, False, id="plain-loopback"),
        pytest.param({"Host": "steward.example"}, True, id="proxy-keeps-host"),
        pytest.param({"X-Forwarded-Proto": "https"}, True, id="proxy-says-https"),
        pytest.param({"Origin": "https://steward.example"}, True, id="proxy-replaces-host"),
    ],
)
async def test_cookie_is_secure_behind_tls_proxy(
    control_plane: ControlPlane, account: Account, people: People, headers: dict[str, str], *, is_secure: bool
) -> None:
    settings = {"external_url": "https://steward.example"}
    async with a_console(control_plane, account.token, is_filled=False, **settings) as served:
        form = {"token": await people.watcher()}
        async with aiohttp.ClientSession() as browser:
            common = {"Origin": headers.get("Origin", served.origin)}
            if "Host" in headers:
                common["Origin"] = "https://steward.example"
            answer = await browser.post(
                f"{served.origin}/sign-in", data=form, headers=common | headers, allow_redirects=False
            )
        cookie = answer.headers["Set-Cookie"]
    assert cookie.startswith("virt_steward_session=")
    assert ("; Secure" in cookie) is is_secure


async def test_cookie_of_proxy_user_is_secure(control_plane: ControlPlane, account: Account, people: People) -> None:
    settings = {"external_url": "https://steward.example", "proxies": (ip_network("127.0.0.0/8"),)}
    async with a_console(control_plane, account.token, **settings) as served, aiohttp.ClientSession() as browser:
        answer = await browser.get(served.origin, headers={"X-Forwarded-Access-Token": await people.watcher()})
        assert "; Secure" in answer.headers["Set-Cookie"]


async def _is_shown(browser: Browser) -> bool:
    return PLAN[:12] in (await browser.get(f"/profiles/{LOAD_AWARE}")).text


async def test_slow_form_times_out(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(origin_policy, "FORM_TIMEOUT", 0.2)
    address = served.console.address
    reader, writer = await asyncio.open_connection(address.host, address.port)
    form = "Content-Type: application/x-www-form-urlencoded\r\nContent-Length: 10"
    writer.write(f"POST /sign-in HTTP/1.1\r\nHost: {address}\r\nOrigin: {served.origin}\r\n{form}\r\n\r\n".encode())
    assert (await reader.readline()).startswith(b"HTTP/1.1 408 ")
    writer.close()
