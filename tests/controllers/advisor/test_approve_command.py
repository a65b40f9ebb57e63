"""`approve` and `watch` on a platform whose nodes really roll."""

import asyncio
import json

import pytest

from tests.cli.commands import Ended, on_a_terminal, steward
from tests.controllers.advisor.reviews import config_in_review, write_status
from tests.controllers.advisor.rig import AdvisorRig, advising, the_config
from tests.events import has_event
from tests.grants import Account
from virt_steward.apis.profiles import EXAMPLE, LOAD_AWARE
from virt_steward.controllers.advisor.profiles.example_profile import CONFIG_MAP
from virt_steward.kube.client import Client
from virt_steward.objects.identity import Key, Ref
from virt_steward_demo.local.controlplane import ControlPlane
from virt_steward_demo.simulation.faults import pause_pool


async def test_approve_watch_follows_plan_to_completion(
    rig: AdvisorRig, control_plane: ControlPlane, account: Account
) -> None:
    async with advising(control_plane, account):
        await rig.ask("DryRun")
        assert await rig.reaches("ReviewRequired")
        plan = (await rig.status()).plan_hash
        ended = await steward(
            "approve",
            LOAD_AWARE,
            "-y",
            "--watch",
            "--comment",
            "agreed",
            "-o",
            "json",
            kubeconfig=control_plane.kubeconfig,
        )
        assert ended.code == 0, ended.stderr
        status = await rig.status()
    [result] = json.loads(ended.stdout)["results"]
    assert (result["subject"], result["message"]) == (LOAD_AWARE, "Plan completed")
    assert result["plan"] == {
        "profile": LOAD_AWARE,
        "planHash": plan,
        "action": "Apply",
        "user": "admin",
        "comment": "agreed",
        "start": "the advisor executes the plan now",
        "missing": 0,
    }
    assert f"load-aware-rebalancing: impact High, plan {plan}" in ended.stderr.splitlines()
    assert "[1/2] enable-psi-metrics InProgress: Waiting for MachineConfigPool 'worker' to " in ended.stderr
    assert status.phase == "Completed"
    assert [(one.by, one.comment, one.outcome) for one in status.history] == [("admin", "agreed", "Completed")]
    decision = f"admin approved plan {plan[:12]}: agreed"
    assert await has_event(rig.client, the_config(LOAD_AWARE), decision)
    explained = await steward("explain", "plan", LOAD_AWARE, kubeconfig=control_plane.kubeconfig)
    assert "  approved by admin at " in explained.stdout
    assert "admin: agreed" in explained.stdout
    assert f": {decision}\n" in explained.stdout


async def test_approve_watch_follows_plan_to_failure(
    rig: AdvisorRig, control_plane: ControlPlane, account: Account
) -> None:
    await pause_pool(rig.client, "worker")
    async with advising(control_plane, account):
        await rig.ask("DryRun", waitTimeout="1s")
        assert await rig.reaches("ReviewRequired")
        ended = await steward("approve", LOAD_AWARE, "--yes", "--watch", kubeconfig=control_plane.kubeconfig)
    assert (ended.code, ended.stdout) == (1, "")
    assert "is paused, so nothing happens there until somebody resumes it" in ended.stderr
    last = ended.stderr.splitlines()[-1]
    assert last.startswith("virt-steward: load-aware-rebalancing: approved, but it is in phase Failed: enable-psi-")


async def test_approve_watch_stops_at_timeout(rig: AdvisorRig, control_plane: ControlPlane, account: Account) -> None:
    await pause_pool(rig.client, "worker")
    async with advising(control_plane, account):
        await rig.ask("DryRun")
        assert await rig.reaches("ReviewRequired")
        watching = ("--yes", "--watch", "--timeout", "2s")
        ended = await steward("approve", LOAD_AWARE, *watching, kubeconfig=control_plane.kubeconfig)
    assert ended.code == 1
    assert ": approved, but not completed within 0:00:02; the advisor continues" in ended.stderr


