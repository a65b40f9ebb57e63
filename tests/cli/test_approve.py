import asyncio
import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from tests.audit import AuditLog
from tests.cli.commands import Ended, steward
from tests.clients import a_client
from tests.eventually import eventually
from tests.gateway import Gateway, no_streaming_list
from tests.grants import an_account
from tests.operators import a_csv, a_pending_plan, create, csv_of, the_csv, the_plan
from virt_steward.controllers.approver.follow import (
    CsvPhase,
    InstallFailed,
    InstallInProgress,
    InstallStage,
    InstallSucceeded,
    follow,
    progress,
)
from virt_steward.controllers.approver.manual_approval import APPROVAL_COMMENT, APPROVED_AT, APPROVED_BY_USER
from virt_steward.controllers.approver.olm import APPROVALS, APPROVED_BY, REQUIRED_APPROVALS, decode_plan
from virt_steward.decisions.installplans import ReviewedPlan, approve_manually
from virt_steward.decisions.outcomes import NotApproved
from virt_steward.kube.client import Client
from virt_steward.kube.errors import Conflict, Forbidden
from virt_steward.objects.meta import Meta
from virt_steward.runtime.access import Access, Installation
from virt_steward_demo.local.controlplane import ControlPlane

ANY = ReviewedPlan(None, None)


def approve(kubeconfig: Path, namespace: str, *options: str) -> Any:
    return steward("approve", "installplan", f"{namespace}/install-1", "--yes", *options, kubeconfig=kubeconfig)


async def test_approve_takes_nothing_for_consent_but_an_option(
    admin: Client, control_plane: ControlPlane, operators: str
) -> None:
    await create(admin, a_pending_plan(operators))
    plan = ("approve", "installplan", f"{operators}/install-1")
    for answer in ("", "y\n", "n\n"):
        ended = await steward(*plan, kubeconfig=control_plane.kubeconfig, stdin=answer)
        assert (ended.code, ended.stdout) == (1, "")
        assert "Nothing was changed: there is no terminal to ask on. Add --yes or --uid " in ended.stderr
    assert (await admin.get(the_plan(operators)))["spec"]["approved"] is False
    assert (await steward(*plan, "--csvs", csv_of("1.0.0"), kubeconfig=control_plane.kubeconfig)).code == 0


async def test_approve_records_user_time_and_comment(
    admin: Client, control_plane: ControlPlane, operators: str
) -> None:
    await create(admin, a_pending_plan(operators))
    ended: Ended = await approve(control_plane.kubeconfig, operators, "--comment", "agreed in the change board")
    plan = await admin.get(the_plan(operators))
    assert ended.code == 0
    assert plan["spec"]["approved"] is True
    notes = plan["metadata"]["annotations"]
    assert notes[APPROVED_BY_USER] == "admin"
    assert notes[APPROVAL_COMMENT] == "agreed in the change board"
    assert APPROVED_AT in notes
    assert APPROVED_BY not in notes, "or an approver would count it as its own"


async def test_approve_says_how_many_approvals_are_missing(
    admin: Client, control_plane: ControlPlane, operators: str
) -> None:
    plan = a_pending_plan(operators)
    plan["metadata"]["annotations"] = {REQUIRED_APPROVALS: "2"}
    await create(admin, plan)
    ended: Ended = await approve(control_plane.kubeconfig, operators, "--comment", "mine", "--wait")
    assert (ended.code, "Approved; 1 of 2 approvals (admin); needs one more" in ended.stdout) == (0, True)
    again: Ended = await approve(control_plane.kubeconfig, operators)
    assert "you had approved it before, so nothing was changed: 1 of 2 approvals" in again.stdout
    found = await admin.get(the_plan(operators))
    assert found["spec"]["approved"] is False
    [line] = found["metadata"]["annotations"][APPROVALS].split("\n")
    assert line.endswith(" mine admin")


async def test_approve_fails_with_one_line(admin: Client, control_plane: ControlPlane, operators: str) -> None:
    await create(admin, a_pending_plan(operators, phase="Planning"))
    ended: Ended = await approve(control_plane.kubeconfig, operators)
    assert (ended.code, ended.stdout) == (1, "")
    [line] = ended.stderr.splitlines()
    assert line.startswith(f"virt-steward: {operators}/install-1: Not approved: it is in phase Planning")


@pytest.mark.parametrize(
    ("plan", "why"),
    [
        pytest.param({"phase": "Planning"}, "OLM would create one plan after another", id="that is still planned"),
        pytest.param({"phase": ""}, "phase none yet", id="that has no phase yet"),
        pytest.param({"phase": "Complete", "approved": True}, "already approved", id="that is approved"),
        pytest.param({"approval": "Automatic"}, "OLM installs it without an approval", id="that OLM approves itself"),
    ],
)
async def test_approve_manually_refuses_plan_that_is_not_pending(
    plan: dict[str, Any], why: str, admin: Client, operators: str, audit_log: AuditLog
) -> None:
    await create(admin, a_pending_plan(operators, **plan))
    mark = audit_log.mark()
    answer = await approve_manually(admin, the_plan(operators).key, ANY, "", datetime.now(UTC))
    assert isinstance(answer, NotApproved)
    assert why in answer.reason
    assert not [one for one in audit_log.since(mark) if one.namespace == operators and one.is_write]


