"""Small CRDs of the kinds of other projects, one module per project. Their controllers are not here."""

from __future__ import annotations

from typing import TYPE_CHECKING

from virt_steward_demo.simulation.kinds import (
    addons,
    descheduler,
    hyperconverged,
    logging,
    machineconfiguration,
    machines,
    monitoring,
    olm,
    openshift,
    remediation,
    virtualmachines,
)

if TYPE_CHECKING:
    from virt_steward.kube.client import Object
    from virt_steward_demo.simulation.stubs import Stub

STUBS: tuple[Stub, ...] = (
    *addons.STUBS,
    *descheduler.STUBS,
    *hyperconverged.STUBS,
    *logging.STUBS,
    *machineconfiguration.STUBS,
    *machines.STUBS,
    *monitoring.STUBS,
    *olm.STUBS,
    *openshift.STUBS,
    *remediation.STUBS,
    *virtualmachines.STUBS,
)
OLM_KINDS = tuple(stub.kind.name for stub in olm.STUBS)
NAMES = tuple(stub.kind.name for stub in STUBS)


def definition(name: str) -> Object:
    """The CRD of a kind, such as `MachineConfig`, in its latest version."""
    return next(stub for stub in STUBS if stub.kind.name == name).definition()
