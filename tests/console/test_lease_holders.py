"""Every page says which controllers stand by, for whom, and what to do."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.eventually import eventually
from tests.otheroperator import OtherOperator
from virt_steward.controllers.approver.definition import GO_LEASE
from virt_steward.objects.identity import Key

if TYPE_CHECKING:
    from tests.console.people import People
    from tests.console.rig import Browser, Served
    from virt_steward.kube.client import Client

pytestmark = pytest.mark.asyncio(loop_scope="module")
PAGES = ("/", "/inbox", "/profiles", "/autopilot", "/approvals", "/placement", "/activity")


async def test_every_page_says_who_stands_by(
    served: Served, browser: Browser, people: People, client: Client, namespace: str
) -> None:
    other = OtherOperator(client, Key(namespace, GO_LEASE))
    async with browser.live("/placement") as stream:
        assert await eventually(lambda: stream.received("page"))
        assert not stream.has("standing by")
        await other.renew("go-1", duration=300)
        notice = f"The approver is standing by: go-1 holds Lease {namespace}/{GO_LEASE}. To let virt-steward take over"
        assert await eventually(lambda: stream.has(notice)), "an open page is updated"
        assert all([notice in (await browser.get(page)).text for page in PAGES])
        async with served.browser() as restricted:
            await restricted.sign_in(await people.stranger())
            page = (await restricted.get("/")).text
        assert "The approver is standing by: another operator does its work" in page
        assert namespace not in page
        await other.delete()
        assert await eventually(lambda: "standing by" not in stream.events[-1][1]), "and again when it has ended"
    assert "standing by" not in (await browser.get("/")).text
