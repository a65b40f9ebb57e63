"""The same decisions by commands: several objects at once, and an exit code that tells if one was refused."""

import json
from pathlib import Path

from tests.cli.commands import steward
from tests.console.objects import define_all, put
from tests.controllers.advisor.reviews import config_in_review, write_status
from tests.grants import an_account
from tests.machines import a_config, a_machine, cluster_of, the_config
from virt_steward.apis.profiles import EXAMPLE
from virt_steward.controllers.advisor.annotation_keys import REJECTED_BY, REJECTION_COMMENT
from virt_steward.controllers.autopilot.annotation_keys import PAUSE_REASON, PAUSED
from virt_steward.kube.client import Client
from virt_steward.objects.identity import Key, ref_of
from virt_steward.platform.machineconfigs import MACHINE_CONFIG
from virt_steward.runtime.access import Access, Grant, Installation
from virt_steward_demo.local.controlplane import ControlPlane


async def test_reject_decides_on_each_profile(configs: Client, control_plane: ControlPlane) -> None:
    rig = await config_in_review(configs)
    other = await steward("reject", EXAMPLE, "--plan", "0123456789abcdef", kubeconfig=control_plane.kubeconfig)
    assert (other.code, other.stdout) == (1, "")
    assert f"{EXAMPLE}: Nothing was changed: the plan has changed since you reviewed it" in other.stderr
    ended = await steward(
        "reject", "no-such", EXAMPLE, "--comment", "not now", "-o", "json", kubeconfig=control_plane.kubeconfig
    )
    assert ended.code == 1
    assert [(one["subject"], one["decided"]) for one in json.loads(ended.stdout)["results"]] == [
        ("no-such", False),
        (EXAMPLE, True),
    ]
    annotations = (await rig.config())["metadata"]["annotations"]
    assert (annotations[REJECTED_BY], annotations[REJECTION_COMMENT]) == ("admin", "not now")


async def test_each_profile_gets_an_answer_though_the_first_is_forbidden(
    configs: Client, control_plane: ControlPlane, namespace: str, tmp_path: Path
) -> None:
    account = await an_account(configs, Access("bystander"), Installation(namespace))
    kubeconfig = account.write_kubeconfig(tmp_path / "kubeconfig", control_plane)
    ended = await steward("rollback", EXAMPLE, "other", "-o", "json", kubeconfig=kubeconfig)
    assert ended.code == 1, ended.stderr
    found = json.loads(ended.stdout)["results"]
    assert [(one["subject"], one["decided"]) for one in found] == [(EXAMPLE, False), ("other", False)]
    assert all("forbidden" in one["message"] for one in found)


async def test_rollback_is_requested_and_cancelled(configs: Client, control_plane: ControlPlane) -> None:
    rig = await config_in_review(configs, action="Apply")
    refused = await steward("rollback", EXAMPLE, kubeconfig=control_plane.kubeconfig)
    assert (refused.code, refused.stdout) == (1, "")
    assert f"There is no executed plan of {EXAMPLE} to roll back" in refused.stderr
    await write_status(rig, phase="Completed", pre_image="a-record")
    for options, code, action in (((), 0, "Rollback"), (("--cancel",), 0, "DryRun"), (("--cancel",), 1, "DryRun")):
        ended = await steward("rollback", EXAMPLE, *options, kubeconfig=control_plane.kubeconfig)
        assert ended.code == code, ended.stdout
        assert (await rig.config())["spec"]["action"] == action


async def test_replan_asks_for_a_plan(configs: Client, control_plane: ControlPlane) -> None:
    rig = await config_in_review(configs, action="Ignore")
    ended = await steward("replan", EXAMPLE, kubeconfig=control_plane.kubeconfig)
    assert (ended.code, ended.stdout) == (
        0,
        f"{EXAMPLE}: A new plan for {EXAMPLE} is being drafted. Nothing changes until somebody approves it.\n",
    )
    assert (await rig.config())["spec"]["action"] == "DryRun"


async def test_resume_takes_only_what_is_paused(
    admin: Client, control_plane: ControlPlane, namespace: str, tmp_path: Path
) -> None:
    """By somebody who has no other right than the page on roles names: get and patch on this object."""
    await define_all(admin)
    grant = Grant(MACHINE_CONFIG, ("get", "patch"), "to resume it", names=("90-worker-swap-online",))
    access = Access("resumer", (grant,), only_looks=True)
    account = await an_account(admin, access, Installation(namespace, prefix=namespace))
    kubeconfig = account.write_kubeconfig(tmp_path / "kubeconfig", control_plane)
    machine_config = {
        "apiVersion": "machineconfiguration.openshift.io/v1",
        "kind": "MachineConfig",
        "metadata": {"name": "90-worker-swap-online", "annotations": {PAUSED: "true", PAUSE_REASON: "a war"}},
        "spec": {},
    }
    await put(admin, machine_config)
    for code, answer in ((0, "manages "), (1, "is not paused. Nothing was changed.")):
        ended = await steward("resume", "swap-enable", kubeconfig=kubeconfig)
        assert ended.code == code
        assert answer in ended.stdout + ended.stderr
    resumed = await admin.get(ref_of(machine_config))
    assert not {PAUSED, PAUSE_REASON} & resumed["metadata"]["annotations"].keys()
    await admin.delete(ref_of(machine_config))


async def test_choose_places_a_machine_once(admin: Client, namespace: str, control_plane: ControlPlane) -> None:
    await define_all(admin)
    cluster = f"east-{namespace}"
    await put(admin, a_config(cluster, Key(namespace, "none")))
    await admin.create(a_machine(namespace, "web"))
    for code in (0, 1):
        ended = await steward("choose", f"{namespace}/web", cluster, kubeconfig=control_plane.kubeconfig)
        assert ended.code == code, ended.stdout
        assert await cluster_of(admin, namespace, "web") == cluster
    assert f"is already on cluster {cluster}" in ended.stderr
    await admin.delete(the_config(cluster))
