"""What a viewer sees is what the cluster lets them read, and what is missing is said."""

import uuid

import pytest
import pytest_asyncio

from tests.console.objects import a_review, put_config
from tests.console.people import SHOWN, People, a_rule
from tests.console.rig import Browser, Served
from tests.eventually import soon
from tests.installplans import an_install_plan, create_install_plan
from virt_steward.apis.virtplatformconfig import LOAD_AWARE
from virt_steward.kube.client import Client
from virt_steward.local.simulation.install import make_namespace

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def places(client: Client) -> tuple[str, str]:
    """Two namespaces with a plan each."""
    names = f"mine-{uuid.uuid4().hex[:6]}", f"theirs-{uuid.uuid4().hex[:6]}"
    for name in names:
        await make_namespace(client, name)
        await create_install_plan(client, an_install_plan(f"install-{name}", name))
    await put_config(client, a_review())
    return names


async def shows(browser: Browser, path: str, *texts: str) -> bool:
    async def is_shown() -> bool:
        page = (await browser.get(path)).text
        return all(text in page for text in texts)

    return await soon(is_shown)


async def test_plans_of_other_namespaces_are_not_shown(served: Served, people: People, places: tuple[str, str]) -> None:
    mine, theirs = places
    async with served.browser() as browser:
        await browser.sign_in(await people.neighbour(mine))
        assert await shows(browser, "/approvals", f"install-{mine}", f"only in {mine}")
        for path in ("/", "/approvals", f"/approvals/{theirs}/install-{theirs}", "/activity"):
            page = await browser.get(path)
            assert f"<code>{theirs}" not in page.text
            assert f"InstallPlan</span> {theirs}" not in page.text
        assert (await browser.get(f"/approvals/{theirs}/install-{theirs}")).status == 404
        assert (await browser.get(f"/approvals/{mine}/install-{mine}")).status == 200


async def test_changes_of_other_namespaces_are_not_told_either(
    served: Served, people: People, places: tuple[str, str], client: Client
) -> None:
    mine, theirs = places
    async with served.browser() as browser:
        await browser.sign_in(await people.neighbour(mine))
        async with browser.live("/approvals") as stream:
            assert await soon(lambda: stream.said("page"))
            await create_install_plan(client, an_install_plan("install-secret", theirs))
            await create_install_plan(client, an_install_plan("install-open", mine))
            assert await soon(lambda: stream.has("install-open"))
            assert not stream.has("install-secret")


async def test_who_may_see_nothing_is_told_what_is_missing(served: Served, people: People) -> None:
    async with served.browser() as browser:
        await browser.sign_in(await people.stranger())
        page = await browser.get("/")
        assert page.status == 200
        for kind in ("virtplatformconfigs.advisor.kubevirt.io", "installplans.operators.coreos.com"):
            assert f"<code>{kind}</code>: you may not list them" in page.text
        assert (await browser.get(f"/profiles/{LOAD_AWARE}")).status == 404


async def test_what_is_not_there_and_what_may_not_be_seen_sound_the_same(
    served: Served, people: People, places: tuple[str, str]
) -> None:
    async with served.browser() as browser:
        await browser.sign_in(await people.stranger())
        there = await browser.get(f"/approvals/{places[0]}/install-{places[0]}")
        not_there = await browser.get(f"/approvals/{places[0]}/install-{'x' * len(places[0])}")
        assert there.status == not_there.status == 404
        assert _words(there.text, places[0]) == _words(not_there.text, "x" * len(places[0]))


async def test_rights_that_are_taken_away_count_within_moments(
    served: Served, people: People, places: tuple[str, str]
) -> None:
    token = await people.somebody(a_rule(*SHOWN))
    async with served.browser() as browser:
        await browser.sign_in(token)
        assert await shows(browser, "/approvals", f"install-{places[1]}")
        await people.forbid(token)

        async def is_hidden() -> bool:
            return f"install-{places[1]}" not in (await browser.get("/approvals")).text

        assert await soon(is_hidden, within=20)


def _words(page: str, name: str) -> str:
    """The answer itself, without the name and what differs from one answer to the next."""
    return page.partition("<h1>")[2].replace(f"install-{name}", "it")
