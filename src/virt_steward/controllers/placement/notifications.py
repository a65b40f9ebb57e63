"""What of the placement concerns people: Machines without a cluster, clusters that do not work."""

from __future__ import annotations

from typing import TYPE_CHECKING

from virt_steward.controllers.placement.observation import MACHINE
from virt_steward.controllers.placement.report import PLACED
from virt_steward.controllers.placement.verdicts import PlacementReason
from virt_steward.runtime.matters import ClosesMatters, NotificationRules, OpensMatter

if TYPE_CHECKING:
    from virt_steward.kube.events import Occurrence

PLACEMENT, CLUSTER = "placement", "cluster"
"""The topics of matters."""
READY = "ClusterReady"
FAULTY = ("Unreachable", "CredentialsInvalid", "Misbehaving")
"""The phases of a KubevirtConfig that need a person."""


def cluster_reason(phase: str) -> str:
    """The reason of the event about a cluster in this phase."""
    return f"Cluster{phase}"


def _page(occurrence: Occurrence) -> str:
    ref = occurrence.regarding.ref
    if ref.kind == MACHINE:
        return f"/placement/machines/{ref.key.namespace}/{ref.key.name}"
    return f"/placement/clusters/{ref.key.name}"


RULES = NotificationRules(
    {
        **dict.fromkeys(PlacementReason, OpensMatter(PLACEMENT)),
        PLACED: ClosesMatters((PLACEMENT,)),
        **{cluster_reason(phase): OpensMatter(CLUSTER) for phase in FAULTY},
        READY: ClosesMatters((CLUSTER,)),
    },
    _page,
)
