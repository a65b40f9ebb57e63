"""The console in a real browser: approval, rollout, live updates, accessibility."""

import re
from collections.abc import AsyncIterator
from typing import Literal

import pytest
import pytest_asyncio
from axe_playwright_python.async_playwright import Axe
from playwright.async_api import Browser as Chromium
from playwright.async_api import Page, expect

from tests.console.browser import keep_picture
from tests.console.objects import (
    OTHER_PLAN,
    PLAN,
    a_condition,
    a_drift,
    a_review,
    no_approved_plans,
    no_config,
    put,
    put_config,
    the_config,
)
from tests.console.rig import Served
from tests.controllers.advisor.rig import a_descheduler, advising
from tests.grants import an_account
from tests.installplans import an_install_plan, create_install_plan
from tests.machines import a_config as a_cluster
from tests.machines import a_machine, the_machine
from tests.machines import the_config as the_cluster
from virt_steward.apis.profiles import LOAD_AWARE
from virt_steward.console.pictures.node_tiles import NAMED
from virt_steward.controllers.advisor.definition import definition
from virt_steward.controllers.advisor.options import AdvisorOptions
from virt_steward.controllers.advisor.profiles.load_aware_rebalancing import DESCHEDULER
from virt_steward.controllers.autopilot.annotation_keys import SCOPE
from virt_steward.controllers.autopilot.options import HCO
from virt_steward.kube.client import Client
from virt_steward.objects.identity import Key, Ref, ref_of
from virt_steward.platform.hco import HYPERCONVERGED
from virt_steward.platform.machineconfigs import MACHINE_CONFIG_POOL
from virt_steward.runtime.access import Installation
from virt_steward_demo.local.controlplane import ControlPlane
from virt_steward_demo.simulation.install import make_namespace
from virt_steward_demo.simulation.installplans import a_subscription
from virt_steward_demo.simulation.nodes import Node, add_pool
from virt_steward_demo.simulation.platform import PlatformShape, SimulatedPlatform
from virt_steward_demo.simulation.pools import CURRENT, DESIRED, STATE

pytestmark = pytest.mark.asyncio(loop_scope="module")

PLAN_PAGE = f"/profiles/{LOAD_AWARE}"
PAGES = ("/", "/inbox", "/profiles", PLAN_PAGE, "/autopilot", "/approvals", "/placement", "/activity")
PLACE = "of-one-thing"
PAGES_OF_ONE = {
    "/autopilot/hco-golden-config": "hco-golden-config",
    f"/approvals/{PLACE}/install-one": f"InstallPlan {PLACE}/install-one",
    f"/placement/machines/{PLACE}/one": f"Machine {PLACE}/one",
    "/placement/clusters/one": "Cluster one",
    "/placement/clusters/none": "Not found",
}
"""Paths and headings."""
BARE_PAGES = {"/sign-in": "Sign in", "/nothing": "No such page"}
AXE = Axe()
SCHEMES: tuple[Literal["light", "dark"], ...] = ("light", "dark")


@pytest_asyncio.fixture(loop_scope="module")
async def advised(control_plane: ControlPlane, client: Client, namespace: str) -> AsyncIterator[Client]:
    """A platform with slow nodes, and a running advisor."""
    await no_config(client)
    await no_approved_plans(client)
    installation = Installation(namespace, prefix=f"{namespace}-advisor")
    rights = await an_account(client, definition(AdvisorOptions(example_profile=True)).access, installation)
    async with SimulatedPlatform(client, PlatformShape(workers=3, pace=0.6)), advising(control_plane, rights):
        yield client
    await no_config(client)


