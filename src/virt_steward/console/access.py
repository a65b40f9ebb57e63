"""What the console's own account may do: watch what it shows, and write nothing. It reads no Secrets."""

from __future__ import annotations

from typing import TYPE_CHECKING

from virt_steward.apis.installplanapprover import INSTALL_PLAN_APPROVER
from virt_steward.apis.kubevirtconfig import KUBEVIRT_CONFIG
from virt_steward.catalog.load import load
from virt_steward.console.lease_holders import OUR_LEASES
from virt_steward.controllers import REPORTERS
from virt_steward.controllers.approver.olm import CLUSTER_SERVICE_VERSION, INSTALL_PLAN, SUBSCRIPTION
from virt_steward.controllers.autopilot.options import AutopilotOptions
from virt_steward.controllers.autopilot.watches import Watchlist
from virt_steward.controllers.placement.observation import MACHINE
from virt_steward.insight.activity import EventRecord
from virt_steward.insight.status import GO_LEASES
from virt_steward.kube.client import Selection
from virt_steward.kube.discovery import CUSTOM_RESOURCE_DEFINITION
from virt_steward.kube.events import EVENT
from virt_steward.kube.watch import projection
from virt_steward.objects.corekinds import NAMESPACE
from virt_steward.objects.identity import Kind
from virt_steward.runtime.access import LEASE, READ, WATCH, Access, Grant, Reach
from virt_steward.runtime.informer import Source

if TYPE_CHECKING:
    from collections.abc import Iterator

NAME = "console"
CORE_EVENT = Kind("", "Event", "events")
"""The same objects as events.k8s.io, in the core group: roles may grant either."""


def _subject(event: EventRecord) -> tuple[str]:
    return (str(event.about),)


EVENTS = tuple(
    Source(
        EVENT,
        projection(EventRecord),
        Selection(fields=f"reportingController={reporter}"),
        indexes={"about": _subject},
        where=Reach.TARGETS,
    )
    for reporter in REPORTERS.values()
)
"""The events of each controller. These and the Leases by which controllers elect their leaders are all that the console
watches besides what controllers watch."""


def access(options: AutopilotOptions) -> Access:
    shown = (
        Grant(INSTALL_PLAN, WATCH, "to show pending plans", Reach.TARGETS),
        Grant(SUBSCRIPTION, WATCH, "to show which versions are pinned", Reach.TARGETS),
        Grant(CLUSTER_SERVICE_VERSION, WATCH, "to show what is installed", Reach.TARGETS),
        Grant(INSTALL_PLAN_APPROVER, WATCH, "to show who approves", Reach.TARGETS),
        Grant(NAMESPACE, WATCH, "to evaluate approvers by the labels of namespaces"),
        Grant(MACHINE, WATCH, "to show the clusters of Machines", Reach.TARGETS),
        Grant(KUBEVIRT_CONFIG, WATCH, "to show clusters and their health"),
        Grant(EVENT, WATCH, "to show the events of the controllers", Reach.TARGETS),
        Grant(LEASE, WATCH, "to show which controllers stand by", names=tuple(sorted(GO_LEASES.values()))),
        Grant(LEASE, WATCH, "to show which replica leads", Reach.OWN, names=tuple(sorted(OUR_LEASES.values()))),
    )
    return Access(NAME, (*shown, *_autopilot_grants(options)), only_looks=True)


def _autopilot_grants(options: AutopilotOptions) -> Iterator[Grant]:
    """What bears on assets, profiles and rollouts: by name, unless all of a kind are watched."""
    catalog = load()
    watchlist = Watchlist(catalog, options.hco, options.namespace)
    names: dict[Kind, set[str]] = {}
    for source in (*watchlist.around, *watchlist.managed.values()):
        names.setdefault(source.kind, set()).add(source.selection.fields.removeprefix("metadata.name="))
    for kind, found in sorted(names.items()):
        if kind != NAMESPACE:  # all of them are watched for the plans
            only = () if "" in found else tuple(sorted(found))
            yield Grant(kind, WATCH, "to show what the controllers decide from it", names=only)
    if crds := tuple(sorted(catalog.needs.schemas)):
        yield Grant(CUSTOM_RESOURCE_DEFINITION, READ, "to evaluate assets by the fields of a kind", names=crds)


ACCESS = access(AutopilotOptions())
"""With the default options: enough for its name and rights."""
