"""The command line on a platform whose nodes really roll."""

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.audit import AuditLog
from tests.cli.commands import on_a_terminal, steward
from tests.controllers.advisor.rig import AdvisorRig, advising, no_reboots
from tests.eventually import eventually
from tests.grants import Account, an_account
from tests.widgets import install_crd
from virt_steward.apis.profiles import EXAMPLE, HIGHER_DENSITY, LOAD_AWARE
from virt_steward.apis.virtplatformconfig import VIRT_PLATFORM_CONFIG, VIRT_PLATFORM_CONFIG_CRD
from virt_steward.controllers.advisor.approval import PLAN_READY
from virt_steward.controllers.advisor.definition import definition
from virt_steward.controllers.advisor.options import THE_HCO as HCO
from virt_steward.controllers.advisor.options import AdvisorOptions
from virt_steward.controllers.advisor.profiles.load_aware_rebalancing import DESCHEDULER, PSI
from virt_steward.kube.client import Client
from virt_steward.kube.discovery import CUSTOM_RESOURCE_DEFINITION
from virt_steward.objects.identity import Ref, key_of
from virt_steward.platform.hco import HYPERCONVERGED
from virt_steward.runtime.access import Access, Grant, Installation
from virt_steward_demo.local.controlplane import ControlPlane
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


async def test_plan_equals_plan_of_advisor(rig: AdvisorRig, control_plane: ControlPlane, account: Account) -> None:
    options = ("--set", "enablePSIMetrics=false", "--set", "loadAware.deschedulingIntervalSeconds=120", "-o", "json")
    foretold = await steward("plan", LOAD_AWARE, *options, kubeconfig=control_plane.kubeconfig)
    async with advising(control_plane, account):
        await rig.ask("DryRun", options=no_reboots(deschedulingIntervalSeconds=120))
        assert await rig.reaches("ReviewRequired")
    kept = await steward("plan", LOAD_AWARE, "-o", "json", kubeconfig=control_plane.kubeconfig)
    assert (foretold.code, kept.code) == (2, 2), foretold.stderr
    status = await rig.status()
    plans = [json.loads(ended.stdout) for ended in (foretold, kept)]
    assert [plan["planHash"] for plan in plans] == [status.plan_hash] * 2
    assert [plan["changeCount"] for plan in plans] == [1, 1]
    assert plans[0]["items"][0]["diff"] == status.items[0].diff


async def test_plan_says_that_hyperconverged_is_missing(rig: AdvisorRig, control_plane: ControlPlane) -> None:
    asking = ("plan", LOAD_AWARE, "--set", "enablePSIMetrics=false")
    named = await steward(*asking, "--hyperconverged", "elsewhere/another", kubeconfig=control_plane.kubeconfig)
    assert (named.code, named.stdout) == (1, "")
    assert named.stderr == f"virt-steward: HyperConverged elsewhere/another not found; existing: {HCO}\n"
    assert "Note:" not in (await steward(*asking, kubeconfig=control_plane.kubeconfig)).stdout
    await rig.client.delete(Ref(HYPERCONVERGED, HCO))
    assumed = await steward(*asking, kubeconfig=control_plane.kubeconfig)
    assert assumed.code == 2, assumed.stderr
    assert f"Note: HyperConverged {HCO} not found, so the plan assumes its defaults: 5 migrations" in assumed.stdout
    limited = ("--set", "evictionLimitTotal=3", "--set", "evictionLimitNode=1")
    assert "Note:" not in (await steward(*asking, *limited, kubeconfig=control_plane.kubeconfig)).stdout


async def test_plan_manifests_leave_nothing_to_do_once_applied(rig: AdvisorRig, control_plane: ControlPlane) -> None:
    asking = ("plan", LOAD_AWARE, "--set", "enablePSIMetrics=false")
    ended = await steward(*asking, "-o", "manifests", kubeconfig=control_plane.kubeconfig)
    assert ended.code == 0
    assert yaml.safe_load(ended.stdout)
    for manifest in yaml.safe_load_all(ended.stdout):
        await rig.client.apply(manifest, manager="gitops")
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
            [HIGHER_DENSITY, "--hyperconverged", "nowhere/none"],
            "HyperConverged nowhere/none not found",
            id="no platform",
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
    rig: AdvisorRig, control_plane: ControlPlane, namespace: str, tmp_path: Path
) -> None:
    full = definition(AdvisorOptions()).access
    looking = Access("onlooker", tuple(_without_writes(full.grants)))
    account = await an_account(rig.client, looking, Installation(namespace))
    kubeconfig = account.write_kubeconfig(tmp_path / "kubeconfig", control_plane)
    ended = await steward("plan", LOAD_AWARE, kubeconfig=kubeconfig)
    assert (ended.code, ended.stdout) == (1, "")
    assert "a dry run changes nothing, but needs the right to patch: you are forbidden (403) to patch " in ended.stderr
    assert str(PSI) in ended.stderr
    assert str(DESCHEDULER) in ended.stderr


@pytest.mark.parametrize("command", [["plan", LOAD_AWARE], ["explain", "plan", LOAD_AWARE], ["approve", EXAMPLE]])
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


async def test_explain_and_status_show_what_plan_waits_for(
    rig: AdvisorRig, control_plane: ControlPlane, account: Account
) -> None:
    async with advising(control_plane, account):
        await rig.ask("DryRun", options=no_reboots())
        assert await rig.reaches("ReviewRequired")
    version = ("--operator-version", (await rig.status()).operator_version)
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
    [status] = [one for one in json.loads(told.stdout)["controllers"] if one["health"]["controller"] == "advisor"]
    advisor = status["objects"]
    [row] = [row for row in advisor["profiles"] if row["profile"] == LOAD_AWARE]
    assert f"virt-steward approve {LOAD_AWARE}" in {one["command"] for one in status["waiting"]}
    assert advisor["byState"]["ReviewRequired"] == 1
    assert (row["action"], row["phase"], row["impact"]) == ("DryRun", "ReviewRequired", "Medium")
    assert row["message"].startswith("The plan is ready for review")
    assert "1 ReviewRequired" in advisor["summary"]
