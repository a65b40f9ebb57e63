"""Rejections, rollbacks and new plans: active profiles stay active, and messages are true."""

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from aiohttp import web

from tests.console.clicks import GOVERNED, NOTES, PAGE, any_form, behind, config, shown
from tests.console.objects import OTHER_PLAN, PLAN, a_review, no_approved_plans, no_config, put_config, the_config
from tests.console.people import People
from tests.console.rig import Browser
from tests.controllers.advisor.rig import AdvisorRig, a_descheduler, advising, no_reboots
from tests.eventually import eventually
from tests.gateway import a_status
from tests.grants import Account, an_account
from virt_steward.apis.profiles import HIGHER_DENSITY, LOAD_AWARE
from virt_steward.controllers.advisor.definition import definition
from virt_steward.controllers.advisor.options import AdvisorOptions
from virt_steward.controllers.advisor.profiles.load_aware_rebalancing import DESCHEDULER
from virt_steward.kube.client import Client, Object
from virt_steward.runtime.access import Installation
from virt_steward_demo.local.controlplane import ControlPlane
from virt_steward_demo.simulation.platform import PlatformShape, SimulatedPlatform

pytestmark = pytest.mark.asyncio(loop_scope="module")
INPUTS = [{"name": "a", "value": "1"}]


@pytest_asyncio.fixture(loop_scope="module")
async def advised(control_plane: ControlPlane, client: Client, namespace: str) -> AsyncIterator[AdvisorRig]:
    """A KubeDescheduler that existed before, and a running advisor."""
    await no_config(client)
    await no_approved_plans(client)
    installation = Installation(namespace, prefix=f"{namespace}-advisor")
    rights = await an_account(client, definition(AdvisorOptions(example_profile=True)).access, installation)
    async with SimulatedPlatform(client, PlatformShape(workers=1, pace=0.02)), advising(control_plane, rights):
        await client.create(a_descheduler())
        yield AdvisorRig(client)
    await no_config(client)
    await no_config(client, HIGHER_DENSITY)


@pytest.mark.parametrize(
    ("before", "after", "says", "status"),
    [
        pytest.param("DryRun", "Ignore", "the profile is now inactive", {}, id="first-plan"),
        pytest.param("DryRun", "DryRun", "It is not applied", {"governed": GOVERNED}, id="applied-plan"),
        pytest.param("DryRun", "DryRun", "It is not applied", {"appliedInputs": INPUTS}, id="applied-inputs"),
        pytest.param("Apply", "Apply", "It is not applied", {"governed": GOVERNED}, id="forced-review"),
        pytest.param("Apply", "Apply", "It is not applied", {}, id="other-plan-approved"),
        pytest.param("Rollback", "DryRun", "managed again", {"planAction": "Rollback"}, id="rollback"),
    ],
)
async def test_reject_keeps_active_profiles_active(  # noqa: PLR0917 - a table
    browser: Browser, client: Client, before: str, after: str, says: str, status: Object
) -> None:
    await no_config(client)
    approved = {f"{NOTES}/approved-plan": OTHER_PLAN}
    await put_config(client, {**a_review(), **status}, action=before, annotations=approved)
    page = await shown(browser, PAGE, "Reject")
    assert ("Stop managing…" in page.text) == (before == after), "both ways to end the review are offered"
    answer = await browser.post(f"{PAGE}/reject", {**page.form_with("plan"), "comment": "not now"})
    assert says in answer.text
    found = await config(client)
    assert found["spec"]["action"] == after
    notes = found["metadata"]["annotations"]
    assert (notes[f"{NOTES}/rejected-plan"], notes[f"{NOTES}/rejection-comment"]) == (PLAN, "not now")
    assert (f"{NOTES}/approved-plan" in notes) == (after == "Apply"), "without it, action Apply is an approval"


async def test_rejected_plan_leaves_inbox_until_replanned(browser: Browser, client: Client) -> None:
    await no_config(client)
    status = {**a_review(), "governed": GOVERNED, "planGeneration": 1}
    review = f'Review plan<span class="sr"> of {LOAD_AWARE}</span>'

    async def is_decided() -> bool:
        return review not in (await browser.get("/")).text

    await put_config(client, status)
    await shown(browser, "/", review)
    form = (await shown(browser, PAGE, PLAN)).form_with("plan")
    await browser.post(f"{PAGE}/reject", {**form, "comment": "not now"})
    assert await eventually(is_decided)
    page = (await shown(browser, PAGE, "This plan was rejected by")).text
    assert "not now" in page
    assert "Approve this plan" in page, "minds may change"
    await put_config(client, {**status, "planGeneration": 2})
    await shown(browser, "/", review)


