"""Assets that read the object that they write: what others write there is kept, and what was ours is taken back."""

from functools import partial
from random import Random

from tests.audit import AuditLog
from tests.controllers.autopilot.everything import make_storage_profile
from tests.controllers.autopilot.rig import AutopilotRig, Object, spec_of
from tests.eventually import eventually
from virt_steward.catalog.render import Renderer
from virt_steward.controllers.autopilot.annotation_keys import DriftMode
from virt_steward.controllers.autopilot.converge import RenderedFrom, Task, Toolkit, converge
from virt_steward.controllers.autopilot.decide import Wanted
from virt_steward.controllers.autopilot.live_summary import live_summary
from virt_steward.controllers.autopilot.options import HCO
from virt_steward.controllers.autopilot.overrides.governed import NOT_GOVERNED
from virt_steward.controllers.autopilot.overrides.mask import NO_MASK
from virt_steward.controllers.autopilot.rollouts.ledger import StagingLedger
from virt_steward.controllers.autopilot.rollouts.policy import RolloutPolicy
from virt_steward.controllers.autopilot.verdicts import AssetPending, PendingReason
from virt_steward.runtime.clock import SystemClock
from virt_steward.runtime.store import Store

TEXT = "ksm-cluster-monitoring"
OURS = "nodeExporter:\n  collectors:\n    ksmd:\n      enabled: true\n"
CHECK, OTHER_CHECK = "node-health-check", "node-remediation"
STORAGE = "node-remediation-storage"
AVAILABILITY = "openshift-workload-availability"


async def test_merged_text_keeps_edits_of_its_author(running_rig: AutopilotRig) -> None:
    await running_rig.activate(TEXT, enable_ksm_zero_only="true")
    assert await eventually(lambda: running_rig.is_there(TEXT), within=30)
    for number in range(5):
        mine = f"# edit {number}\nprometheusK8s:\n  retention: {number}d\n"
        await running_rig.edit(TEXT, {"data": {"config.yaml": mine}}, manager="admin")
        assert await eventually(partial(has_text, running_rig, mine + OURS), within=15), number


async def has_text(rig: AutopilotRig, text: str) -> bool:
    live = await rig.live(TEXT)
    return live is not None and live["data"]["config.yaml"] == text


async def test_converge_is_stale_after_read_object_changed(rig: AutopilotRig, audit_log: AuditLog) -> None:
    before, after = a_map("mine: 1\n"), a_map("mine: 2\n")
    await rig.client.apply(after, manager="admin")
    live = await rig.live(TEXT)
    mark = audit_log.mark()
    clock = SystemClock()
    ledger = StagingLedger(rig.client, Store({}), HCO, clock)
    bench = Toolkit.of(rig.client, Renderer(rig.catalog), ledger, Random(0), clock)
    found = rig.catalog.find(TEXT)
    assert found
    assert found.reads_itself
    assert live
    wanted = Wanted(a_map(f"mine: 1\n{OURS}"), NO_MASK, DriftMode.ENFORCE, is_paused=False, rollout=RolloutPolicy())
    for seen in (live_summary(live), None):
        work = Task(wanted, seen, NOT_GOVERNED, wanted.intent, RenderedFrom(found.reads_itself, before))
        verdict = await converge(bench, work)
        assert isinstance(verdict, AssetPending)
        assert verdict.reason is PendingReason.STALE
    assert [one.verb for one in audit_log.since(mark) if one.is_write and one.name == after["metadata"]["name"]] == []


def a_map(text: str) -> Object:
    metadata = {"name": "cluster-monitoring-config", "namespace": "openshift-monitoring"}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"config.yaml": text}}


async def test_node_health_check_resumes_after_the_other_is_deleted(running_rig: AutopilotRig) -> None:
    self_node = a_template("SelfNodeRemediation", "self-node-remediation-automatic-strategy-template")
    await running_rig.client.apply(self_node, manager="admin")
    await running_rig.activate(f"{CHECK},{OTHER_CHECK}")
    assert await eventually(lambda: running_rig.is_there(CHECK), within=30)
    fence_agents = a_template("FenceAgentsRemediation", "fenceagentsremediationtemplate-default")
    await running_rig.client.apply(fence_agents, manager="admin")
    await running_rig.activate(f"{CHECK},{OTHER_CHECK}", enable_node_remediation="true")
    assert await eventually(lambda: running_rig.is_there(OTHER_CHECK), within=30)
    assert await eventually(lambda: is_paused(running_rig, 1), within=30)
    requests = [*spec_of(await running_rig.live(CHECK))["pauseRequests"], "an upgrade"]
    await running_rig.edit(CHECK, {"spec": {"pauseRequests": requests}})
    await running_rig.activate(f"{CHECK},{OTHER_CHECK}", enable_node_remediation=None)
    await running_rig.activate(f"{CHECK},{OTHER_CHECK},no-such-asset")
    assert await eventually(lambda: running_rig.has_event("UnknownAsset"), within=30)
    assert await is_paused(running_rig, 2), "the other check is still there"
    await running_rig.client.delete(running_rig.ref(OTHER_CHECK))
    assert await eventually(lambda: is_paused(running_rig, 1), within=30)
    assert spec_of(await running_rig.live(CHECK))["pauseRequests"] == ["an upgrade"], "which is somebody else's"


async def test_remediation_uses_first_shared_storage_class(running_rig: AutopilotRig) -> None:
    await make_storage_profile(running_rig, "block", "Block")
    await running_rig.activate(STORAGE, enable_node_remediation="true")
    assert await eventually(lambda: running_rig.has_event("AssetApplied", STORAGE))
    assert "sharedStorageClass" not in spec_of(await running_rig.live(STORAGE))
    await make_storage_profile(running_rig, "nfs", "Filesystem")
    assert await eventually(lambda: uses(running_rig, "nfs")), "as soon as there is one"
    await running_rig.activate(STORAGE, sbr_storage_class="mine")
    assert await eventually(lambda: uses(running_rig, "mine")), "whatever is shared"


async def uses(rig: AutopilotRig, storage_class: str) -> bool:
    return spec_of(await rig.live(STORAGE)).get("sharedStorageClass") == storage_class


async def is_paused(rig: AutopilotRig, requests: int) -> bool:
    return len(spec_of(await rig.live(CHECK)).get("pauseRequests", ())) == requests


def a_template(kind: str, name: str) -> Object:
    group = {"SelfNodeRemediation": "self-node", "FenceAgentsRemediation": "fence-agents"}[kind]
    return {
        "apiVersion": f"{group}-remediation.medik8s.io/v1alpha1",
        "kind": f"{kind}Template",
        "metadata": {"name": name, "namespace": AVAILABILITY},
        "spec": {"template": {"spec": {}}},
    }
