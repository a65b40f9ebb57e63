"""Choose the cluster of a Machine that has none."""

from __future__ import annotations

from typing import TYPE_CHECKING

from virt_steward.apis.kubevirtconfig import KUBEVIRT_CONFIG
from virt_steward.controllers.placement.observation import CONFIG_ANNOTATION, DECISION, MACHINE, Machine
from virt_steward.decisions.outcomes import Decided, NotDecided
from virt_steward.kube.client import EVERYTHING
from virt_steward.objects.identity import Ref
from virt_steward.objects.meta import Existing
from virt_steward.ssa.managers import CONSOLE

if TYPE_CHECKING:
    from virt_steward.decisions.signatures import Signature
    from virt_steward.kube.client import Client
    from virt_steward.objects.identity import Key

TITLE = "No cluster chosen"


async def choose_cluster(
    client: Client, key: Key, cluster: str, signature: Signature, uid: str = ""
) -> Decided | NotDecided:
    """Set the annotation that counts before every placement rule. A cluster that is already recorded is kept.

    `uid` is that of the Machine that was shown; empty: whichever has the name.
    """
    if not cluster:
        return NotDecided(TITLE, "Name a cluster. Nothing was changed.")
    machine = await client.get(Ref(MACHINE, key), Machine)
    if uid not in ("", machine.metadata.uid):
        return NotDecided(TITLE, f"Machine {key} was replaced since you reviewed it. Nothing was changed.")
    if machine.request.config:
        return NotDecided(TITLE, f"Machine {key} is already on cluster {machine.request.config}. Nothing was changed.")
    clusters = await client.list(KUBEVIRT_CONFIG, EVERYTHING, Existing)
    if all(one.metadata.name != cluster for one in clusters):
        return NotDecided(TITLE, f"KubevirtConfig {cluster} not found. Nothing was changed.")
    annotations = {CONFIG_ANNOTATION: cluster, **signature.record(DECISION, "choose", cluster)}
    metadata = {"resourceVersion": machine.metadata.resource_version, "annotations": annotations}
    await client.merge_patch(Ref(MACHINE, key), {"metadata": metadata}, manager=CONSOLE.name)
    return Decided(f"Machine {key} is placed on cluster {cluster}.")
