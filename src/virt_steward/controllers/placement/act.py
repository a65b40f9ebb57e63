"""The writes of the placement: a choice is recorded, a machine's condition said, a cluster's status reported."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from virt_steward.apis.kubevirtconfig import KUBEVIRT_CONFIG
from virt_steward.controllers.placement.condition import patch_with
from virt_steward.controllers.placement.observation import BECAUSE_ANNOTATION, CONFIG_ANNOTATION, MACHINE, MACHINE_API
from virt_steward.controllers.placement.reason_annotation import with_reason
from virt_steward.kube import faults
from virt_steward.kube.errors import FieldConflict
from virt_steward.objects.identity import Ref
from virt_steward.ssa import managers

if TYPE_CHECKING:
    from virt_steward.controllers.placement.observation import Machine, MachineCondition
    from virt_steward.controllers.placement.observe import KubevirtConfig, KubevirtConfigReport
    from virt_steward.controllers.placement.verdicts import Chosen
    from virt_steward.kube.client import Client


async def record(client: Client, machine: Machine, chosen: Chosen) -> tuple[str, ...]:
    """Write the choice, and why, on just the machine that was seen without one: a choice of anybody else stands.

    Gives the managers of an empty annotation, from whom it was taken.
    """
    seen = machine.metadata
    intent = {
        "apiVersion": MACHINE_API,
        "kind": MACHINE.name,
        "metadata": {
            "name": seen.name,
            "namespace": seen.namespace,
            "uid": seen.uid,
            "resourceVersion": seen.resource_version,
            "annotations": {CONFIG_ANNOTATION: chosen.cluster, BECAUSE_ANNOTATION: with_reason(chosen)},
        },
    }
    faults.reach("placement.record.before")
    try:
        await client.apply(intent, manager=managers.PLACEMENT.name)
    except FieldConflict as conflict:  # empty on that version, or a copied note; else the version is refused
        await client.apply(intent, manager=managers.PLACEMENT.name, force=True)
        claims = [claim for claim in conflict.claims if claim.field.endswith(CONFIG_ANNOTATION)]
        taken_from = tuple(sorted({claim.manager for claim in claims}))
    else:
        taken_from = ()
    faults.reach("placement.record.after")
    return taken_from


async def say(client: Client, machine: Machine, condition: MachineCondition) -> None:
    """Set our condition among those of others, if the machine is still as it was seen."""
    faults.reach("placement.condition.before")
    await client.json_patch(
        Ref(MACHINE, machine.metadata.key),
        patch_with(machine, condition),
        subresource="status",
        manager=managers.CONDITION.name,
    )
    faults.reach("placement.condition.after")


async def report(client: Client, config: KubevirtConfig, status: KubevirtConfigReport) -> None:
    """Write our part of the status; what others have put there stays."""
    faults.reach("placement.status.before")
    await client.apply(
        {
            "apiVersion": f"{KUBEVIRT_CONFIG.group}/v1alpha1",
            "kind": KUBEVIRT_CONFIG.name,
            "metadata": {"name": config.metadata.name, "uid": config.metadata.uid},
            "status": msgspec.to_builtins(status),
        },
        manager=managers.PLACEMENT_STATUS.name,
        force=True,
        subresource="status",
    )
    faults.reach("placement.status.after")
