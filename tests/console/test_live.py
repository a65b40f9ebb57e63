"""Live updates follow the cluster, and many viewers cost no more requests than one."""

import asyncio
from contextlib import AsyncExitStack

import pytest
from aiohttp import web

from tests.audit import AuditLog, Request
from tests.console.objects import OTHER_PLAN, PLAN, a_review, put_config
from tests.console.people import People, user_of
from tests.console.rig import Browser, Served, Stream, a_console
from tests.eventually import eventually
from tests.gateway import a_gateway, a_status, forwarded
from tests.grants import Account
from tests.installplans import an_install_plan, create_install_plan
from virt_steward.apis.profiles import LOAD_AWARE
from virt_steward.console.live import Broadcaster, Topic
from virt_steward.kube.client import Client
from virt_steward.objects.corekinds import NAMESPACE
from virt_steward_demo.local.controlplane import ControlPlane
from virt_steward_demo.simulation.install import make_namespace

pytestmark = pytest.mark.asyncio(loop_scope="module")
PAGE = f"/profiles/{LOAD_AWARE}"
TOPICS: tuple[Topic, ...] = ("approvals", "profiles")
VIEWERS = 50
OTHERS = 20
KINDS_SHOWN = 10
"""Kinds on the pages of the navigation, without those of the autopilot."""
REVIEWS = {"selfsubjectreviews", "selfsubjectaccessreviews"}


async def test_live_sends_changes(browser: Browser, client: Client) -> None:
    await put_config(client, a_review())
    async with browser.live(PAGE) as stream:
        assert await eventually(lambda: stream.has(PLAN))
        await put_config(client, a_review(plan=OTHER_PLAN))
        assert await eventually(lambda: stream.has(OTHER_PLAN))


async def test_live_sends_unchanged_page_once(browser: Browser) -> None:
    async with browser.live("/placement") as stream:
        assert await eventually(lambda: stream.received("page"))
        assert await eventually(lambda: stream.heartbeats >= 3)
        assert len(stream.events) == 1


async def test_live_updates_navigation_counts(browser: Browser, client: Client, namespace: str) -> None:
    async with browser.live("/activity") as stream:
        assert await eventually(lambda: stream.received("page"))
        count = len(stream.events)
        await create_install_plan(client, an_install_plan("install-new", namespace))
        assert await eventually(lambda: len(stream.events) > count)


async def test_subscription_wakes_for_its_topics() -> None:
    changes = Broadcaster()
    subscription = changes.subscribe()
    changes.publish("approvals")
    assert await subscription.wait(60) == {"approvals"}
    waiting = asyncio.create_task(subscription.wait_for(frozenset({"profiles"}), 60))
    for topic in TOPICS:
        changes.publish(topic)
    await asyncio.wait_for(waiting, 30)


async def test_subscription_times_out_on_other_topics() -> None:
    changes = Broadcaster()
    subscription = changes.subscribe()
    waiting = asyncio.create_task(subscription.wait_for(frozenset({"profiles"}), 0.05))
    changes.publish("approvals")
    await asyncio.wait_for(waiting, 30)


async def test_live_clears_trouble_message(control_plane: ControlPlane, account: Account, people: People) -> None:
    async with (
        a_gateway(control_plane) as gateway,
        a_console(control_plane, account.token, server=gateway.server, rights_remembered=0.0, heartbeat=0.2) as served,
        served.browser() as browser,
    ):
        await browser.sign_in(await people.admin())
        async with browser.live("/placement") as stream:
            assert await eventually(lambda: stream.received("page"))
            gateway.intercept = _no_reviews
            assert await eventually(lambda: stream.received("trouble"))
            gateway.intercept = forwarded
            assert await eventually(lambda: stream.events[-1][0] == "page")
        pages = [data for name, data in stream.events if name == "page"]
        assert len(set(pages)) == 1, "it is the same"


async def _no_reviews(request: web.BaseRequest) -> web.StreamResponse | None:
    return a_status(503, "ServiceUnavailable") if "selfsubjectaccessreviews" in request.path else None


