"""Open pages follow the cluster, and many of them cost it no more than one."""

import asyncio
from contextlib import AsyncExitStack

import pytest

from tests.audit import AuditLog
from tests.console.objects import OTHER_PLAN, PLAN, a_review, put_config
from tests.console.people import People
from tests.console.rig import Browser, Served, Stream
from tests.eventually import soon
from tests.grants import Account
from tests.installplans import an_install_plan, create_install_plan
from virt_steward.apis.virtplatformconfig import LOAD_AWARE
from virt_steward.kube.client import Client

pytestmark = pytest.mark.asyncio(loop_scope="module")
PAGE = f"/profiles/{LOAD_AWARE}"
VIEWERS = 50
REVIEWS = {"selfsubjectreviews", "selfsubjectaccessreviews"}


async def test_a_change_reaches_the_page_within_a_second(browser: Browser, client: Client) -> None:
    await put_config(client, a_review())
    async with browser.live(PAGE) as stream:
        assert await soon(lambda: stream.has(PLAN))
        await put_config(client, a_review(plan=OTHER_PLAN))
        assert await soon(lambda: stream.has(OTHER_PLAN), within=1.0)


async def test_a_page_that_does_not_change_is_not_sent_again(browser: Browser) -> None:
    async with browser.live("/placement") as stream:
        assert await soon(lambda: stream.said("page"))
        assert await soon(lambda: stream.heartbeats >= 3)
        assert len(stream.events) == 1


async def test_the_number_in_the_navigation_follows_on_every_page(
    browser: Browser, client: Client, namespace: str
) -> None:
    async with browser.live("/activity") as stream:
        assert await soon(lambda: stream.said("page"))
        count = len(stream.events)
        await create_install_plan(client, an_install_plan("install-new", namespace))
        assert await soon(lambda: len(stream.events) > count)


async def test_fifty_viewers_cost_the_server_no_more_than_one(
    served: Served, account: Account, people: People, audit_log: AuditLog, namespace: str
) -> None:
    token = await people.admin()
    async with AsyncExitStack() as stack:
        mark = audit_log.mark()
        streams = [await _look(stack, served, token) for _ in range(VIEWERS)]
        await create_install_plan(people.client, an_install_plan("install-for-all", namespace))

        def all_have_it() -> bool:
            return all(stream.has("install-for-all") for stream in streams)

        assert await soon(all_have_it, within=30)
        asked = audit_log.since(mark)
    ours = [one for one in asked if one.user == account.user and one.resource]
    assert [one.uri for one in ours if one.verb != "watch"] == []
    theirs = {one.resource for one in asked if one.user.startswith("system:serviceaccount:people-")}
    assert theirs <= REVIEWS


async def test_a_session_cannot_hold_more_than_a_few_streams(browser: Browser) -> None:
    async with AsyncExitStack() as stack:
        for _ in range(20):
            await stack.enter_async_context(browser.live("/"))
        assert (await browser.get("/live?page=/")).status == 429


async def _look(stack: AsyncExitStack, served: Served, token: str) -> Stream:
    browser = await stack.enter_async_context(served.browser())
    await browser.sign_in(token)
    stream = await stack.enter_async_context(browser.live("/approvals"))
    async with asyncio.timeout(30):
        assert await soon(lambda: stream.said("page"), within=30)
    return stream