@pytest_asyncio.fixture(loop_scope="module")
async def things(client: Client) -> AsyncIterator[Client]:
    """One object of each kind that has a page."""
    await make_namespace(client, PLACE)
    plan = an_install_plan("install-one", PLACE)
    made = (
        {
            "apiVersion": "hco.kubevirt.io/v1",
            "kind": HYPERCONVERGED.name,
            "metadata": {"name": HCO.name, "namespace": HCO.namespace, "annotations": {SCOPE: "true"}},
        },
        a_subscription(Key(PLACE, "demo-operator"), pin="demo-operator.v2.0.0"),
        a_machine(PLACE, "one"),
        a_cluster("one", Key(PLACE, "none"), labels={"region": "north"}),
    )
    for one in made:
        await put(client, one)
    await create_install_plan(client, plan)
    unplaced = a_condition("Placed", "no cluster fits", status="False", reason="NoClusterFits")
    await client.merge_patch(the_machine(PLACE, "one"), {"status": {"conditions": [unplaced]}}, subresource="status")
    silent = a_condition("Reachable", "it does not answer", status="False", reason="Silent")
    await client.merge_patch(the_cluster("one"), {"status": {"conditions": [silent]}}, subresource="status")
    yield client
    for one in (plan, *made):
        await client.delete(ref_of(one))


@pytest_asyncio.fixture(loop_scope="module")
async def pools(client: Client) -> AsyncIterator[None]:
    """A pool with nodes by name, one of them being updated, and one with so many that they are a mosaic."""
    made = [Ref(MACHINE_CONFIG_POOL, Key("", name)) for name in ("few", "many")]
    await add_pool(client, "few", configuration={"name": "rendered-new"})
    await add_pool(client, "many")
    updating = {CURRENT: "rendered-old", DESIRED: "rendered-new", STATE: "Working"}
    nodes = [Node("few-1", roles=("few",)), *(Node(f"many-{number}", roles=("many",)) for number in range(NAMED + 1))]
    for node in nodes:
        manifest = node.manifest()
        manifest["metadata"]["annotations"] = updating if node.name == "few-1" else {}
        manifest["spec"]["unschedulable"] = node.name == "many-7"
        await client.create(manifest)
        made.append(ref_of(manifest))
    status = {"machineCount": 1, "conditions": [a_condition("Updating")]}
    await client.merge_patch(made[0], {"status": status}, subresource="status")
    yield
    for ref in made:
        await client.delete(ref)


async def test_plan_is_reviewed_approved_and_rolled_out(page: Page, advised: Client) -> None:
    await page.goto("/profiles")
    card = page.locator(f"#p-{LOAD_AWARE}")
    await card.get_by_text("Activate: draft a plan").click()
    await card.get_by_role("button", name="Draft a plan").click()
    await expect(page.get_by_text(f"A plan for {LOAD_AWARE} is being drafted")).to_be_visible()
    await page.goto("/inbox")
    review = page.get_by_role("link", name=f"Review plan of {LOAD_AWARE}")
    await expect(review).to_be_visible()
    await keep_picture(page, "inbox")
    await review.click()
    await expect(page.get_by_text("3 nodes reboot").first).to_be_visible()
    await expect(page.locator(".diff .added", has_text="psi=1")).to_be_visible()
    await page.get_by_label("Comment").fill("agreed in the change meeting")
    await keep_picture(page, "plan")
    await page.get_by_role("button", name="Approve this plan").click()
    await expect(page.get_by_text("You approved this plan")).to_be_visible()
    await expect(page.locator(".nodes .now")).to_be_visible()
    await keep_picture(page, "rollout")
    await expect(page.locator(".nodes .done")).to_have_count(3)
    await expect(page.locator(".chart rect.b-updated")).to_have_count(3)
    await expect(page.get_by_role("status").get_by_text("Completed", exact=True)).to_be_visible()
    history = page.get_by_role("region", name="History").or_(page.locator("section", has_text="History"))
    await expect(history.get_by_text("agreed in the change meeting").first).to_be_visible()
    assert (await advised.get(the_config()))["spec"]["action"] == "Apply"


async def test_changed_plan_disables_approval(page: Page, client: Client) -> None:
    await put_config(client, a_review())
    await page.goto(PLAN_PAGE)
    await expect(page.locator(f"#decide[data-plan='{PLAN}']")).to_be_visible()
    await page.get_by_label("Comment").fill("half a sent")
    await put_config(client, a_review(plan=OTHER_PLAN))
    await expect(page.get_by_text("The plan has changed since you opened it")).to_be_visible()
    await expect(page.get_by_role("button", name="Approve this plan")).to_be_disabled()
    assert await page.get_by_label("Comment").input_value() == "half a sent"
    await page.get_by_role("link", name="Review the new plan").click()
    await expect(page.locator(f"code[title='{OTHER_PLAN}']")).to_be_visible()
    await expect(page.get_by_role("button", name="Approve this plan")).to_be_enabled()