async def test_viewers_share_watches(
    served: Served, account: Account, people: People, audit_log: AuditLog, namespace: str
) -> None:
    token = await people.admin()
    async with AsyncExitStack() as stack:
        mark = audit_log.mark()
        streams = [await _look(stack, served, token) for _ in range(VIEWERS)]
        await create_install_plan(people.client, an_install_plan("install-for-all", namespace))

        def all_have_it() -> bool:
            return all(stream.has("install-for-all") for stream in streams)

        assert await eventually(all_have_it, within=30)
        asked = audit_log.since(mark)
    ours = [one for one in asked if one.user == account.user and one.resource]
    assert [one.uri for one in ours if one.verb != "watch"] == []
    theirs = {one.resource for one in asked if one.user.startswith("system:serviceaccount:people-")}
    assert theirs <= REVIEWS


async def test_viewers_with_one_token_share_access_reviews(
    control_plane: ControlPlane, account: Account, people: People, audit_log: AuditLog
) -> None:
    token = await people.admin()
    async with (
        a_console(control_plane, account.token, rights_remembered=600.0) as served,
        AsyncExitStack() as stack,
    ):
        mark = audit_log.mark()
        await _look(stack, served, token)
        alone = audit_log.since(mark)
        assert _reviews(alone, token), "somebody has to ask"
        mark = audit_log.mark()
        await asyncio.gather(*(_look(stack, served, token) for _ in range(VIEWERS - 1)))
        assert _reviews(audit_log.since(mark), token) == []
        mark = audit_log.mark()
        await _look(stack, served, await people.admin())
        assert _reviews(audit_log.since(mark), token) == [], "others have answers of their own"


async def test_sign_out_keeps_rights_of_others(control_plane: ControlPlane, account: Account, people: People) -> None:
    token = await people.admin()
    async with (
        a_console(control_plane, account.token, rights_remembered=0.1) as served,
        served.browser() as first,
        served.browser() as second,
    ):
        for browser in (first, second):
            await browser.sign_in(token)
        page = await first.get("/")
        await first.post("/sign-out", page.form("/sign-out"))
        assert (await second.get("/profiles")).status == 200


async def test_rights_ask_one_rules_review_per_namespace(
    control_plane: ControlPlane, account: Account, people: People, audit_log: AuditLog, namespace: str
) -> None:
    await create_install_plan(people.client, an_install_plan("install-mine", namespace))
    for name in (f"{namespace}-{number}" for number in range(OTHERS)):
        await make_namespace(people.client, name)
        await create_install_plan(people.client, an_install_plan("install-theirs", name))
    token = await people.neighbour(namespace)
    console = a_console(control_plane, account.token, rights_remembered=600.0)
    async with console as served, served.browser() as browser:
        mark = audit_log.mark()
        await browser.sign_in(token)
        for path in ("/", "/approvals", "/placement", "/activity"):
            await browser.get(path)
        asked = [one for one in audit_log.since(mark) if one.user == user_of(token)]
        each = [one for one in asked if one.resource == "selfsubjectaccessreviews"]
        rules = [one for one in asked if one.resource == "selfsubjectrulesreviews"]
        namespaces = await people.client.list(NAMESPACE)
        assert 1 <= len(rules) <= len(namespaces)
        assert len(each) <= 2 * KINDS_SHOWN, "everywhere, and in the one namespace"
        page = (await browser.get("/approvals")).text
        assert "install-mine" in page
        assert "install-theirs" not in page


def _reviews(requests: list[Request], token: str) -> list[str]:
    asked = [one for one in requests if one.user == user_of(token)]
    return [one.uri for one in asked if one.resource in {"selfsubjectaccessreviews", "selfsubjectrulesreviews"}]


async def test_session_has_limited_streams(browser: Browser) -> None:
    async with AsyncExitStack() as stack:
        for _ in range(20):
            await stack.enter_async_context(browser.live("/"))
        assert (await browser.get("/live?page=/")).status == 429


async def _look(stack: AsyncExitStack, served: Served, token: str) -> Stream:
    browser = await stack.enter_async_context(served.browser())
    await browser.sign_in(token)
    stream = await stack.enter_async_context(browser.live("/approvals"))
    async with asyncio.timeout(30):
        assert await eventually(lambda: stream.received("page"), within=30)
    return stream
