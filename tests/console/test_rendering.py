"""Pages while loading, without rights, without objects, without the API server, and with checks."""

import pytest

from tests.console.clicks import shown
from tests.console.objects import PLAN, a_condition, a_review, put_config
from tests.console.people import People, a_rule
from tests.console.rig import Browser, Served, a_console
from tests.controllers.approver.lifecycle import a_lifecycle, an_approver
from tests.eventually import eventually
from tests.grants import Account
from tests.installplans import an_install_plan, create_install_plan
from tests.machines import a_machine, the_machine
from tests.proxy import FaultProxy
from virt_steward.apis.profiles import LOAD_AWARE
from virt_steward.controllers.approver.verdicts import PlanReason
from virt_steward.insight.approvals import UNCOVERED
from virt_steward.kube.client import Client
from virt_steward_demo.local.controlplane import ControlPlane

pytestmark = pytest.mark.asyncio(loop_scope="module")
RESOURCES = ("installplans", "subscriptions", "clusterserviceversions", "namespaces")
PAGES = ("/", "/inbox", "/profiles", "/autopilot", "/approvals", "/placement", "/activity")


@pytest.mark.parametrize("path", PAGES)
async def test_page_shows_loading_kinds(
    control_plane: ControlPlane, account: Account, people: People, path: str
) -> None:
    token = await people.admin()
    async with a_console(control_plane, account.token, is_filled=False) as served, served.browser() as browser:
        await browser.sign_in(token)
        assert "Loading:" in (await browser.get(path)).text


async def test_page_names_kinds_denied_to_the_console(
    control_plane: ControlPlane, people: People, client: Client
) -> None:
    await put_config(client, a_review())
    poor = await people.somebody(a_rule("advisor.kubevirt.io", "apiextensions.k8s.io"))
    async with a_console(control_plane, poor) as served, served.browser() as browser:
        await browser.sign_in(await people.admin())
        for path in PAGES:
            page = (await browser.get(path)).text
            assert "the console's own account is forbidden to" in page
            assert "<code>installplans.operators.coreos.com</code>" in page
            assert "<code>virtplatformconfigs.advisor.kubevirt.io</code>" not in page
            assert "Loading:" not in page
            assert "Not connected" not in page
        assert PLAN in (await browser.get(f"/profiles/{LOAD_AWARE}")).text
        autopilot = (await browser.get("/autopilot")).text
        assert "The console may not read HyperConverged" in autopilot


async def test_pending_plan_is_unknown_when_approvers_are_denied(
    control_plane: ControlPlane, people: People, client: Client, namespace: str
) -> None:
    await create_install_plan(client, an_install_plan("install-dim", namespace))
    dim = await people.somebody(a_rule("apiextensions.k8s.io"), a_rule("operators.coreos.com", "", resources=RESOURCES))
    async with a_console(control_plane, dim) as served, served.browser() as browser:
        await browser.sign_in(await people.admin())
        assert await eventually(lambda: _shows(browser, "/approvals", PlanReason.NAMESPACE_DENIED))
        for path in (f"/inbox?q={namespace}", f"/approvals?q={namespace}", f"/approvals/{namespace}/install-dim"):
            page = (await browser.get(path)).text
            assert "install-dim" in page
            assert UNCOVERED not in page
            assert "no InstallPlanApprover looks after it" not in page
            assert "not pinned" not in page


@pytest.mark.parametrize("path", PAGES)
async def test_empty_page_has_explanation(served: Served, people: People, path: str) -> None:
    async with served.browser() as browser:
        await browser.sign_in(await people.stranger())
        page = await browser.get(path)
        assert page.status == 200
        assert 'class="empty"' in page.text or path == "/profiles"


async def test_page_is_unavailable_when_rights_are_unknown(
    control_plane: ControlPlane, account: Account, people: People, client: Client
) -> None:
    assert client
    async with FaultProxy(control_plane.port) as proxy:
        console = a_console(control_plane, account.token, server=proxy.server, rights_remembered=0.0, heartbeat=0.2)
        async with console as served, served.browser() as browser:
            await browser.sign_in(await people.admin())
            assert (await browser.get("/profiles")).status == 200
            async with browser.live("/profiles") as stream:
                assert await eventually(lambda: stream.received("page"))
                await proxy.refuse()
                await proxy.cut()
                page = await browser.get("/profiles")
                assert page.status == 503
                assert "Your rights cannot be checked now" in page.text
                assert await eventually(lambda: stream.received("trouble"))
                await proxy.accept()
                assert await eventually(lambda: _answers(browser))


async def _shows(browser: Browser, path: str, text: str) -> bool:
    return text in (await browser.get(path)).text


async def _answers(browser: Browser) -> bool:
    return (await browser.get("/profiles")).status == 200


async def test_unknown_path_is_not_found(served: Served, people: People) -> None:
    async with served.browser() as browser:
        await browser.sign_in(await people.stranger())
        for path in ("/nothing", "/profiles/a/b", "/approvals/one", "/static/secret", "/profiles/%0d%0aX"):
            assert (await browser.get(path)).status == 404
        page = await browser.get("/")
        assert (await browser.post("/nothing", page.form("/sign-out"))).status == 404


async def test_plan_page_shows_checks(browser: Browser, client: Client) -> None:
    await put_config(client, a_review())
    page = await shown(browser, f"/profiles/{LOAD_AWARE}", '<ol class="checks">')
    assert page.text.count(" decided") == page.text.count(">decided</span>") == 1
    assert '<span class="sr">pass: </span>' in page.text


async def test_install_plan_page_shows_checks_of_each_approver(
    browser: Browser, client: Client, namespace: str
) -> None:
    olm = await a_lifecycle(client, f"{namespace}-olm")
    await an_approver(client, olm.namespace, targetNamespaces=[olm.namespace])
    await olm.subscribe("db", pin="db.v1.0.0")
    plan = await olm.offer("db.v2.0.0")
    page = await shown(browser, f"/approvals/{plan}", '<li class="fail decided">')
    for mark in ("✓", "✗"):
        assert f'<span class="mark" aria-hidden="true">{mark}</span>' in page.text


async def test_machine_page_shows_the_reported_check(browser: Browser, client: Client, namespace: str) -> None:
    await client.create(a_machine(namespace, "web"))
    unplaced = a_condition("Placed", "no cluster fits", status="False", reason="NoClusterFits")
    await client.merge_patch(
        the_machine(namespace, "web"), {"status": {"conditions": [unplaced]}}, subresource="status"
    )
    page = await shown(browser, f"/placement/machines/{namespace}/web", '<li class="fail decided">')
    assert "no cluster fits" in page.text