@pytest.mark.parametrize(
    ("arguments", "answers", "action"),
    [
        pytest.param([], "n\n", "DryRun", id="asks and takes no for an answer"),
        pytest.param([], "y\n", "Apply", id="asks and takes yes for an answer"),
        pytest.param(["--yes"], "", "Apply", id="does not ask who is sure"),
        pytest.param(["--plan", "HASH"], "", "Apply", id="does not ask who names the plan"),
        pytest.param(["--yes", "--plan", "abc"], "", "DryRun", id="leaves another plan alone"),
    ],
)
async def test_approve_asks_on_terminal(
    arguments: list[str], answers: str, action: str, configs: Client, control_plane: ControlPlane
) -> None:
    rig = await config_in_review(configs)
    env = {"KUBECONFIG": str(control_plane.kubeconfig)}
    pending = (await rig.status()).plan_hash
    given = [pending[:12] if one == "HASH" else one for one in arguments]
    shown = await on_a_terminal("approve", EXAMPLE, *given, answers=answers, **env)
    assert ("Approve this plan? [y/N]" in shown) is bool(answers)
    assert ("Cancelled; nothing was changed" in shown) is (answers == "n\n")
    assert (await rig.config())["spec"]["action"] == action


async def test_ctrl_c_at_the_prompt_ends_the_command(configs: Client, control_plane: ControlPlane) -> None:
    rig = await config_in_review(configs)
    env = {"KUBECONFIG": str(control_plane.kubeconfig)}
    shown = await on_a_terminal("approve", EXAMPLE, interrupt_at="[y/N]", **env)
    assert shown.endswith("Cancelled; nothing was changed\n")
    assert (await rig.config())["spec"]["action"] == "DryRun"


async def test_approve_takes_nothing_for_consent_but_an_option(configs: Client, control_plane: ControlPlane) -> None:
    rig = await config_in_review(configs)
    for answer in ("", "y\n", "n\n"):
        ended = await steward("approve", EXAMPLE, kubeconfig=control_plane.kubeconfig, stdin=answer)
        assert (ended.code, ended.stdout) == (1, "")
        assert "there is no terminal to ask on. Add --yes or --plan " in ended.stderr
    assert (await rig.config())["spec"]["action"] == "DryRun"


@pytest.mark.parametrize(
    ("window", "start"),
    [
        pytest.param(None, "the advisor executes the plan now", id="no window"),
        pytest.param({"schedule": "0 3 29 2 *", "duration": "1h"}, "the maintenance window opens at ", id="closed"),
        pytest.param({"schedule": "0 3 30 2 *", "duration": "1h"}, "spec.window never opens", id="never open"),
        pytest.param(
            {"schedule": "0 3 * * *", "duration": "1h", "timeZone": "Nowhere/None"},
            "spec.window is invalid",
            id="invalid",
        ),
    ],
)
async def test_approve_says_when_it_begins(
    window: dict[str, str] | None, start: str, configs: Client, control_plane: ControlPlane
) -> None:
    await config_in_review(configs, **({"window": window} if window else {}))
    ended = await steward("approve", EXAMPLE, "--yes", kubeconfig=control_plane.kubeconfig)
    assert ended.code == 0, ended.stderr
    assert ended.stdout.startswith(f"{EXAMPLE}: Approved; ")
    assert start in ended.stdout


async def test_watch_follows_a_plan_from_review_to_completion(configs: Client, control_plane: ControlPlane) -> None:
    rig = await config_in_review(configs)
    pending = (await rig.status()).plan_hash
    watching = asyncio.create_task(steward("watch", EXAMPLE, "-o", "json", kubeconfig=control_plane.kubeconfig))
    approved = await steward("approve", EXAMPLE, "--plan", pending, kubeconfig=control_plane.kubeconfig)
    assert approved.code == 0
    again = await steward("watch", EXAMPLE, "--timeout", "1s", kubeconfig=control_plane.kubeconfig)
    assert (again.code, again.stdout) == (1, "")
    assert again.stderr.splitlines() == [
        "approved; the advisor has not started it yet",
        f"virt-steward: {EXAMPLE}: not completed within 0:00:01; the advisor continues",
    ]
    await write_status(rig, phase="Completed")
    ended = await watching
    assert ended.code == 0
    assert json.loads(ended.stdout) == {"profile": EXAMPLE, "phase": "Completed"}


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


async def test_approve_watch_follows_rollback(configs: Client, control_plane: ControlPlane, account: Account) -> None:
    rig = AdvisorRig(configs, EXAMPLE)
    target = Ref(CONFIG_MAP, Key("openshift-cnv", "example-config"))
    async with advising(control_plane, account):
        await rig.ask("Apply")
        assert await rig.reaches("Completed", within=30)
        assert await rig.exists(target)
        await rig.ask("Rollback")
        assert await rig.reaches("ReviewRequired", within=30)
        ended = await steward("approve", EXAMPLE, "--yes", "--watch", kubeconfig=control_plane.kubeconfig)
    assert ended.code == 0, ended.stderr
    assert "example-profile: rollback, impact " in ended.stderr
    assert not await rig.exists(target)
    assert (await rig.config())["spec"]["action"] == "Rollback"
