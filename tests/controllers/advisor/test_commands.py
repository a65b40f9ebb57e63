"""The command line on a platform whose nodes really roll."""

import asyncio
import json
import os
import pty
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.audit import AuditLog
from tests.cli.commands import PROGRAM, Ended, steward
from tests.controllers.advisor.desk import Desk, advising, no_reboots
from tests.controllers.advisor.reviews import config_in_review, write_status
from tests.eventually import eventually
from tests.grants import Account, an_account
from tests.widgets import install_crd
from virt_steward.apis.profiles import EXAMPLE, HIGHER_DENSITY, LOAD_AWARE
from virt_steward.apis.virtplatformconfig import VIRT_PLATFORM_CONFIG, VIRT_PLATFORM_CONFIG_CRD
from virt_steward.controllers.advisor.approval import PLAN_READY
from virt_steward.controllers.advisor.definition import definition
from virt_steward.controllers.advisor.options import AdvisorOptions
from virt_steward.controllers.advisor.profiles.example_profile import CONFIG_MAP
from virt_steward.controllers.advisor.profiles.load_aware_rebalancing import DESCHEDULER, PSI
from virt_steward.kube.client import Client
from virt_steward.kube.discovery import CUSTOM_RESOURCE_DEFINITION
from virt_steward.objects.identity import Key, Ref, key_of
from virt_steward.runtime.access import Access, Grant, Installation
from virt_steward_demo.local.controlplane import ControlPlane
from virt_steward_demo.simulation.faults import pause_pool
from virt_steward_demo.simulation.platform import SimulatedPlatform


@pytest.fixture
async def uninstalled(platform: SimulatedPlatform) -> AsyncIterator[Client]:
    """A platform on which nothing of ours is."""
    client = platform.client
    manifest = VIRT_PLATFORM_CONFIG_CRD.manifest()
    await client.delete(Ref(CUSTOM_RESOURCE_DEFINITION, key_of(manifest)))

    async def is_gone() -> bool:
        await client.discovery.refresh()
        return not client.discovery.serves(VIRT_PLATFORM_CONFIG.group, VIRT_PLATFORM_CONFIG.plural)

    assert await eventually(is_gone, within=30)
    yield client
    await install_crd(client, manifest)


async def test_plan_works_without_installation_and_changes_nothing(
    uninstalled: Client, control_plane: ControlPlane, audit_log: AuditLog
) -> None:
    assert uninstalled
    mark = audit_log.mark()
    ended = await steward("plan", LOAD_AWARE, kubeconfig=control_plane.kubeconfig)
    asked = [one for one in audit_log.since(mark) if one.user_agent.startswith("virt-steward/")]
    assert (ended.code, ended.stderr) == (2, "")
    lines = ended.stdout.splitlines()
    assert "enable-psi-metrics (High)" in lines
    assert "  pool worker: 3 nodes reboot in 3 rounds" in lines
    assert "  nodes: 3 (worker-0, worker-1, worker-2)" in lines
    assert "  VMs to migrate: 5" in lines
    assert "  VMs that cannot migrate and will stop: 1 (tenants/vm-1-0)" in lines
    assert "+  - psi=1" in lines
    assert (
        "configure-descheduler  Medium  Pending  KubeDescheduler openshift-kube-descheduler-operator/cluster" in lines
    )
    assert "load-aware-rebalancing: 2 changes, impact High. Nothing was changed yet" in lines
    assert asked
    assert not [one for one in asked if one.is_write and "dryRun=All" not in one.uri]
    explained = await steward("explain", "plan", LOAD_AWARE, kubeconfig=control_plane.kubeconfig)
    assert explained.code == 1
    assert (
        "The advisor is not installed on this cluster; `virt-steward plan load-aware-rebalancing` works"
        in explained.stderr
    )


async def test_plan_equals_plan_of_advisor(desk: Desk, control_plane: ControlPlane, account: Account) -> None:
    options = ("--set", "enablePSIMetrics=false", "--set", "loadAware.deschedulingIntervalSeconds=120", "-o", "json")
    foretold = await steward("plan", LOAD_AWARE, *options, kubeconfig=control_plane.kubeconfig)
    async with advising(control_plane, account):
        await desk.ask("DryRun", options=no_reboots(deschedulingIntervalSeconds=120))
        assert await desk.reaches("ReviewRequired")
    kept = await steward("plan", LOAD_AWARE, "-o", "json", kubeconfig=control_plane.kubeconfig)
    assert (foretold.code, kept.code) == (2, 2), foretold.stderr
    status = await desk.status()
    plans = [json.loads(ended.stdout) for ended in (foretold, kept)]
    assert [plan["plan_hash"] for plan in plans] == [status.plan_hash] * 2
    assert plans[0]["items"][0]["diff"] == status.items[0].diff


