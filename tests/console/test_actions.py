"""Actions of viewers: with their own credentials, and only on what they were shown."""

import re

import pytest
from aiohttp import web

from tests.audit import BEGINNING, AuditLog
from tests.console.clicks import GOVERNED, NOTES, PAGE, any_form, behind, config, shown
from tests.console.objects import OTHER_PLAN, PLAN, a_condition, a_review, no_config, put_config
from tests.console.people import People, user_of
from tests.console.rig import Browser, Served, a_console
from tests.controllers.advisor.rig import the_config
from tests.grants import Account
from tests.installplans import an_install_plan, create_install_plan
from tests.machines import a_config, a_machine, cluster_of, the_machine
from tests.machines import the_config as the_cluster
from tests.proxy import FaultProxy
from virt_steward.apis.profiles import HIGHER_DENSITY
from virt_steward.controllers.approver.manual_approval import APPROVAL_COMMENT, APPROVED_BY_USER
from virt_steward.controllers.approver.olm import INSTALL_PLAN
from virt_steward.controllers.placement.observation import CONFIG_ANNOTATION
from virt_steward.kube.client import Client
from virt_steward.objects.identity import Key, Ref
from virt_steward.packaging.roles import UserRole
from virt_steward.packaging.roles import people as roles
from virt_steward.runtime.access import Installation
from virt_steward_demo.local.controlplane import ControlPlane

pytestmark = pytest.mark.asyncio(loop_scope="module")


async def test_approve_records_plan_and_user_in_one_write(
    client: Client, served: Served, people: People, audit_log: AuditLog
) -> None:
    await put_config(client, a_review())
    token = await people.admin()
    async with served.browser() as browser:
        await browser.sign_in(token)
        page = await shown(browser, PAGE, PLAN)
        mark = audit_log.mark()
        answer = await browser.post(f"{PAGE}/approve", {**page.form_with("plan"), "comment": "in the window"})
        assert "You approved this plan" in answer.text
    found = await config(client)
    assert found["spec"]["action"] == "Apply"
    notes = found["metadata"]["annotations"]
    assert notes[f"{NOTES}/approved-plan"] == PLAN
    assert notes[f"{NOTES}/approved-by"] == user_of(token)
    assert notes[f"{NOTES}/approval-comment"] == "in the window"
    writes = [one for one in audit_log.since(mark) if one.is_write and one.resource == "virtplatformconfigs"]
    assert [(one.user, one.verb) for one in writes] == [(user_of(token), "patch")]


@pytest.mark.parametrize(
    ("role", "buttons"),
    [
        pytest.param(UserRole.VIEWER, [], id="viewer"),
        pytest.param(UserRole.REQUESTER, ["Stop managing…"], id="requester"),
        pytest.param(UserRole.APPROVER, ["Reject", "Stop managing…", "Approve this plan"], id="approver"),
    ],
)
async def test_plan_page_offers_roles_what_they_may_do(
    client: Client, served: Served, people: People, role: UserRole, buttons: list[str]
) -> None:
    await put_config(client, {**a_review(), "appliedInputs": [{"name": "a", "value": "1"}]})
    [rules] = [one["rules"] for one in roles(Installation()) if one["metadata"]["name"].endswith(role)]
    async with served.browser() as browser:
        await browser.sign_in(await people.somebody(*rules))
        page = await shown(browser, PAGE, PLAN)
    offered = re.findall(r"<button[^>]*formaction[^>]*>([^<]*)</button>", page.text)
    assert offered == buttons
    assert ("Your account may not approve" in page.text) == (role is not UserRole.APPROVER)


async def test_approve_adds_one_of_several_approvals(browser: Browser, client: Client) -> None:
    await no_config(client)
    await put_config(client, a_review())
    await client.merge_patch(the_config(), {"spec": {"approvals": {"required": 2}}})
    await put_config(client, a_review())
    form = (await shown(browser, PAGE, PLAN)).form_with("plan")
    answer = await browser.post(f"{PAGE}/approve", {**form, "comment": "so far"})
    assert "1 of 2 approvals" in answer.text
    found = await config(client)
    assert found["spec"]["action"] == "Apply"
    assert found["metadata"]["annotations"][f"{NOTES}/approvals"].startswith(f"{PLAN} 20")
    assert f"{NOTES}/approved-plan" not in found["metadata"]["annotations"]
    await no_config(client)


