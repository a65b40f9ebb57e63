"""Viewers see only what they may list, and pages name what is hidden."""

import uuid
from datetime import UTC, datetime

import pytest
import pytest_asyncio

from tests.console.objects import a_review, put, put_config
from tests.console.people import SHOWN, People, a_rule
from tests.console.rig import Browser, Served
from tests.controllers.approver.lifecycle import a_lifecycle, an_approver
from tests.eventually import eventually
from tests.installplans import an_install_plan, create_install_plan
from virt_steward.apis.profiles import LOAD_AWARE
from virt_steward.console.page_context import REASON_HIDDEN
from virt_steward.controllers import REPORTERS
from virt_steward.controllers.autopilot.options import HCO
from virt_steward.kube.client import Client, Object
from virt_steward.objects.identity import Ref
from virt_steward.objects.wallclock import rfc3339_micro
from virt_steward.platform.hco import HYPERCONVERGED
from virt_steward_demo.simulation.install import make_namespace

pytestmark = pytest.mark.asyncio(loop_scope="module")
PINNED, OFFERED = "db.v1.0.0-secret", "db.v2.0.0"
REASON = "PinNotOffered"
ASSET = "swap-enable"
DENIAL = "a webhook denied it"


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

    return await eventually(is_shown)


async def test_pages_hide_plans_of_other_namespaces(served: Served, people: People, places: tuple[str, str]) -> None:
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


async def test_live_hides_changes_of_other_namespaces(
    served: Served, people: People, places: tuple[str, str], client: Client
) -> None:
    mine, theirs = places
    async with served.browser() as browser:
        await browser.sign_in(await people.neighbour(mine))
        async with browser.live("/approvals") as stream:
            assert await eventually(lambda: stream.received("page"))
            await create_install_plan(client, an_install_plan("install-secret", theirs))
            await create_install_plan(client, an_install_plan("install-open", mine))
            assert await eventually(lambda: stream.has("install-open"))
            assert not stream.has("install-secret")


async def test_page_names_hidden_kinds(served: Served, people: People) -> None:
    async with served.browser() as browser:
        await browser.sign_in(await people.stranger())
        page = await browser.get("/")
        assert page.status == 200
        for kind in ("virtplatformconfigs.advisor.kubevirt.io", "installplans.operators.coreos.com"):
            assert f"<code>{kind}</code>: you may not list them" in page.text
        assert (await browser.get(f"/profiles/{LOAD_AWARE}")).status == 404


async def test_not_found_page_hides_existence(served: Served, people: People, places: tuple[str, str]) -> None:
    async with served.browser() as browser:
        await browser.sign_in(await people.stranger())
        there = await browser.get(f"/approvals/{places[0]}/install-{places[0]}")
        not_there = await browser.get(f"/approvals/{places[0]}/install-{'x' * len(places[0])}")
        assert there.status == not_there.status == 404
        assert _words(there.text, places[0]) == _words(not_there.text, "x" * len(places[0]))


@pytest.mark.parametrize("kind", ["installplanapprovers", "subscriptions"])
async def test_pending_reason_needs_all_rights(served: Served, people: People, client: Client, kind: str) -> None:
    olm = await a_lifecycle(client, f"pinned-{uuid.uuid4().hex[:6]}")
    await an_approver(client, olm.namespace, targetNamespaces=[olm.namespace])
    await olm.subscribe("db", pin=PINNED)
    plan = await olm.offer(OFFERED)
    pages = ("/", "/approvals", f"/approvals/{plan}")
    readable = {"installplans", "installplanapprovers", "subscriptions"}
    groups = ("operators.coreos.com", "operators.bapu.cloud")
    async with served.browser() as reader, served.browser() as other:
        await reader.sign_in(await people.somebody(a_rule(*groups, resources=tuple(readable))))
        await other.sign_in(await people.somebody(a_rule(*groups, resources=tuple(readable - {kind}))))
        for path in pages:
            assert await shows(reader, path, plan.name, PINNED)
            page = (await other.get(path)).text
            assert f"{olm.namespace}/{plan.name}" in page
            assert REASON_HIDDEN in page
            assert REASON not in page
            assert PINNED not in page or kind != "subscriptions", "who may read a Subscription may see its pin"
        search = f"/approvals?q={olm.namespace}+{REASON}"
        assert await shows(reader, search, f"{olm.namespace}/{plan.name}")
        assert f"{olm.namespace}/{plan.name}" not in (await other.get(search)).text


async def test_assets_are_hidden_without_hyperconverged_right(served: Served, people: People, client: Client) -> None:
    hco = {"apiVersion": "hco.kubevirt.io/v1", "kind": HYPERCONVERGED.name, "metadata": _steered()}
    await put(client, hco)
    await put(client, _failure_of(served.console.cache.assets.refs[ASSET]))
    groups = ("events.k8s.io", "machineconfiguration.openshift.io")
    try:
        async with served.browser() as reader, served.browser() as other:
            await reader.sign_in(await people.somebody(a_rule(*groups, "hco.kubevirt.io")))
            await other.sign_in(await people.somebody(a_rule("machineconfiguration.openshift.io")))
            for path in ("/", "/autopilot", f"/autopilot/{ASSET}"):
                assert await shows(reader, path, DENIAL)
                assert DENIAL not in (await other.get(path)).text
    finally:
        await client.delete(Ref(HYPERCONVERGED, HCO))


async def test_revoked_rights_hide_objects(served: Served, people: People, places: tuple[str, str]) -> None:
    token = await people.somebody(a_rule(*SHOWN))
    async with served.browser() as browser:
        await browser.sign_in(token)
        assert await shows(browser, "/approvals", f"install-{places[1]}")
        await people.forbid(token)

        async def is_hidden() -> bool:
            return f"install-{places[1]}" not in (await browser.get("/approvals")).text

        assert await eventually(is_hidden, within=20)


def _words(page: str, name: str) -> str:
    """The text of the page, without the name of the object."""
    return page.partition("<h1>")[2].replace(f"install-{name}", "it")


def _steered() -> Object:
    return {"name": HCO.name, "namespace": HCO.namespace, "annotations": {"platform.kubevirt.io/autopilot": "true"}}


def _failure_of(ref: Ref) -> Object:
    """The event of an asset that the autopilot cannot apply."""
    about = {"kind": ref.kind.name, "namespace": ref.key.namespace, "name": ref.key.name}
    return {
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": {"name": f"denied-{uuid.uuid4().hex[:6]}", "namespace": HCO.namespace},
        "eventTime": rfc3339_micro(datetime.now(UTC)),
        "reportingController": REPORTERS["autopilot"],
        "reportingInstance": "tests",
        "type": "Warning",
        "reason": "ApplyFailed",
        "action": "Apply",
        "note": DENIAL,
        "regarding": {"kind": HYPERCONVERGED.name, "namespace": HCO.namespace, "name": HCO.name},
        "related": about,
    }