async def test_plan_manifests_leave_nothing_to_do_once_applied(desk: Desk, control_plane: ControlPlane) -> None:
    asking = ("plan", LOAD_AWARE, "--set", "enablePSIMetrics=false")
    ended = await steward(*asking, "-o", "manifests", kubeconfig=control_plane.kubeconfig)
    assert ended.code == 2
    for manifest in yaml.safe_load_all(ended.stdout):
        await desk.client.apply(manifest, manager="gitops")
    again = await steward(*asking, kubeconfig=control_plane.kubeconfig)
    assert (again.code, again.stderr) == (0, "")
    assert again.stdout.splitlines()[0] == "load-aware-rebalancing: nothing to change"


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        pytest.param(["moon"], "Profile 'moon' not found; known profiles: load-aware-rebalancing, ", id="no profile"),
        pytest.param([EXAMPLE], "profile example-profile is off; add --example-profile", id="a profile that is off"),
        pytest.param([], "Missing argument 'PROFILE'", id="no name at all"),
        pytest.param(
            [LOAD_AWARE, "--set", "mode=Odd"],
            "mode must be Automatic or Predictive, not Odd",
            id="a bad option",
        ),
        pytest.param([LOAD_AWARE, "-o", "xml"], "'xml' is not one of", id="a bad form"),
        pytest.param(
            [HIGHER_DENSITY, "--hyperconverged", "nowhere/none"], "create the HyperConverged object", id="no platform"
        ),
    ],
)
async def test_plan_reports_error_in_one_line(
    arguments: list[str], complaint: str, configs: Client, control_plane: ControlPlane
) -> None:
    assert configs
    ended = await steward("plan", *arguments, kubeconfig=control_plane.kubeconfig)
    assert (ended.code, ended.stdout) == (1, "")
    [line] = ended.stderr.splitlines()
    assert complaint in line


async def test_plan_names_missing_right_for_dry_run(
    desk: Desk, control_plane: ControlPlane, namespace: str, tmp_path: Path
) -> None:
    full = definition(AdvisorOptions()).access
    looking = Access("onlooker", tuple(_without_writes(full.grants)))
    account = await an_account(desk.client, looking, Installation(namespace))
    kubeconfig = account.write_kubeconfig(tmp_path / "kubeconfig", control_plane)
    ended = await steward("plan", LOAD_AWARE, kubeconfig=kubeconfig)
    assert (ended.code, ended.stdout) == (1, "")
    assert "a dry run changes nothing, but needs the right to patch: you are forbidden (403) to patch " in ended.stderr
    assert str(PSI) in ended.stderr
    assert str(DESCHEDULER) in ended.stderr


@pytest.mark.parametrize(
    "command", [["plan", LOAD_AWARE], ["explain", "plan", LOAD_AWARE], ["approve", EXAMPLE], ["status"]]
)
async def test_commands_report_forbidden_in_one_line(
    command: list[str], configs: Client, control_plane: ControlPlane, namespace: str, tmp_path: Path
) -> None:
    account = await an_account(configs, Access("nobody"), Installation(namespace))
    kubeconfig = account.write_kubeconfig(tmp_path / "kubeconfig", control_plane)
    ended = await steward(*command, kubeconfig=kubeconfig)
    assert (ended.code, ended.stdout) == (1, "")
    [line] = ended.stderr.splitlines()
    assert "is forbidden" in line


def _without_writes(grants: Any) -> Any:
    for grant in grants:
        verbs = tuple(verb for verb in grant.verbs if verb not in ("create", "patch", "delete"))
        if verbs:
            yield Grant(grant.kind, verbs, grant.why, grant.where, names=grant.names, subresource=grant.subresource)


