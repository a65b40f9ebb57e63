"""What the console may do by itself: look at what controllers look at, and write nothing. No Secrets are among it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from virt_steward.apis.installplanapprover import INSTALL_PLAN_APPROVER
from virt_steward.apis.kubevirtconfig import KUBEVIRT_CONFIG
from virt_steward.catalog.load import load
from virt_steward.controllers.approver.olm import CLUSTER_SERVICE_VERSION, INSTALL_PLAN, SUBSCRIPTION
from virt_steward.controllers.autopilot.options import AutopilotOptions
from virt_steward.controllers.autopilot.watches import Watchlist
from virt_steward.controllers.placement.observation import MACHINE
from virt_steward.kube.discovery import CUSTOM_RESOURCE_DEFINITION
from virt_steward.kube.events import EVENT
from virt_steward.objects.corekinds import NAMESPACE
from virt_steward.runtime.access import READ, WATCH, Access, Grant, Reach

if TYPE_CHECKING:
    from collections.abc import Iterator

    from virt_steward.objects.identity import Kind

NAME = "console"


def access(options: AutopilotOptions) -> Access:
    shown = (
        Grant(INSTALL_PLAN, WATCH, "to show which plans wait", Reach.TARGETS),
        Grant(SUBSCRIPTION, WATCH, "to show which versions are pinned", Reach.TARGETS),
        Grant(CLUSTER_SERVICE_VERSION, WATCH, "to show what is installed", Reach.TARGETS),
        Grant(INSTALL_PLAN_APPROVER, WATCH, "to show who approves", Reach.TARGETS),
        Grant(NAMESPACE, WATCH, "to judge plans by the labels of their namespaces"),
        Grant(MACHINE, WATCH, "to show where machines run", Reach.TARGETS),
        Grant(KUBEVIRT_CONFIG, WATCH, "to show clusters and their health"),
        Grant(EVENT, WATCH, "to show what controllers have told", Reach.TARGETS),
    )
    return Access(NAME, (*shown, *_of_autopilot(options)), only_looks=True)


def _of_autopilot(options: AutopilotOptions) -> Iterator[Grant]:
    """What bears on assets, profiles and rollouts: by name, unless all of a kind are watched."""
    catalog = load()
    watchlist = Watchlist(catalog, options.hco)
    names: dict[Kind, set[str]] = {}
    for source in (*watchlist.around, *watchlist.managed.values()):
        names.setdefault(source.kind, set()).add(source.selection.fields.removeprefix("metadata.name="))
    for kind, found in sorted(names.items()):
        if kind != NAMESPACE:  # all of them are watched for the plans
            only = () if "" in found else tuple(sorted(found))
            yield Grant(kind, WATCH, "to show it as the autopilot sees it", names=only)
    if crds := tuple(sorted(catalog.needs.schemas)):
        yield Grant(CUSTOM_RESOURCE_DEFINITION, READ, "to judge assets by the fields that a kind has", names=crds)


ACCESS = access(AutopilotOptions())
"""As it is by default: enough for its name and rights."""
