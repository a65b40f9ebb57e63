"""What the console watches besides what controllers do: events of ours, and how far nodes have got."""

from __future__ import annotations

import msgspec

from virt_steward.controllers import REPORTERS
from virt_steward.insight.activity import Told
from virt_steward.kube.client import Selection
from virt_steward.kube.events import EVENT
from virt_steward.kube.watch import projection
from virt_steward.objects.corekinds import NODE
from virt_steward.objects.identity import Kind
from virt_steward.objects.meta import Meta
from virt_steward.runtime.access import Reach
from virt_steward.runtime.informer import Source

EVENTS_OF_OLD = Kind("", "Event", "events")
"""The same objects under their first name: roles may grant either."""


class Marks(msgspec.Struct, frozen=True, gc=False):
    """What the daemon of a node tells of its configuration."""

    current: str = msgspec.field(default="", name="machineconfiguration.openshift.io/currentConfig")
    desired: str = msgspec.field(default="", name="machineconfiguration.openshift.io/desiredConfig")
    state: str = msgspec.field(default="", name="machineconfiguration.openshift.io/state")
    reason: str = msgspec.field(default="", name="machineconfiguration.openshift.io/reason")


class NodeMeta(Meta, frozen=True):
    labels: dict[str, str] = msgspec.field(default_factory=dict)
    annotations: Marks = Marks()


class RollingNode(msgspec.Struct, frozen=True):
    metadata: NodeMeta

    @property
    def marks(self) -> Marks:
        return self.metadata.annotations


def _about(told: Told) -> tuple[str]:
    return (str(told.about),)


NODES = Source(NODE, projection(RollingNode))
EVENTS = tuple(
    Source(
        EVENT,
        projection(Told),
        Selection(fields=f"reportingController={reporter}"),
        indexes={"about": _about},
        where=Reach.TARGETS,
    )
    for reporter in REPORTERS.values()
)
"""One for each controller: a cluster has far more events than ours."""