async def test_approve_refuses_changed_plan(browser: Browser, client: Client) -> None:
    await put_config(client, a_review())
    form = (await shown(browser, PAGE, PLAN)).form_with("plan")
    await put_config(client, a_review(plan=OTHER_PLAN))
    answer = await browser.post(f"{PAGE}/approve", form)
    assert answer.status == 409
    assert "the plan has changed" in answer.text
    assert (await config(client))["spec"]["action"] == "DryRun"


async def test_approve_refuses_plan_not_in_review(browser: Browser, client: Client) -> None:
    await put_config(client, a_review())
    form = (await shown(browser, PAGE, PLAN)).form_with("plan")
    await put_config(client, {**a_review(), "phase": "Failed"})
    answer = await browser.post(f"{PAGE}/approve", form)
    assert answer.status == 409
    assert "in phase Failed" in answer.text


async def test_approve_keeps_action_rollback(browser: Browser, client: Client) -> None:
    await put_config(client, {**a_review(), "planAction": "Rollback"}, action="Rollback")
    page = await shown(browser, PAGE, "Approve rollback")
    await browser.post(f"{PAGE}/approve", page.form_with("plan"))
    found = await config(client)
    assert found["spec"]["action"] == "Rollback"
    assert found["metadata"]["annotations"][f"{NOTES}/approved-plan"] == PLAN


async def test_reject_records_comment(browser: Browser, client: Client) -> None:
    await put_config(client, a_review())
    page = await shown(browser, PAGE, PLAN)
    await browser.post(f"{PAGE}/reject", {**page.form_with("plan"), "comment": "not before the audit"})
    assert (await config(client))["spec"]["action"] == "Ignore"
    await shown(browser, PAGE, "not before the audit")


async def test_reject_refuses_changed_plan(browser: Browser, client: Client) -> None:
    await put_config(client, a_review())
    form = (await shown(browser, PAGE, PLAN)).form_with("plan")
    await put_config(client, a_review(plan=OTHER_PLAN))
    assert (await browser.post(f"{PAGE}/reject", form)).status == 409
    assert (await config(client))["spec"]["action"] == "DryRun"


async def test_roll_back_and_stop_managing_set_the_action(browser: Browser, client: Client) -> None:
    await no_config(client)
    done = {**a_review(), "phase": "Completed", "governed": GOVERNED, "conditions": [a_condition("Completed")]}
    await put_config(client, {**done, "conditions": [a_condition("Completed"), a_condition("Adopted")]})
    page = await shown(browser, PAGE, "Left by another advisor")
    assert "Roll back…" not in page.text, "nothing is known of what was there before"
    refused = await browser.post(f"{PAGE}/rollback", page.form_with("plan"))
    assert (refused.status, "There is no executed plan" in refused.text) == (409, True)
    await put_config(client, {**done, "preImage": "a-record"})
    page = await shown(browser, PAGE, "Roll back…")
    await browser.post(f"{PAGE}/rollback", page.form(f"{PAGE}/rollback"))
    assert (await config(client))["spec"]["action"] == "Rollback"
    page = await shown(browser, PAGE, "Stop managing…")
    await browser.post(f"{PAGE}/stop-managing", page.form(f"{PAGE}/stop-managing"))
    assert (await config(client))["spec"]["action"] == "Ignore"


async def test_activate_sets_options_of_the_form(browser: Browser, client: Client) -> None:
    await no_config(client, HIGHER_DENSITY)
    activate = f"/profiles/{HIGHER_DENSITY}/activate"
    form = (await browser.get("/profiles")).form(activate)
    options = {
        "option.virtHigherDensity.enableSwap": "true",
        "option.virtHigherDensity.memoryToRequestRatio": "180",
        "option.virtHigherDensity.ksmConfiguration.nodeLabelSelector.matchLabels": "kind=big, zone=a",
    }
    await browser.post(activate, {**form, **options})
    spec = (await config(client, HIGHER_DENSITY))["spec"]
    assert spec["action"] == "DryRun"
    found = spec["options"]["virtHigherDensity"]
    assert (found["enableSwap"], found["memoryToRequestRatio"]) == (True, 180)
    assert found["ksmConfiguration"]["nodeLabelSelector"]["matchLabels"] == {"kind": "big", "zone": "a"}
    before = (await config(client, HIGHER_DENSITY))["metadata"]["generation"]
    await browser.post(activate, {**form, "option.virtHigherDensity.memoryToRequestRatio": "110"})
    after = await config(client, HIGHER_DENSITY)
    assert after["spec"]["options"]["virtHigherDensity"]["enableSwap"] is False
    await browser.post(activate, {**form, "option.virtHigherDensity.memoryToRequestRatio": "110"})
    again = await config(client, HIGHER_DENSITY)
    assert before < after["metadata"]["generation"] < again["metadata"]["generation"], "asked anew, though the same"
    await no_config(client, HIGHER_DENSITY)


