"""What `virt-steward diff` shows is what the autopilot then does; a preview itself writes nothing."""

import json
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from tests.audit import AuditLog
from tests.cli.commands import steward
from tests.clients import a_client
from tests.console.people import People, a_rule, user_of
from tests.controllers.autopilot.rig import AutopilotRig
from tests.controllers.autopilot.staging_rig import (
    FILE,
    KUBELET,
    OTHER,
    SCOPE,
    activated,
    has_pods,
    is_staged,
    staged,
    want_pods,
)
from tests.controllers.autopilot.test_explain import ASSET, made_with
from tests.eventually import eventually
from virt_steward.controllers.autopilot.overrides.scope import parse
from virt_steward.insight.assets.changes import AssetChange, ChangeAction, preview_changes
from virt_steward.insight.assets.survey import survey
from virt_steward.insight.reading import dry_run_client
from virt_steward.kube.client import Client
from virt_steward.objects.field_changes import FieldChange, field_changes
from virt_steward_demo.local.controlplane import ControlPlane

SWAP = "swap-enable"


async def previewed(rig: AutopilotRig, scope: str, client: Client | None = None) -> dict[str, AssetChange]:
    """What the autopilot would do with this scope, by asset, without what it leaves out."""
    asking = dry_run_client(client or rig.client)
    found = await survey(asking, rig.catalog, rig.options, datetime.now(UTC))
    found = replace(found, seen=replace(found.seen, scope=parse(scope)))
    changes = await preview_changes(asking, found)
    return {one.asset: one for one in changes if one.action is not ChangeAction.SKIP}


async def test_diff_lists_changes_without_a_write(
    rig: AutopilotRig, namespace: str, control_plane: ControlPlane, audit_log: AuditLog, tmp_path: Path
) -> None:
    await made_with(rig, deschedulingIntervalSeconds=1234)
    await rig.activate(None, enable_kubelet_performance_settings="true")
    people = People(rig.client, namespace)
    token = await people.admin()
    kubeconfig = tmp_path / "kubeconfig"
    kubeconfig.write_text(control_plane.kubeconfig.read_text().replace(control_plane.token, token))
    begin = audit_log.mark()
    asked = ("diff", "--scope", f"{ASSET},{SCOPE},metallb-operator", "--show-excluded", "-o", "json")
    ended = await steward(*asked, kubeconfig=kubeconfig)
    assert ended.code == 2, ended.stderr
    mine = [one for one in audit_log.since(begin) if one.user == user_of(token)]
    assert [f"{one.verb} {one.uri}" for one in mine if one.is_write and "dryRun=All" not in one.uri] == []
    assert {"kubedeschedulers", "machineconfigs", "services"} <= {one.resource for one in mine if one.is_write}
    found = {one["asset"]: one for one in json.loads(ended.stdout)["changes"]}
    assert (found[ASSET]["action"], found[KUBELET]["action"], found[OTHER]["action"]) == ("update", "create", "create")
    [field] = found[ASSET]["fields"]
    assert (field["path"], field["live"]) == ("/spec/deschedulingIntervalSeconds", 1234)
    assert field["planned"] != 1234
    assert found[KUBELET]["staged"] is True, "another instance was here, and nobody has reviewed what is new"
    assert found[KUBELET]["impact"].startswith("3 nodes reboot (worker: 3 in 3 rounds)")
    assert found[KUBELET]["blastRadius"]["nodeCount"] == 3
    assert "enable-metallb: expected=true" in found["metallb-operator"]["message"]
    assert "Not in the allow-list" in found[SWAP]["message"]
    watcher = await people.somebody(a_rule("*"))
    async with a_client(control_plane, token=watcher) as client:
        denied = await previewed(rig, ASSET, client)
    assert denied[ASSET].action is ChangeAction.UNKNOWN
    assert "patch" in denied[ASSET].message


async def test_preview_agrees_with_staging(running_rig: AutopilotRig) -> None:
    await activated(running_rig)
    assert {one.action for one in (await previewed(running_rig, SCOPE)).values()} == {ChangeAction.NONE}
    await want_pods(running_rig, 321)
    assert await eventually(partial(is_staged, running_rig, KUBELET))
    found = (await previewed(running_rig, SCOPE))[KUBELET]
    assert field_changes(found.live, found.planned) == (FieldChange(FILE, "maxPods: 500", "maxPods: 321"),)
    assert found.staged.startswith("nodes of pool worker would reboot, so it waits")
    both = await previewed(running_rig, f"{SCOPE},{SWAP}")
    assert both[SWAP].action is ChangeAction.CREATE
    assert (both[SWAP].staged, both[KUBELET].staged) == ("", ""), "a rollout takes staged changes along"
    [entry] = (await staged(running_rig)).values()
    await running_rig.activate(f"{SCOPE},{SWAP}")
    assert await eventually(partial(has_pods, running_rig, 321)), f"{entry.id} goes along"
    assert await eventually(partial(is_staged, running_rig))