@pytest.mark.parametrize(
    ("env", "is_coloured"),
    [
        pytest.param({}, True, id="has colours"),
        pytest.param({"NO_COLOR": "1"}, False, id="has none for who wants none"),
    ],
)
async def test_plan_diff_is_coloured_on_terminal(
    env: dict[str, str], is_coloured: bool, configs: Client, control_plane: ControlPlane
) -> None:
    assert configs
    shown = await on_a_terminal("plan", EXAMPLE, "--example-profile", KUBECONFIG=str(control_plane.kubeconfig), **env)
    assert "example-key: example-value" in shown
    assert ("\x1b[32m+  example-key: example-value" in shown) is is_coloured


async def on_a_terminal(*arguments: str, answers: str = "", **env: str) -> str:
    """All that a person sees on their screen."""
    mine, theirs = pty.openpty()
    os.write(mine, answers.encode())
    known = {"PATH": os.environ["PATH"], "HOME": "/nonexistent", "TERM": "xterm", **env}
    process = await asyncio.create_subprocess_exec(
        PROGRAM, *arguments, stdin=theirs, stdout=theirs, stderr=theirs, env=known
    )
    os.close(theirs)
    seen = bytearray()
    try:
        async with asyncio.timeout(60):
            with suppress(OSError):  # that is how a terminal ends
                while part := await asyncio.to_thread(os.read, mine, 4096):
                    seen += part
            await process.wait()
    finally:
        if process.returncode is None:
            process.kill()  # which also ends the reading
        os.close(mine)
    return seen.decode().replace("\r\n", "\n")


async def test_approve_watch_follows_plan_to_completion(
    desk: Desk, control_plane: ControlPlane, account: Account
) -> None:
    async with advising(control_plane, account):
        await desk.ask("DryRun")
        assert await desk.reaches("ReviewRequired")
        plan = (await desk.status()).plan_hash
        ended = await steward(
            "approve", LOAD_AWARE, "--watch", "--comment", "agreed", "-o", "json", kubeconfig=control_plane.kubeconfig
        )
        assert ended.code == 0, ended.stderr
        status = await desk.status()
    assert json.loads(ended.stdout) == {
        "profile": LOAD_AWARE,
        "plan_hash": plan,
        "action": "Apply",
        "user": "admin",
        "comment": "agreed",
    }
    assert f"load-aware-rebalancing: impact High, plan {plan}" in ended.stderr.splitlines()
    assert "[1/2] enable-psi-metrics InProgress: Waiting for MachineConfigPool 'worker' to " in ended.stderr
    assert status.phase == "Completed"
    assert [(one.by, one.comment, one.outcome) for one in status.history] == [("admin", "agreed", "Completed")]
    explained = await steward("explain", "plan", LOAD_AWARE, kubeconfig=control_plane.kubeconfig)
    assert "  approved by admin at " in explained.stdout
    assert "admin: agreed" in explained.stdout


async def test_approve_watch_follows_plan_to_failure(desk: Desk, control_plane: ControlPlane, account: Account) -> None:
    await pause_pool(desk.client, "worker")
    async with advising(control_plane, account):
        await desk.ask("DryRun", waitTimeout="1s")
        assert await desk.reaches("ReviewRequired")
        ended = await steward("approve", LOAD_AWARE, "--watch", kubeconfig=control_plane.kubeconfig)
    assert (ended.code, ended.stdout) == (1, "")
    assert "is paused, so nothing happens there until somebody resumes it" in ended.stderr
    last = ended.stderr.splitlines()[-1]
    assert last.startswith("virt-steward: load-aware-rebalancing: approved, but it is in phase Failed: enable-psi-")


async def test_approve_watch_stops_at_timeout(desk: Desk, control_plane: ControlPlane, account: Account) -> None:
    await pause_pool(desk.client, "worker")
    async with advising(control_plane, account):
        await desk.ask("DryRun")
        assert await desk.reaches("ReviewRequired")
        watching = ("--watch", "--timeout", "2s")
        ended = await steward("approve", LOAD_AWARE, *watching, kubeconfig=control_plane.kubeconfig)
    assert ended.code == 1
    assert ": approved, but not completed within 0:00:02; the advisor continues" in ended.stderr


