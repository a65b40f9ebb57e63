"""What the advisor may do: read what profiles declare, and apply what they may write, each object by its name.

In any namespace, since a Role cannot be made where the namespace is yet to come with its operator.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from virt_steward.apis.virtplatformconfig import VIRT_PLATFORM_CONFIG
from virt_steward.kube.discovery import CUSTOM_RESOURCE_DEFINITION
from virt_steward.objects.corekinds import NODE
from virt_steward.objects.identity import Ref
from virt_steward.plans.blast_radius import VIRTUAL_MACHINE_INSTANCE
from virt_steward.plans.preimage import CONTROLLER_REVISION
from virt_steward.platform.hco import HYPERCONVERGED
from virt_steward.platform.machineconfigs import MACHINE_CONFIG, MACHINE_CONFIG_POOL
from virt_steward.runtime.access import APPLY, PATCH, READ, WATCH, Access, Grant, Reach

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from virt_steward.controllers.advisor.options import AdvisorOptions
    from virt_steward.controllers.advisor.profiles.profile import Profile

NAME = "advisor"


def access_for(profiles: Sequence[Profile], options: AdvisorOptions) -> Access:
    return Access(NAME, tuple(_grants(profiles, options)))


def _grants(profiles: Sequence[Profile], options: AdvisorOptions) -> Iterator[Grant]:
    offered = tuple(profile.name for profile in profiles if profile.about.is_advertised)
    yield Grant(VIRT_PLATFORM_CONFIG, WATCH, "to know what is wanted")
    yield Grant(VIRT_PLATFORM_CONFIG, (*READ, *APPLY), "to offer the profiles that there are", names=offered)
    yield Grant(VIRT_PLATFORM_CONFIG, PATCH, "to show plans and report on them", subresource="status")
    yield Grant(MACHINE_CONFIG, WATCH, "to know what nodes are configured with, and whether they run with it")
    yield Grant(MACHINE_CONFIG_POOL, WATCH, "to follow nodes while they reboot")
    yield Grant(NODE, ("list",), "to tell which nodes a plan reboots")
    yield Grant(VIRTUAL_MACHINE_INSTANCE, ("list",), "to tell which virtual machines must move for that")
    hco = Ref(HYPERCONVERGED, options.hco)
    yield Grant(HYPERCONVERGED, WATCH, "to derive limits from its settings", names=(hco.key.name,))
    for profile in profiles:
        for ref in profile.targets:
            why = f"to plan and apply {profile.name}"
            yield Grant(ref.kind, (*READ, *WATCH, *PATCH), why, names=(ref.key.name,))
            if ref.kind != HYPERCONVERGED:  # a platform is neither installed nor removed by tuning it
                yield Grant(ref.kind, ("create",), why, names=(ref.key.name,))
                yield Grant(ref.kind, ("delete",), "to undo what was made", names=(ref.key.name,))
    yield Grant(CONTROLLER_REVISION, ("create", "get", "list"), "to keep the way back", Reach.OWN)
    crds = tuple(sorted({crd for profile in profiles for crd in profile.schemas}))
    yield Grant(CUSTOM_RESOURCE_DEFINITION, READ, "to know which fields the installed release has", names=crds)