async def test_approve_manually_refuses_plan_that_changes_meanwhile(
    admin: Client, control_plane: ControlPlane, gateway: Gateway, operators: str
) -> None:
    await create(admin, a_pending_plan(operators))

    async def changed_meanwhile(request: web.Request) -> None:
        if "selfsubjectreviews" in request.path:
            await admin.merge_patch(the_plan(operators), {"spec": {"clusterServiceVersionNames": ["another"]}})

    gateway.intercept = changed_meanwhile
    async with a_client(control_plane, server=gateway.server) as client:
        with pytest.raises(Conflict):
            await approve_manually(client, the_plan(operators).key, ANY, "", datetime.now(UTC))
    assert (await admin.get(the_plan(operators)))["spec"]["approved"] is False


@pytest.mark.parametrize(
    ("uid", "csvs", "why"),
    [
        pytest.param("same", (csv_of("1.0.0"),), "", id="the same plan"),
        pytest.param(None, None, "", id="nothing was reviewed"),
        pytest.param("other", (csv_of("1.0.0"),), "it was replaced since it was reviewed", id="another plan"),
        pytest.param("", (csv_of("1.0.0"),), "it was replaced since it was reviewed", id="no plan"),
        pytest.param("same", (csv_of("0.9.0"),), "not demo-operator.v0.9.0", id="another operator"),
        pytest.param("same", (), "not no operators", id="no operator"),
        pytest.param("same", (csv_of("1.0.0"), "cache.v1"), "cache.v1", id="one operator less"),
    ],
)
def test_reviewed_plan_differs(uid: str | None, csvs: tuple[str, ...] | None, why: str) -> None:
    metadata = {"metadata": {"name": "install-1", "namespace": "shop", "uid": "same"}}
    plan = decode_plan(json.dumps({**a_pending_plan("shop"), **metadata}).encode())
    difference = ReviewedPlan(uid, csvs).difference(plan)
    assert why in (difference or "")
    assert bool(difference) == bool(why)


async def test_approve_refuses_plan_that_was_not_reviewed(
    admin: Client, control_plane: ControlPlane, operators: str
) -> None:
    await create(admin, a_pending_plan(operators))
    uid = (await admin.get(the_plan(operators)))["metadata"]["uid"]
    await admin.delete(the_plan(operators))
    await create(admin, a_pending_plan(operators, "2.0.0"))
    for options, why in ((("--uid", uid), "it was replaced"), (("--csvs", csv_of("1.0.0")), "it was changed")):
        ended: Ended = await approve(control_plane.kubeconfig, operators, *options)
        assert (ended.code, ended.stdout) == (1, "")
        assert f"{why} since it was reviewed" in ended.stderr
    assert (await admin.get(the_plan(operators)))["spec"]["approved"] is False
    reviewed = (await admin.get(the_plan(operators)))["metadata"]["uid"]
    ended = await approve(control_plane.kubeconfig, operators, "--uid", reviewed, "--csvs", csv_of("2.0.0"))
    assert ended.code == 0
    assert f"uid {reviewed}: {csv_of('2.0.0')}" in ended.stderr


async def test_approve_wait_succeeds_when_operator_runs(
    admin: Client, control_plane: ControlPlane, operators: str
) -> None:
    await create(admin, a_pending_plan(operators))
    waiting = asyncio.create_task(approve(control_plane.kubeconfig, operators, "--wait", "-o", "json"))
    await _approved(admin, operators)
    await create(admin, a_csv(operators, "1.0.0", "Installing"))
    await admin.merge_patch(the_plan(operators), {"status": {"phase": "Complete"}}, subresource="status")
    await admin.merge_patch(the_csv(operators, "1.0.0"), {"status": {"phase": "Succeeded"}}, subresource="status")
    ended: Ended = await waiting
    assert ended.code == 0, ended.stderr
    [result] = json.loads(ended.stdout)["results"]
    assert (result["decided"], result["installPlan"]["csvs"]) == (True, [csv_of("1.0.0")])


@pytest.mark.parametrize(
    ("plan_phase", "csv_phase", "why"),
    [
        pytest.param("Failed", "Pending", "the plan failed", id="the plan fails"),
        pytest.param(
            "Complete", "Failed", "demo-operator.v1.0.0 failed: no such image", id="its operator stays failed"
        ),
    ],
)
async def test_follow_reports_failure(plan_phase: str, csv_phase: str, why: str, admin: Client, operators: str) -> None:
    await create(admin, a_pending_plan(operators, phase="Installing"))
    said: list[str] = []
    following = asyncio.create_task(follow(admin, the_plan(operators).key, [csv_of("1.0.0")], said.append, lasting=0.2))
    assert await eventually(lambda: said == ["plan Installing; demo-operator.v1.0.0 not created yet"])
    await create(admin, a_csv(operators, "1.0.0", csv_phase, "no such image"))
    await admin.merge_patch(the_plan(operators), {"status": {"phase": plan_phase}}, subresource="status")
    ended = await asyncio.wait_for(following, 30)
    assert isinstance(ended, InstallFailed)
    assert ended.why == why