async def test_reject_refuses_approved_plan(browser: Browser, client: Client) -> None:
    await no_config(client)
    await put_config(client, a_review(), action="Apply")
    form = (await shown(browser, PAGE, PLAN)).form_with("plan")
    await put_config(client, a_review(), action="Apply", annotations={f"{NOTES}/approved-plan": PLAN})
    answer = await browser.post(f"{PAGE}/reject", form)
    assert (answer.status, "already approved this plan" in answer.text) == (409, True)
    assert f"{NOTES}/rejected-plan" not in (await config(client))["metadata"]["annotations"]


async def test_reject_refuses_plan_of_earlier_spec(browser: Browser, client: Client) -> None:
    await no_config(client)
    await put_config(client, {**a_review(), "governed": GOVERNED})
    form = (await shown(browser, PAGE, PLAN)).form_with("plan")
    await client.merge_patch(the_config(), {"spec": {"action": "Rollback"}})
    assert (await browser.post(f"{PAGE}/reject", form)).status == 409
    assert (await config(client))["spec"]["action"] == "Rollback"


@pytest.mark.parametrize("phase", ["Drafting", "InProgress", "Failed", "CompletedWithErrors"])
async def test_cancel_rollback_before_completion(browser: Browser, client: Client, phase: str) -> None:
    await no_config(client)
    status = {**a_review(), "phase": phase, "planAction": "Rollback", "governed": GOVERNED}
    await put_config(client, status, action="Rollback", annotations={f"{NOTES}/approved-plan": PLAN})
    form = (await shown(browser, PAGE, "Cancel rollback")).form(f"{PAGE}/cancel-rollback")
    assert "The rollback of" in (await browser.post(f"{PAGE}/cancel-rollback", form)).text
    found = await config(client)
    assert found["spec"]["action"] == "DryRun"
    assert f"{NOTES}/approved-plan" not in found["metadata"].get("annotations", {})
    assert (await browser.post(f"{PAGE}/cancel-rollback", form)).status == 409


async def test_cancel_rollback_refuses_completed_rollback(browser: Browser, client: Client) -> None:
    await no_config(client)
    done = {**a_review(plan=OTHER_PLAN), "phase": "Completed", "planAction": "Rollback"}
    await put_config(client, done, action="Rollback")
    assert "Cancel rollback" not in (await shown(browser, PAGE, OTHER_PLAN)).text
    assert (await browser.post(f"{PAGE}/cancel-rollback", await any_form(browser))).status == 409
    assert (await config(client))["spec"]["action"] == "Rollback"


@pytest.mark.parametrize("phase", ["Failed", "CompletedWithErrors", "CompletedWithUpgrade", "Drifted"])
async def test_replan_after_failed_or_drifted_plan(browser: Browser, client: Client, phase: str) -> None:
    await no_config(client)
    await put_config(client, {**a_review(), "phase": phase, "planAction": "Apply"}, action="Apply")
    form = (await shown(browser, PAGE, ">Replan<")).form(f"{PAGE}/replan")
    before = (await config(client))["metadata"]["generation"]
    assert "A new plan for" in (await browser.post(f"{PAGE}/replan", form)).text
    found = await config(client)
    assert (found["spec"]["action"], found["metadata"]["generation"]) == ("DryRun", before + 1), "never off"


async def test_ignored_profile_can_be_replanned(browser: Browser, client: Client) -> None:
    await no_config(client)
    await put_config(
        client, {**a_review(), "phase": "Ignored", "governed": GOVERNED, "preImage": "a-record"}, action="Ignore"
    )
    page = await shown(browser, PAGE, "Roll back…")
    await browser.post(f"{PAGE}/replan", page.form(f"{PAGE}/replan"))
    assert (await config(client))["spec"]["action"] == "DryRun"


async def test_replan_retries_on_conflict(
    control_plane: ControlPlane, account: Account, people: People, client: Client
) -> None:
    await no_config(client)
    await put_config(client, a_review())
    writes = 0

    async def update_status_first(request: web.BaseRequest) -> None:
        """Conflict twice before each of the two writes; a third conflict would end the retries."""
        nonlocal writes
        writes += request.method == "PATCH"
        if request.method == "PATCH" and writes not in (3, 6):
            status_patch = {"status": {"preImage": f"{writes}"}}
            await client.merge_patch(the_config(), status_patch, subresource="status")

    async with behind(control_plane, account, people) as (browser, gateway):
        gateway.intercept = update_status_first
        form = await any_form(browser)
        assert "is being drafted" in (await browser.post(f"{PAGE}/replan", form)).text
    assert writes == 6
    assert (await config(client))["spec"]["action"] == "DryRun"