@pytest.mark.parametrize(
    ("arguments", "answers", "action"),
    [
        pytest.param([], "n\n", "DryRun", id="asks and takes no for an answer"),
        pytest.param([], "y\n", "Apply", id="asks and takes yes for an answer"),
        pytest.param(["--yes"], "", "Apply", id="does not ask who is sure"),
        pytest.param(["--yes", "--plan", "abc"], "", "DryRun", id="leaves another plan alone"),
    ],
)
async def test_approve_asks_on_terminal(
    arguments: list[str], answers: str, action: str, configs: Client, control_plane: ControlPlane
) -> None:
    desk = await config_in_review(configs)
    env = {"KUBECONFIG": str(control_plane.kubeconfig)}
    shown = await on_a_terminal("approve", EXAMPLE, *arguments, answers=answers, **env)
    assert ("Approve this plan? [y/N]" in shown) is bool(answers)
    assert ("Cancelled; nothing was changed" in shown) is (answers == "n\n")
    assert (await desk.config())["spec"]["action"] == action


@pytest.mark.parametrize(
    ("phase", "complaint"),
    [
        pytest.param("Completed", "Nothing to approve: ", id="there is no plan to review"),
        pytest.param(None, f"Nothing to approve: VirtPlatformConfig {EXAMPLE} not found", id="there is no config"),
    ],
)
async def test_approve_refuses_without_plan_in_review(
    phase: str | None, complaint: str, configs: Client, control_plane: ControlPlane
) -> None:
    if phase:
        await write_status(await config_in_review(configs), phase=phase)
    ended: Ended = await steward("approve", EXAMPLE, kubeconfig=control_plane.kubeconfig)
    assert (ended.code, ended.stdout) == (1, "")
    assert complaint in ended.stderr


async def test_explain_and_status_show_what_plan_waits_for(
    desk: Desk, control_plane: ControlPlane, account: Account
) -> None:
    async with advising(control_plane, account):
        await desk.ask("DryRun", options=no_reboots())
        assert await desk.reaches("ReviewRequired")
    version = ("--operator-version", (await desk.status()).operator_version)
    ended = await steward("explain", "plan", LOAD_AWARE, *version, kubeconfig=control_plane.kubeconfig)
    assert (ended.code, ended.stderr) == (0, "")
    lines = ended.stdout.splitlines()
    assert lines[0] == "VirtPlatformConfig load-aware-rebalancing: ReviewRequired (PlanReady), action DryRun"
    assert "  Waiting for: review and approval: virt-steward approve load-aware-rebalancing" in lines
    assert any(
        line.startswith("  Pending: configure-descheduler (impact Medium): KubeDescheduler 'cluster' will be ")
        for line in lines
    )
    assert "  ✓ Prerequisites: all met" in lines
    assert any(line.startswith("  ✗ Approved: ") for line in lines)
    assert f"✗ Approved: {PLAN_READY}. Stopped here" in " ".join(ended.stdout.split())
    newer = await steward("explain", "plan", LOAD_AWARE, "-o", "json", kubeconfig=control_plane.kubeconfig)
    [check] = [one for one in json.loads(newer.stdout)["checks"] if one["decided"]]
    assert (check["title"], check["result"]) == ("Plan up to date", "fail")
    assert "may plan it differently" in check["reason"]
    told = await steward("status", "-o", "json", kubeconfig=control_plane.kubeconfig)
    advisor = json.loads(told.stdout)["advisor"]
    [row] = [row for row in advisor["items"] if row["profile"] == LOAD_AWARE]
    assert (row["action"], row["phase"], row["impact"]) == ("DryRun", "ReviewRequired", "Medium")
    assert row["message"].startswith("The plan is ready for review")
    assert "1 ReviewRequired" in advisor["summary"]


async def test_approve_watch_follows_rollback(configs: Client, control_plane: ControlPlane, account: Account) -> None:
    desk = Desk(configs, EXAMPLE)
    target = Ref(CONFIG_MAP, Key("openshift-cnv", "example-config"))
    async with advising(control_plane, account):
        await desk.ask("Apply")
        assert await desk.reaches("Completed", within=30)
        assert await desk.exists(target)
        await desk.ask("Rollback")
        assert await desk.reaches("ReviewRequired", within=30)
        ended = await steward("approve", EXAMPLE, "--watch", kubeconfig=control_plane.kubeconfig)
    assert ended.code == 0, ended.stderr
    assert "example-profile: rollback, impact " in ended.stderr
    assert not await desk.exists(target)
    assert (await desk.config())["spec"]["action"] == "Rollback"