async def test_replaced_install_plan_disables_approval(page: Page, client: Client, namespace: str) -> None:
    plan = an_install_plan("install-1", namespace)
    await create_install_plan(client, plan)
    address = f"/approvals/{namespace}/install-1"
    await page.goto(address)
    button = page.get_by_role("button", name="Approve manually")
    await expect(button).to_be_enabled()
    await client.merge_patch(ref_of(plan), {"spec": {"clusterServiceVersionNames": ["evil.v6.6.6"]}})
    await expect(page.get_by_text("The InstallPlan has changed since you opened it")).to_be_visible()
    await expect(button).to_be_disabled()
    await page.get_by_role("link", name="Review it again").click()
    await expect(button).to_be_enabled()
    await client.delete(ref_of(plan))
    await create_install_plan(client, plan)
    await expect(button).to_be_disabled()


async def test_late_approval_is_refused_without_scripts(
    chromium: Chromium, page: Page, served: Served, client: Client
) -> None:
    """Without scripts there is no warning on the page, so the server must refuse."""
    await put_config(client, a_review())
    context = await chromium.new_context(
        base_url=served.origin, java_script_enabled=False, storage_state=await page.context.storage_state()
    )
    plain = await context.new_page()
    await plain.goto(PLAN_PAGE)
    await expect(plain.locator(f"code[title='{PLAN}']")).to_be_visible()
    await put_config(client, a_review(plan=OTHER_PLAN))
    await plain.get_by_role("button", name="Approve this plan").click()
    await expect(plain.get_by_role("alert")).to_contain_text("the plan has changed")
    assert (await client.get(the_config()))["spec"]["action"] == "DryRun"
    await context.close()


async def test_actions_show_in_other_browsers(page: Page, other: Page, client: Client) -> None:
    await put_config(client, a_review())
    await page.goto(PLAN_PAGE)
    await other.goto(PLAN_PAGE)
    await expect(other.get_by_role("button", name="Reject")).to_be_visible()
    await page.get_by_label("Comment").fill("too early")
    await page.get_by_role("button", name="Reject").click()
    await expect(other.get_by_text("too early")).to_be_visible()
    await expect(other.get_by_role("button", name="Approve this plan")).to_be_disabled()


async def test_live_updates_keep_input_and_focus(page: Page, client: Client, namespace: str) -> None:
    await create_install_plan(client, an_install_plan("install-first", namespace))
    await page.goto(f"/approvals?q={namespace}")
    await expect(page.get_by_role("link", name=f"{namespace}/install-first")).to_be_visible()
    search = page.get_by_label("Filter by text")
    await search.fill("being typed")
    await create_install_plan(client, an_install_plan("install-second", namespace))
    await expect(page.get_by_role("link", name=f"{namespace}/install-second")).to_be_visible()
    await expect(search).to_be_focused()
    assert await search.input_value() == "being typed"


async def test_live_updates_resume_after_sign_in(page: Page) -> None:
    await page.goto("/placement")
    liveness = page.locator("#liveness")
    await expect(liveness).to_have_text("Live")
    cookies = await page.context.cookies()
    await page.context.clear_cookies()
    await page.evaluate("() => { close(); open(); }")
    await expect(liveness).to_have_text("Not live. Reload the page; you may have to sign in again")
    await page.context.add_cookies([{**cookie} for cookie in cookies])
    await expect(liveness).to_have_text("Live")


@pytest.mark.parametrize("path", PAGES)
async def test_pages_are_accessible_and_fit_phones(page: Page, client: Client, path: str) -> None:
    await put_config(client, a_review())
    await page.goto(path)
    await expect(page.locator("#liveness")).to_have_text("Live")
    assert await violations(page) == {}
    assert await width_on_a_phone(page) <= 390