async def test_follow_waits_for_operator_that_recovers(admin: Client, operators: str) -> None:
    await create(admin, a_pending_plan(operators, phase="Complete"))
    await create(admin, a_csv(operators, "1.0.0", "Failed", "requirements not met"))
    following = asyncio.create_task(follow(admin, the_plan(operators).key, [csv_of("1.0.0")], print))
    csv = the_csv(operators, "1.0.0")
    await admin.merge_patch(csv, {"status": {"phase": "Pending"}}, subresource="status")
    await admin.merge_patch(csv, {"status": {"phase": "Succeeded"}}, subresource="status")
    assert await asyncio.wait_for(following, 30) == InstallSucceeded()


async def test_follow_is_forbidden_without_rights(admin: Client, control_plane: ControlPlane, operators: str) -> None:
    account = await an_account(admin, Access("bystander"), Installation(operators))
    async with a_client(control_plane, account.token) as client:
        with pytest.raises(Forbidden):
            await asyncio.wait_for(follow(client, the_plan(operators).key, [], print), 10)


async def test_follow_works_without_streaming_lists(
    admin: Client, control_plane: ControlPlane, gateway: Gateway, operators: str
) -> None:
    gateway.intercept = no_streaming_list
    await create(admin, a_pending_plan(operators, phase="Complete"))
    await create(admin, a_csv(operators, "1.0.0", "Succeeded"))
    async with a_client(control_plane, server=gateway.server) as client:
        assert await follow(client, the_plan(operators).key, [csv_of("1.0.0")], print) == InstallSucceeded()


async def test_approve_wait_times_out(admin: Client, control_plane: ControlPlane, operators: str) -> None:
    await create(admin, a_pending_plan(operators))
    ended: Ended = await approve(control_plane.kubeconfig, operators, "--wait", "--timeout", "1s")
    assert ended.code == 1
    assert ": approved, but not installed within 0:00:01; OLM continues" in ended.stderr


async def _approved(admin: Client, namespace: str) -> None:
    async def is_approved() -> bool:
        return bool((await admin.get(the_plan(namespace)))["spec"]["approved"])

    assert await eventually(is_approved, within=20)


def a_stage(phase: str, message: str = "") -> InstallStage:
    return InstallStage(Meta(), CsvPhase(phase, message))


@pytest.mark.parametrize(
    ("plan", "csvs", "expected"),
    [
        pytest.param(None, {}, InstallFailed("the plan has been deleted"), id="without a plan"),
        pytest.param(
            "Failed", {"a": "Succeeded", "b": "Succeeded"}, InstallFailed("the plan failed"), id="of a failed plan"
        ),
        pytest.param(
            "Installing",
            {"a": "Failed"},
            InstallFailed("a failed", may_recover=True),
            id="of an operator that failed early",
        ),
        pytest.param("Complete", {"a": "Succeeded", "b": "Succeeded"}, InstallSucceeded(), id="of two that run"),
        pytest.param(
            "Complete",
            {"a": "Succeeded"},
            InstallInProgress("plan Complete; a Succeeded, b not created yet"),
            id="of one of two",
        ),
        pytest.param(
            "Installing",
            {"a": "Succeeded", "b": "Succeeded"},
            InstallInProgress("plan Installing; a Succeeded, b Succeeded"),
            id="of a plan that has not ended",
        ),
    ],
)
def test_progress_of_install(plan: str | None, csvs: dict[str, str], expected: object) -> None:
    stages = {name: a_stage(phase) for name, phase in csvs.items()}
    assert progress(a_stage(plan) if plan else None, stages, ("a", "b")) == expected


async def test_approve_takes_several_plans_and_answers_for_each(
    admin: Client, control_plane: ControlPlane, operators: str
) -> None:
    await create(admin, a_pending_plan(operators))
    names = (f"{operators}/install-1", f"{operators}/no-such")
    unbound = await steward("approve", *names, "--uid", "of-one", kubeconfig=control_plane.kubeconfig)
    assert (unbound.code, "give it once for each" in unbound.stderr) == (1, True)
    ended = await steward(
        "approve", *names, "--yes", "--comment", "CHG-7", "-o", "json", kubeconfig=control_plane.kubeconfig
    )
    assert ended.code == 1
    document = json.loads(ended.stdout)
    assert (document["decidedCount"], document["refusedCount"]) == (1, 1)
    approved, refused = document["results"]
    assert (approved["subject"], approved["decided"], approved["by"], approved["comment"]) == (
        names[0],
        True,
        "admin",
        "CHG-7",
    )
    assert (refused["subject"], refused["decided"]) == (names[1], False)
    assert "not found" in refused["message"]
    assert (await admin.get(the_plan(operators)))["spec"]["approved"] is True
