"""The writes of the placement: the choice and the condition of a Machine, the status of a KubevirtConfig."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from virt_steward.apis.kubevirtconfig import KUBEVIRT_CONFIG
from virt_steward.controllers.placement.observation import (
    BECAUSE_ANNOTATION,
    CONFIG_ANNOTATION,
    MACHINE,
    MACHINE_API,
    MACHINE_VERSION,
)
from virt_steward.controllers.placement.report import condition_patch, reason_annotation
from virt_steward.kube import faults
from virt_steward.kube.discovery import CUSTOM_RESOURCE_DEFINITION
from virt_steward.kube.errors import FieldConflict, NotFound
from virt_steward.objects.identity import Key, Ref
from virt_steward.objects.paths import Pointer
from virt_steward.objects.schemafacts import CrdDefinition, facts_of
from virt_steward.ssa import managers

if TYPE_CHECKING:
    from virt_steward.controllers.placement.observation import Machine, MachineCondition
    from virt_steward.controllers.placement.observe import KubevirtConfig, KubevirtConfigReport
    from virt_steward.controllers.placement.verdicts import Chosen
    from virt_steward.kube.client import Client, Reader
    from virt_steward.objects.meta import Existing
    from virt_steward.runtime.store import Store

MACHINE_CRD = Key("", f"{MACHINE.plural}.{MACHINE.group}")
CONDITIONS = Pointer(("status", "conditions"))


async def record(client: Client, machine: Machine, chosen: Chosen) -> tuple[str, ...]:
    """Write the cluster and the reason on the observed version of the Machine, so that no other choice is overwritten.

    Returns the field managers of an empty annotation, which was taken from them.
    """
    metadata = machine.metadata
    intent = {
        "apiVersion": MACHINE_API,
        "kind": MACHINE.name,
        "metadata": {
            "name": metadata.name,
            "namespace": metadata.namespace,
            "uid": metadata.uid,
            "resourceVersion": metadata.resource_version,
            "annotations": {CONFIG_ANNOTATION: chosen.cluster, BECAUSE_ANNOTATION: reason_annotation(chosen)},
        },
    }
    faults.reach("placement.record.before")
    try:
        await client.apply(intent, manager=managers.PLACEMENT.name)
    except FieldConflict as conflict:
        # On this version, the cluster is empty or the reason was copied with the Machine; any other version is a 409.
        await client.apply(intent, manager=managers.PLACEMENT.name, force=True)
        claims = [claim for claim in conflict.claims if claim.field.endswith(CONFIG_ANNOTATION)]
        taken_from = tuple(sorted({claim.manager for claim in claims}))
    else:
        taken_from = ()
    faults.reach("placement.record.after")
    return taken_from


async def write_condition(client: Client, machine: Machine, condition: MachineCondition) -> None:
    """Set our condition beside those of others, if the Machine is still the observed version."""
    faults.reach("placement.condition.before")
    await client.json_patch(
        Ref(MACHINE, machine.metadata.key),
        condition_patch(machine, condition),
        subresource="status",
        manager=managers.CONDITION.name,
    )
    faults.reach("placement.condition.after")


async def write_config_status(client: Client, config: KubevirtConfig, status: KubevirtConfigReport) -> None:
    """Write our part of the status; fields of others stay."""
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


class MachineSchema:
    """Whether the Machine CRD has status conditions: not all of its versions do. Read again when the CRD changes."""

    def __init__(self, reader: Reader, crds: Store[Existing]) -> None:
        self._reader = reader
        self._crds = crds
        self._known: tuple[str, bool] | None = None
        """The resourceVersion of the CRD, and the answer for it."""

    async def has_conditions(self) -> bool:
        crd = self._crds.get(MACHINE_CRD)
        version = crd.metadata.resource_version if crd else ""
        if self._known is None or self._known[0] != version:
            self._known = (version, await self._read())
        return self._known[1]

    async def _read(self) -> bool:
        try:
            found = await self._reader.get(Ref(CUSTOM_RESOURCE_DEFINITION, MACHINE_CRD), CrdDefinition)
        except NotFound:
            return False
        served = found.served(MACHINE_VERSION)
        return served is not None and served.has_status and facts_of(served.schema, (CONDITIONS,)).has(CONDITIONS)