@pytest.mark.parametrize("path", PAGES_OF_ONE)
async def test_object_pages_are_accessible_and_fit_phones(page: Page, things: Client, path: str) -> None:
    assert things
    await page.goto(path)
    await expect(page.get_by_role("heading", level=1)).to_have_text(PAGES_OF_ONE[path])
    await expect(page.locator("#liveness")).to_have_text("Live")
    assert await violations(page) == {}
    assert await width_on_a_phone(page) <= 390


async def test_drifted_plan_page_is_accessible(page: Page, client: Client) -> None:
    await make_namespace(client, DESCHEDULER.key.namespace)
    await put(client, a_descheduler(mode="Predictive"))
    await put_config(client, a_drift(a_descheduler(mode="Automatic"), "spec.mode"), action="Apply")
    await page.goto(PLAN_PAGE)
    await expect(page.locator(".diff .removed", has_text="mode: Predictive")).to_be_visible()
    await expect(page.locator("#liveness")).to_have_text("Live")
    await page.get_by_text("Changes of the plan").click()
    await keep_picture(page, "drift")
    assert await violations(page) == {}
    await client.delete(DESCHEDULER)


@pytest.mark.parametrize("path", BARE_PAGES)
async def test_bare_pages_are_accessible(page: Page, path: str) -> None:
    await page.goto(path)
    await expect(page.get_by_role("heading", level=1)).to_have_text(BARE_PAGES[path])
    assert await violations(page) == {}


@pytest.mark.usefixtures("pools")
@pytest.mark.parametrize(("name", "picture"), [("few", "svg rect.b-updating"), ("many", "svg.mosaic path.s-cordoned")])
async def test_pool_pages_are_accessible(page: Page, name: str, picture: str) -> None:
    await page.goto(f"/pools/{name}")
    await expect(page.get_by_role("heading", level=1)).to_have_text(f"Pool {name}")
    await expect(page.locator(picture).first).to_be_visible()
    await expect(page.locator("#liveness")).to_have_text("Live")
    for summary in await page.locator("summary").all():
        await summary.click()
    assert await violations(page) == {}
    assert await width_on_a_phone(page) <= 390


async def violations(page: Page) -> dict[str, list[tuple[str, list[str]]]]:
    """What axe finds in light and in dark colours."""
    found: dict[str, list[tuple[str, list[str]]]] = {}
    for scheme in SCHEMES:
        await page.emulate_media(color_scheme=scheme)
        for one in (await AXE.run(page)).response["violations"]:
            found.setdefault(scheme, []).append((one["id"], [node["html"] for node in one["nodes"]]))
    return found


async def width_on_a_phone(page: Page) -> int:
    """The width of the content in a window of 390 pixels."""
    await page.set_viewport_size({"width": 390, "height": 800})
    width: int = await page.evaluate("document.documentElement.scrollWidth")
    return width


async def test_navigation_fits_phones(page: Page) -> None:
    await page.goto("/placement")
    await width_on_a_phone(page)
    for link in await page.locator("#nav a").all():
        box = await link.bounding_box()
        assert box
        assert box["x"] + box["width"] <= 390


async def test_keyboard_reaches_a_plan(page: Page, client: Client) -> None:
    await no_config(client)  # one that was rejected waits for nobody
    await put_config(client, a_review())
    await page.goto("/")
    await page.keyboard.press("Tab")
    await expect(page.get_by_role("link", name="Skip to content")).to_be_focused()
    await page.keyboard.press("Enter")
    await expect(page.locator("#main")).to_be_focused()
    link = page.get_by_role("link", name=f"Review plan of {LOAD_AWARE}")
    for _ in range(20):
        await page.keyboard.press("Tab")
        if await link.evaluate("one => one === document.activeElement"):
            break
    await page.keyboard.press("Enter")
    await expect(page).to_have_url(re.compile(PLAN_PAGE))


async def test_theme_can_be_changed(page: Page) -> None:
    await page.goto("/")
    await page.get_by_role("button", name="Colours").click()
    await expect(page.locator("html")).to_have_attribute("data-theme", "dark")