async def test_activate_replaces_labels(browser: Browser, client: Client) -> None:
    await no_config(client, HIGHER_DENSITY)
    activate = f"/profiles/{HIGHER_DENSITY}/activate"
    labels = "option.virtHigherDensity.ksmConfiguration.nodeLabelSelector.matchLabels"
    form = {**(await browser.get("/profiles")).form(activate), "option.virtHigherDensity.enableSwap": "true"}
    for text, expected in (
        ("kind=big, zone=a", {"kind": "big", "zone": "a"}),
        ("zone=b", {"zone": "b"}),
        ("", None),
    ):
        await browser.post(activate, {**form, labels: text})
        options = (await config(client, HIGHER_DENSITY))["spec"]["options"]["virtHigherDensity"]
        assert options["ksmConfiguration"].get("nodeLabelSelector", {}).get("matchLabels") == expected
    await no_config(client, HIGHER_DENSITY)


@pytest.mark.parametrize(
    ("value", "says"),
    [("12x", "must be a whole number"), ("7", "must be between 100 and 300"), ("-1", "must be a whole number")],
)
async def test_activate_refuses_invalid_option(browser: Browser, value: str, says: str) -> None:
    activate = f"/profiles/{HIGHER_DENSITY}/activate"
    form = (await browser.get("/profiles")).form(activate)
    answer = await browser.post(activate, {**form, "option.virtHigherDensity.memoryToRequestRatio": value})
    assert answer.status == 400
    assert says in answer.text


async def test_activate_shows_validation_error_of_the_cluster(browser: Browser, client: Client) -> None:
    await no_config(client, HIGHER_DENSITY)
    activate = f"/profiles/{HIGHER_DENSITY}/activate"
    form = (await browser.get("/profiles")).form(activate)
    answer = await browser.post(activate, {**form, "option.virtHigherDensity.memoryToRequestRatio": "200"})
    assert answer.status == 422
    assert "requires enableSwap=true" in answer.text


async def test_approve_install_plan_records_user(
    client: Client, served: Served, people: People, namespace: str
) -> None:
    await create_install_plan(client, an_install_plan("install-1", namespace))
    token, page = await people.admin(), f"/approvals/{namespace}/install-1"
    async with served.browser() as browser:
        await browser.sign_in(token)
        form = (await shown(browser, page, "Approve manually")).form(f"{page}/approve")
        answer = await browser.post(f"{page}/approve", {**form, "comment": "needed today"})
        assert "You approved" in answer.text
        again = await browser.post(f"{page}/approve", form)
        assert (again.status, "already approved" in again.text) == (409, True)
    plan = await client.get(Ref(INSTALL_PLAN, Key(namespace, "install-1")))
    assert plan["spec"]["approved"] is True
    assert plan["metadata"]["annotations"][APPROVED_BY_USER] == user_of(token)
    assert plan["metadata"]["annotations"][APPROVAL_COMMENT] == "needed today"


async def test_approve_install_plan_refuses_replaced_plan(browser: Browser, client: Client, namespace: str) -> None:
    await create_install_plan(client, an_install_plan("install-1", namespace))
    page, plan = f"/approvals/{namespace}/install-1", Ref(INSTALL_PLAN, Key(namespace, "install-1"))
    form = (await shown(browser, page, "Approve manually")).form(f"{page}/approve")
    await client.merge_patch(plan, {"spec": {"clusterServiceVersionNames": ["evil.v6.6.6"]}})
    changed = await browser.post(f"{page}/approve", form)
    assert changed.status == 409
    assert "installs evil.v6.6.6 now, not demo-operator.v1.0.0" in changed.text
    await client.delete(plan)
    await create_install_plan(client, an_install_plan("install-1", namespace))
    replaced = await browser.post(f"{page}/approve", form)
    assert (replaced.status, "another InstallPlan has its name now" in replaced.text) == (409, True)
    unknown = await browser.post(f"{page}/approve", {"csrf": form["csrf"], "csvs": "\x00["})
    assert unknown.status == 409
    assert (await client.get(plan))["spec"]["approved"] is False


