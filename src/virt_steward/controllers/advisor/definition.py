"""The advisor as the manager knows it: the rights that it needs, and how it is built.

It may read what profiles declare, and apply what they may write, each object by its name. It may do so in any
namespace: a Role cannot be created before the namespace, which comes with the operator that a profile tunes.
"""

from __future__ import annotations

from functools import partial
from random import Random
from typing import TYPE_CHECKING, Final

from virt_steward.apis.virtplatformconfig import VIRT_PLATFORM_CONFIG
from virt_steward.controllers.advisor.approval import ADMISSION_POLICY
from virt_steward.controllers.advisor.observe import AdvisorClusterView, OwnWrites
from virt_steward.controllers.advisor.profiles import OFF_BY_DEFAULT, profiles, schemas_of
from virt_steward.controllers.advisor.reconcile import AdvisorController
from virt_steward.controllers.advisor.records import name_of_record
from virt_steward.controllers.advisor.reporter import AdvisorReporter
from virt_steward.controllers.advisor.watches import CONFIGS, AdvisorEventHandlers, TargetSources
from virt_steward.holds.gate_board import grants_for
from virt_steward.holds.installation import FREEZE_GRANT, follow_freeze
from virt_steward.kube.backoff import RetryBackoff
from virt_steward.kube.discovery import CUSTOM_RESOURCE_DEFINITION
from virt_steward.objects.corekinds import CONFIG_MAP, NODE
from virt_steward.objects.identity import Ref
from virt_steward.plans.blast_radius import VIRTUAL_MACHINE_INSTANCE
from virt_steward.plans.preimage import CONTROLLER_REVISION
from virt_steward.platform.hco import HYPERCONVERGED
from virt_steward.platform.machineconfigs import MACHINE_CONFIG, MACHINE_CONFIG_POOL
from virt_steward.runtime.access import APPLY, PATCH, READ, WATCH, Access, Grant, Reach
from virt_steward.runtime.controller import ControllerDefinition
from virt_steward.runtime.enforcement import grants_to_check
from virt_steward.runtime.kinds import DEFINITIONS, CrdChanges
from virt_steward.runtime.schemas import Schemas
from virt_steward.runtime.standby import other_leases

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from virt_steward.controllers.advisor.options import AdvisorOptions
    from virt_steward.controllers.advisor.profiles.profile import Profile
    from virt_steward.runtime.controller import Toolbox


NAME: Final = "advisor"
GO_LEASE = "8f83cc6e.kubevirt.io"
"""The Lease by which the Go operator of this name elects its leader."""


def definition(options: AdvisorOptions) -> ControllerDefinition:
    known = profiles(options)
    return of_profiles(known, options)


def of_profiles(known: Sequence[Profile], options: AdvisorOptions) -> ControllerDefinition:
    """The advisor for just these profiles."""
    return ControllerDefinition(
        NAME, access_for(known, options), partial(_build, known=known, options=options), concurrency=2
    )


def _build(tools: Toolbox, known: Sequence[Profile], options: AdvisorOptions) -> AdvisorController:
    discovery = tools.client.discovery
    backoff = RetryBackoff(Random())  # noqa: S311 - jitter
    schemas = Schemas(tools.client, tools.informers.of(DEFINITIONS), schemas_of(known), backoff)
    sources = TargetSources(known, options.hco)
    handlers = AdvisorEventHandlers(known, sources, tools.store(CONFIGS))
    freshness = OwnWrites(tools.clock)
    leases = tools.store(other_leases(GO_LEASE))
    view = AdvisorClusterView(
        tools.informers, sources, schemas, discovery, freshness, options, tools.notify.endpoints, leases
    )

    def requeue_all() -> None:
        for key in handlers.active():
            tools.wake(key)

    schemas.tell(lambda _crd: requeue_all())
    tools.accompany(schemas)
    tools.accompany(CrdChanges(discovery, requeue_all))
    follow_freeze(tools, options.namespace, NAME, requeue_all)
    reporter = AdvisorReporter(tools.recorder, tools.notify, tools.clock, tools.registry)
    tools.informers.of(CONFIGS).tell(reporter.config_changed)
    return AdvisorController(tools.client, view, handlers, reporter, tools.clock)


def access_for(profiles: Sequence[Profile], options: AdvisorOptions) -> Access:
    return Access(NAME, tuple(_grants(profiles, options)), other_lease=GO_LEASE)


def _grants(profiles: Sequence[Profile], options: AdvisorOptions) -> Iterator[Grant]:
    offered = tuple(profile.name for profile in profiles if profile.about.is_advertised)
    yield Grant(VIRT_PLATFORM_CONFIG, WATCH, "to read what is requested")
    yield Grant(VIRT_PLATFORM_CONFIG, (*READ, *APPLY), "to offer the profiles", names=offered)
    yield Grant(VIRT_PLATFORM_CONFIG, PATCH, "to show plans and report on them", subresource="status")
    yield from grants_to_check(ADMISSION_POLICY)
    yield Grant(MACHINE_CONFIG, WATCH, "to know what nodes are configured with, and whether they run with it")
    yield Grant(MACHINE_CONFIG_POOL, WATCH, "to follow nodes while they reboot")
    yield Grant(NODE, ("list",), "to show which nodes a plan reboots")
    yield Grant(VIRTUAL_MACHINE_INSTANCE, ("list",), "to show which virtual machines must migrate for that")
    yield FREEZE_GRANT
    yield from grants_for(options.gates, NAME)
    hco = Ref(HYPERCONVERGED, options.hco)
    yield Grant(HYPERCONVERGED, WATCH, "to derive limits from its settings", names=(hco.key.name,))
    for profile in profiles:
        for ref in profile.targets:
            why, names, part = f"to plan and apply {profile.name}", (ref.key.name,), _part(profile)
            yield Grant(ref.kind, (*READ, *WATCH, *PATCH), why, names=names, part=part)
            if ref.kind != HYPERCONVERGED:  # tuning a platform neither installs nor removes it
                yield Grant(ref.kind, ("create",), why, names=names, part=part)
                yield Grant(ref.kind, ("delete",), "to roll back what was created", names=names, part=part)
        why, names = "to record the plans that it makes and starts", (name_of_record(profile.name),)
        yield Grant(CONFIG_MAP, (*READ, *APPLY), why, Reach.OWN, names=names, part=_part(profile))
    yield Grant(CONTROLLER_REVISION, ("create", "get", "list"), "to record what a rollback restores", Reach.OWN)
    crds = tuple(sorted({crd for profile in profiles for crd in profile.schemas}))
    yield Grant(CUSTOM_RESOURCE_DEFINITION, READ, "to know which fields the installed release has", names=crds)


def _part(profile: Profile) -> str:
    """A profile that a flag turns on has a role of its own."""
    return profile.name if profile.name in OFF_BY_DEFAULT else ""
