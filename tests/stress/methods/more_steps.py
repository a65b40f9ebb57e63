"""What admins do besides the tour of the demo: the other profile, every asset, and what earlier releases left."""

from functools import partial
from typing import Any

from tests.audit import BEGINNING
from tests.controllers.advisor.rig import AdvisorRig, no_reboots
from tests.controllers.autopilot.everything import ask_for_everything, expected, options_for
from tests.controllers.autopilot.rig import AutopilotRig
from tests.eventually import eventually
from tests.grants import Account
from tests.stress.methods.rights import user_of
from virt_steward.apis.profiles import HIGHER_DENSITY, LOAD_AWARE
from virt_steward.catalog.load import Tombstone, load
from virt_steward.controllers.advisor.profiles.load_aware_rebalancing import DESCHEDULER
from virt_steward.controllers.autopilot.options import HCO
from virt_steward.controllers.autopilot.rollouts.staged import ref_of_staging
from virt_steward.kube.client import Client
from virt_steward.kube.errors import NotFound
from virt_steward.kube.whoami import name_of_caller
from virt_steward.objects.identity import Ref
from virt_steward.packaging.parts import access_of
from virt_steward_demo.tour.environment import DemoCluster

PATIENCE = 120.0
MANAGED_BY = "platform.kubevirt.io/managed-by"
NOT_BESIDE_OUR_SERVICE = "metrics-service"
"""The asset that is wanted only where an installation has no Service for its metrics."""
REFUSED_BY_ITS_CRD = "kubevirt-plugin"
"""A UIPlugin that no cluster can create any more; one that had it before keeps it."""
SPECS: dict[str, Any] = {"PodMonitor": {"selector": {}, "podMetricsEndpoints": []}}


async def more_steps(cluster: DemoCluster) -> None:
    await other_plans(cluster.client)
    rig = a_rig(cluster)
    await rig.activate(rollout="approve")
    await ask_for_everything(rig)
    assert await eventually(partial(exists, rig.client, ref_of_staging(HCO.namespace)), within=PATIENCE)
    await rig.activate(rollout="immediate")
    assert await eventually(partial(has_all, rig), within=PATIENCE), await missing(rig)
    await drift_of_everything(rig)
    await obsolete_objects(rig)


async def other_plans(client: Client) -> None:
    """The other profile, and that of the tour where there is no KubeDescheduler yet; both are rolled back."""
    await apply_and_roll_back(AdvisorRig(client, HIGHER_DENSITY))
    await client.delete(DESCHEDULER)
    await apply_and_roll_back(AdvisorRig(client, LOAD_AWARE), options=no_reboots())


async def apply_and_roll_back(advisor: AdvisorRig, **spec: Any) -> None:
    for drafting, action in (("DryRun", "Apply"), ("Rollback", "Rollback")):
        await advisor.ask(drafting, **spec)
        assert await advisor.reaches("ReviewRequired", within=PATIENCE), await advisor.status()
        plan, me = (await advisor.status()).plan_hash, await name_of_caller(advisor.client)
        await advisor.annotate(approved_plan=plan, approved_by=me)
        await advisor.ask(action)
        assert await advisor.reaches("Completed", within=PATIENCE), await advisor.status()
    await advisor.ask("Ignore")
    assert await advisor.reaches("Ignored", within=PATIENCE), await advisor.status()


def a_rig(cluster: DemoCluster) -> AutopilotRig:
    catalog = load()
    account = Account(access_of("autopilot"), user_of("autopilot"), token="")
    return AutopilotRig(cluster.client, cluster.platform, catalog, account, options_for(catalog), BEGINNING)


def wanted(rig: AutopilotRig) -> list[str]:
    return [name for name in expected(rig.catalog) if name != NOT_BESIDE_OUR_SERVICE]


async def missing(rig: AutopilotRig) -> list[str]:
    return [name for name in wanted(rig) if not await rig.is_there(name)]


async def has_all(rig: AutopilotRig) -> bool:
    return not await missing(rig)


async def drift_of_everything(rig: AutopilotRig) -> None:
    """Somebody takes the label of the autopilot away from each object, and it comes back."""
    left = wanted(rig)
    for asset in left:
        await rig.edit(asset, {"metadata": {"labels": {MANAGED_BY: "somebody-else"}}})

    async def is_reverted() -> bool:
        for asset in list(left):
            live = await rig.live(asset)
            if live and live["metadata"]["labels"].get(MANAGED_BY) == "virt-platform-autopilot":
                left.remove(asset)
        return not left

    assert await eventually(is_reverted, within=PATIENCE), left


async def obsolete_objects(rig: AutopilotRig) -> None:
    """What earlier releases have created is deleted."""
    stones = [stone for stone in rig.catalog.tombstones if stone.ref.key.name != REFUSED_BY_ITS_CRD]
    for stone in stones:
        await rig.client.create(_as_created(stone))

    async def are_gone() -> bool:
        return not [stone for stone in stones if await exists(rig.client, stone.ref)]

    assert await eventually(are_gone, within=PATIENCE)


def _as_created(stone: Tombstone) -> dict[str, Any]:
    key, kind = stone.ref.key, stone.ref.kind.name
    place = {"namespace": key.namespace} if key.namespace else {}
    metadata = {"name": key.name, **place, "labels": {MANAGED_BY: "virt-platform-autopilot"}}
    return {"apiVersion": stone.api_version, "kind": kind, "metadata": metadata, "spec": SPECS.get(kind, {})}


async def exists(client: Client, ref: Ref) -> bool:
    try:
        await client.get(ref)
    except NotFound:
        return False
    return True