async def test_choose_cluster_places_machine(browser: Browser, client: Client, namespace: str) -> None:
    await client.create(a_machine(namespace, "web"))
    await client.create(a_config(f"east-{namespace}", Key(namespace, "none")))
    page = f"/placement/machines/{namespace}/web"
    form = (await shown(browser, page, f"east-{namespace}")).form(f"{page}/choose")
    await browser.post(f"{page}/choose", {**form, "cluster": f"east-{namespace}"})
    assert await cluster_of(client, namespace, "web") == f"east-{namespace}"
    await client.delete(the_cluster(f"east-{namespace}"))


async def test_choose_cluster_refuses_placed_machine(browser: Browser, client: Client, namespace: str) -> None:
    await client.create(a_machine(namespace, "web"))
    east, west = f"east-{namespace}", f"west-{namespace}"
    for name in (east, west):
        await client.create(a_config(name, Key(namespace, "none")))
    page = f"/placement/machines/{namespace}/web"
    form = (await shown(browser, page, east)).form(f"{page}/choose")
    await place(client, namespace, west)
    answer = await browser.post(f"{page}/choose", {**form, "cluster": east})
    assert (answer.status, f"already on cluster {west}" in answer.text) == (409, True)
    assert await cluster_of(client, namespace, "web") == west
    for name in (east, west):
        await client.delete(the_cluster(name))


async def test_choose_cluster_refuses_concurrent_placement(
    control_plane: ControlPlane, account: Account, people: People, client: Client, namespace: str
) -> None:
    await client.create(a_machine(namespace, "web"))
    await client.create(a_config(f"east-{namespace}", Key(namespace, "none")))

    async def place_first(request: web.BaseRequest) -> None:
        if request.method == "PATCH":
            await place(client, namespace, "west")

    async with behind(control_plane, account, people) as (browser, gateway):
        gateway.intercept = place_first
        form = {**await any_form(browser), "cluster": f"east-{namespace}"}
        answer = await browser.post(f"/placement/machines/{namespace}/web/choose", form)
    assert (answer.status, "has just changed it" in answer.text) == (409, True)
    assert await cluster_of(client, namespace, "web") == "west"
    await client.delete(the_cluster(f"east-{namespace}"))


@pytest.mark.parametrize("suffix", ["-that-is-not-there", "/status", ",metadata.name=x"])
async def test_choose_cluster_refuses_unknown_cluster(
    browser: Browser, client: Client, namespace: str, suffix: str
) -> None:
    await client.create(a_machine(namespace, "web"))
    await client.create(a_config(f"east-{namespace}", Key(namespace, "none")))
    form = {**await any_form(browser), "cluster": f"east-{namespace}{suffix}"}
    answer = await browser.post(f"/placement/machines/{namespace}/web/choose", form)
    assert (answer.status, "not found. Nothing was changed" in answer.text) == (409, True)
    assert await cluster_of(client, namespace, "web") == ""
    await client.delete(the_cluster(f"east-{namespace}"))


async def place(client: Client, namespace: str, cluster: str) -> None:
    """Place the Machine as the controller does."""
    patch = {"metadata": {"annotations": {CONFIG_ANNOTATION: cluster}}}
    await client.merge_patch(the_machine(namespace, "web"), patch)


@pytest.mark.parametrize(("csrf", "says"), [("", "may or may not have been made"), ("x", "not from this session")])
async def test_action_without_api_server_shows_unknown_result(
    control_plane: ControlPlane, account: Account, people: People, csrf: str, says: str
) -> None:
    async with FaultProxy(control_plane.port) as proxy:
        console = a_console(control_plane, account.token, server=proxy.server, is_filled=False, rights_remembered=0.0)
        async with console as served, served.browser() as browser:
            await browser.sign_in(await people.admin())
            form = await any_form(browser)
            await proxy.refuse()
            await proxy.cut()
            answer = await browser.post(f"{PAGE}/stop-managing", {**form, "csrf": csrf or form["csrf"]})
            assert answer.status == 503
            assert says in answer.text
            assert "Your rights cannot be checked now" in answer.text
            assert f'href="{PAGE}"' in answer.text


async def test_console_account_never_writes(account: Account, audit_log: AuditLog, client: Client) -> None:
    """All writes of this module were made with the credentials of viewers."""
    assert client
    writes = [one for one in audit_log.since(BEGINNING) if one.user == account.user and one.is_write]
    assert not writes