@pytest.mark.parametrize(
    ("action_name", "action", "says"),
    [
        pytest.param("activate", "Ignore", "is being drafted", id="activate"),
        pytest.param("reject", "DryRun", "the profile is now inactive", id="reject"),
    ],
)
async def test_action_retries_on_conflict(  # noqa: PLR0917 - a table
    control_plane: ControlPlane,
    account: Account,
    people: People,
    client: Client,
    action_name: str,
    action: str,
    says: str,
) -> None:
    await no_config(client)
    await put_config(client, a_review(), action=action)
    writes = 0

    async def update_status_first(request: web.BaseRequest) -> None:
        nonlocal writes
        writes += request.method == "PATCH"
        if request.method == "PATCH" and writes == 1:
            await client.merge_patch(the_config(), {"status": {"preImage": "another"}}, subresource="status")

    async with behind(control_plane, account, people) as (browser, gateway):
        gateway.intercept = update_status_first
        form = {**await any_form(browser), "plan": PLAN}
        assert says in (await browser.post(f"{PAGE}/{action_name}", form)).text
    assert writes == 2


async def test_replan_of_rollback_waits_for_the_advisor(
    control_plane: ControlPlane, account: Account, people: People, client: Client
) -> None:
    """Otherwise the advisor sees no change, and its plan stays out of date."""
    await no_config(client)
    await put_config(client, {**a_review(), "planAction": "Rollback", "preImage": "before"}, action="Rollback")
    looks: list[str] = []

    async def observe_late(request: web.BaseRequest) -> None:
        if not request.path.endswith(LOAD_AWARE):
            return
        found = await config(client)
        action, generation = found["spec"]["action"], found["metadata"]["generation"]
        looks.append(f"{request.method} {'seen' if found['status']['observedGeneration'] == generation else action}")
        if looks.count("GET Ignore") == 3:
            await client.merge_patch(the_config(), {"status": {"observedGeneration": generation}}, subresource="status")

    async with behind(control_plane, account, people) as (browser, gateway):
        gateway.intercept = observe_late
        answer = await browser.post(f"{PAGE}/replan", await any_form(browser))
    assert "is being drafted" in answer.text
    assert looks == ["GET seen", "PATCH seen", *["GET Ignore"] * 3, "GET seen", "PATCH seen"]
    assert (await config(client))["spec"]["action"] == "Rollback"


async def test_replan_reports_partial_result(
    control_plane: ControlPlane, account: Account, people: People, client: Client
) -> None:
    await no_config(client)
    await put_config(client, a_review())
    writes = 0

    async def refuse(request: web.BaseRequest) -> web.Response | None:
        nonlocal writes
        writes += request.method == "PATCH"
        return a_status(409, "Conflict") if writes > 1 and request.method == "PATCH" else None

    async with behind(control_plane, account, people) as (browser, gateway):
        gateway.intercept = refuse
        answer = await browser.post(f"{PAGE}/replan", await any_form(browser))
    assert answer.status == 409
    assert "was set to Ignore to request a new plan" in answer.text
    assert "nothing was" not in answer.text.lower()
    assert (await config(client))["spec"]["action"] == "Ignore"


async def test_rollback_is_cancelled_or_replanned_with_advisor(browser: Browser, advised: AdvisorRig) -> None:
    await advised.ask("Apply", options=no_reboots())
    assert await advised.reaches("Completed", within=30)
    await browser.post(f"{PAGE}/rollback", await any_form(browser))
    assert await advised.reaches("ReviewRequired", reason="RollbackReady")
    way_back = (await advised.status()).plan_hash
    page = await shown(browser, PAGE, way_back)
    await browser.post(f"{PAGE}/reject", {**page.form_with("plan"), "comment": "it works after all"})
    assert await advised.reaches("Completed", within=30)
    assert await advised.condition("ProfileActive") == ("True", "InSync")
    assert (await advised.status()).governed, "still watched"
    await browser.post(f"{PAGE}/rollback", await any_form(browser))
    assert await advised.reaches("ReviewRequired", reason="RollbackReady")
    await advised.client.merge_patch(DESCHEDULER, {"spec": {"deschedulingIntervalSeconds": 77}})
    page = await shown(browser, PAGE, ">Replan<")
    answer = await browser.post(f"{PAGE}/replan", page.form_with("plan"))
    assert "is being drafted" in answer.text
    assert await eventually(lambda: is_another_way_back(advised, way_back), within=15), await advised.status()


async def is_another_way_back(advised: AdvisorRig, known: str) -> bool:
    status = await advised.status()
    is_ready = status.phase == "ReviewRequired" and status.plan_action == "Rollback" and status.plan_hash != known
    return is_ready and await advised.condition("PlanStale") == ("False", "PlanCurrent")
