"""Assets that read the object that they write: what others write there is kept, and what was ours is taken back."""

from functools import partial
from random import Random

from tests.audit import AuditLog
from tests.controllers.autopilot.cockpit import Cockpit, Object, spec_of
from tests.controllers.autopilot.everything import make_storage_profile
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


async def test_merged_text_keeps_edits_of_its_author(flying: Cockpit) -> None:
    await flying.engage(TEXT, enable_ksm_zero_only="true")
    assert await eventually(lambda: flying.is_there(TEXT), within=30)
    for number in range(5):
        mine = f"# edit {number}\nprometheusK8s:\n  retention: {number}d\n"
        await flying.edit(TEXT, {"data": {"config.yaml": mine}}, manager="admin")
        assert await eventually(partial(has_text, flying, mine + OURS), within=15), number


async def has_text(cockpit: Cockpit, text: str) -> bool:
    live = await cockpit.live(TEXT)
    return live is not None and live["data"]["config.yaml"] == text


async def test_converge_is_stale_after_read_object_changed(cockpit: Cockpit, audit_log: AuditLog) -> None:
    before, after = a_map("mine: 1\n"), a_map("mine: 2\n")
    await cockpit.client.apply(after, manager="admin")
    live = await cockpit.live(TEXT)
    mark = audit_log.mark()
    clock = SystemClock()
    ledger = StagingLedger(cockpit.client, Store({}), HCO, clock)
    bench = Toolkit.of(cockpit.client, Renderer(cockpit.catalog), ledger, Random(0), clock)
    found = cockpit.catalog.find(TEXT)
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


async def test_node_health_check_resumes_after_the_other_is_deleted(flying: Cockpit) -> None:
    self_node = a_template("SelfNodeRemediation", "self-node-remediation-automatic-strategy-template")
    await flying.client.apply(self_node, manager="admin")
    await flying.engage(f"{CHECK},{OTHER_CHECK}")
    assert await eventually(lambda: flying.is_there(CHECK), within=30)
    fence_agents = a_template("FenceAgentsRemediation", "fenceagentsremediationtemplate-default")
    await flying.client.apply(fence_agents, manager="admin")
    await flying.engage(f"{CHECK},{OTHER_CHECK}", enable_node_remediation="true")
    assert await eventually(lambda: flying.is_there(OTHER_CHECK), within=30)
    assert await eventually(lambda: is_paused(flying, 1), within=30)
    requests = [*spec_of(await flying.live(CHECK))["pauseRequests"], "an upgrade"]
    await flying.edit(CHECK, {"spec": {"pauseRequests": requests}})
    await flying.engage(f"{CHECK},{OTHER_CHECK}", enable_node_remediation=None)
    await flying.engage(f"{CHECK},{OTHER_CHECK},no-such-asset")
    assert await eventually(lambda: flying.told("UnknownAsset"), within=30)
    assert await is_paused(flying, 2), "the other check is still there"
    await flying.client.delete(flying.ref(OTHER_CHECK))
    assert await eventually(lambda: is_paused(flying, 1), within=30)
    assert spec_of(await flying.live(CHECK))["pauseRequests"] == ["an upgrade"], "which is somebody else's"


async def test_remediation_uses_first_shared_storage_class(flying: Cockpit) -> None:
    await make_storage_profile(flying, "block", "Block")
    await flying.engage(STORAGE, enable_node_remediation="true")
    assert await eventually(lambda: flying.told("AssetApplied", STORAGE))
    assert "sharedStorageClass" not in spec_of(await flying.live(STORAGE))
    await make_storage_profile(flying, "nfs", "Filesystem")
    assert await eventually(lambda: uses(flying, "nfs")), "as soon as there is one"
    await flying.engage(STORAGE, sbr_storage_class="mine")
    assert await eventually(lambda: uses(flying, "mine")), "whatever is shared"


async def uses(cockpit: Cockpit, storage_class: str) -> bool:
    return spec_of(await cockpit.live(STORAGE)).get("sharedStorageClass") == storage_class


async def is_paused(cockpit: Cockpit, requests: int) -> bool:
    return len(spec_of(await cockpit.live(CHECK)).get("pauseRequests", ())) == requests


def a_template(kind: str, name: str) -> Object:
    group = {"SelfNodeRemediation": "self-node", "FenceAgentsRemediation": "fence-agents"}[kind]
    return {
        "apiVersion": f"{group}-remediation.medik8s.io/v1alpha1",
        "kind": f"{kind}Template",
        "metadata": {"name": name, "namespace": AVAILABILITY},
        "spec": {"template": {"spec": {}}},
    }
