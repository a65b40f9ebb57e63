"""The definition of the placement controller: its access, and how it is built."""

from __future__ import annotations

from functools import partial
from random import Random
from typing import TYPE_CHECKING

from virt_steward import __version__
from virt_steward.apis.kubevirtconfig import KUBEVIRT_CONFIG
from virt_steward.controllers.placement.act import MACHINE_CRD, MachineSchema
from virt_steward.controllers.placement.assignments import Assignments
from virt_steward.controllers.placement.capacity import CapacityCache
from virt_steward.controllers.placement.clusters import ClusterStatusWriter
from virt_steward.controllers.placement.fleet import Fleet, connections_to_members
from virt_steward.controllers.placement.notifications import RULES as NOTIFICATIONS
from virt_steward.controllers.placement.observation import MACHINE
from virt_steward.controllers.placement.observe import PlacementClusterView
from virt_steward.controllers.placement.pending import PendingMachines
from virt_steward.controllers.placement.reconcile import PlacementController, Placer
from virt_steward.controllers.placement.reporter import PlacementReporter
from virt_steward.controllers.placement.search import Search
from virt_steward.controllers.placement.secrets import Secrets
from virt_steward.controllers.placement.watches import (
    CONFIGS,
    MACHINES,
    ClusterKey,
    PlacementEventHandlers,
    concerns_choices,
)
from virt_steward.holds.installation import FREEZE_GRANT, follow_freeze
from virt_steward.kube.discovery import CUSTOM_RESOURCE_DEFINITION
from virt_steward.runtime.access import PATCH, READ, SECRET, WATCH, Access, Grant, Reach
from virt_steward.runtime.controller import ControllerDefinition
from virt_steward.runtime.kinds import DEFINITIONS
from virt_steward.runtime.matters import NOTIFICATION_MEMORY, memory_grants

if TYPE_CHECKING:
    from collections.abc import Callable

    from virt_steward.controllers.placement.observation import Machine
    from virt_steward.controllers.placement.observe import KubevirtConfig
    from virt_steward.controllers.placement.options import PlacementOptions
    from virt_steward.objects.identity import Key
    from virt_steward.runtime.controller import Toolbox


NAME = "placement"
AGENT = f"virt-steward/{__version__} {NAME}"

ACCESS = Access(
    NAME,
    (
        Grant(MACHINE, (*WATCH, *PATCH), "to see which machines need a cluster, and to record it", Reach.TARGETS),
        Grant(MACHINE, PATCH, "to say why a machine has none", Reach.TARGETS, subresource="status"),
        Grant(KUBEVIRT_CONFIG, WATCH, "to know which clusters there are"),
        Grant(KUBEVIRT_CONFIG, PATCH, "to report whether they answer", subresource="status"),
        Grant(SECRET, WATCH, "to reach the clusters: those that KubevirtConfigs name, each by itself", Reach.SECRETS),
        Grant(CUSTOM_RESOURCE_DEFINITION, READ, "to know if machines have conditions", names=(MACHINE_CRD.name,)),
        FREEZE_GRANT,
    ),
    {NOTIFICATION_MEMORY: memory_grants(NAME)},
)


def definition(options: PlacementOptions) -> ControllerDefinition:
    return ControllerDefinition(
        NAME, ACCESS, partial(_build, options=options), concurrency=10, notifications=NOTIFICATIONS
    )


def _build(tools: Toolbox, options: PlacementOptions) -> PlacementController:
    clock = tools.clock
    pending, assignments = PendingMachines(clock), Assignments()
    reporter = PlacementReporter(tools.recorder, clock, tools.registry)
    handlers = PlacementEventHandlers(tools.store(MACHINES))

    def secret_changed(config: str) -> None:
        for machine in handlers.machines_of(config):
            pending.note_change(machine)
        for key in handlers.by_cluster(config):
            tools.wake(key)

    fleet = _fleet(tools, options, secret_changed, reporter)
    tools.informers.of(MACHINES).tell(assignments.take)
    configs = tools.store(CONFIGS)
    capacities = CapacityCache(fleet, configs, assignments, clock, lasting=options.probe_interval)

    def requeue_unplaced() -> None:
        for key in handlers.unplaced():
            tools.wake(key)

    freezes = follow_freeze(tools, options.namespace, NAME, requeue_unplaced)
    view = PlacementClusterView(
        tools.store(MACHINES),
        configs,
        fleet,
        assignments,
        options.rules,
        capacities,
        lambda: freezes.state(clock.utc()),
    )
    placer = Placer(
        client=tools.client,
        view=view,
        fleet=fleet,
        search=Search(fleet, options.timeouts, clock, reporter.search_ended),
        pending=pending,
        schema=MachineSchema(tools.client, tools.store(DEFINITIONS)),
        reporter=reporter,
        clock=clock,
        options=options,
    )
    status_writer = ClusterStatusWriter(
        client=tools.client,
        view=view,
        fleet=fleet,
        pending=pending,
        reporter=reporter,
        wake=tools.wake,
        interval=options.probe_interval,
        clock=clock,
        rng=Random(),  # noqa: S311 - jitter
    )
    _listen(tools, handlers, placer, status_writer)
    return PlacementController(handlers, placer, status_writer)


def _listen(
    tools: Toolbox, handlers: PlacementEventHandlers, placer: Placer, status_writer: ClusterStatusWriter
) -> None:
    """Keep the state that follows the watches; also while another process leads, when nothing is reconciled here."""

    def machine_changed(key: Key, _before: Machine | None, after: Machine | None) -> None:
        if after is None:
            placer.forget(key)
        elif after.is_ours:
            placer.pending.note_change(key)

    def config_changed(key: Key, before: KubevirtConfig | None, after: KubevirtConfig | None) -> None:
        if after is None:
            status_writer.forget(key.name)
        if concerns_choices(before, after):
            for machine in handlers.machines_of(key.name):
                placer.pending.note_change(machine)

    tools.informers.of(MACHINES).tell(machine_changed)
    tools.informers.of(CONFIGS).tell(config_changed)


def _fleet(
    tools: Toolbox, options: PlacementOptions, secret_changed: Callable[[str], None], reporter: PlacementReporter
) -> Fleet:
    """The clients of all clusters, which follow the KubevirtConfigs whether or not this process leads."""

    def request_ended(config: str, seconds: float, *, answered: bool) -> None:
        reporter.request_ended(config, seconds, answered=answered)
        if not answered:  # report it now, not after the next probe
            tools.wake(ClusterKey(config))

    def follow(key: Key, _before: KubevirtConfig | None, after: KubevirtConfig | None) -> None:
        fleet.follow(key.name, after.spec if after else None)

    fleet = Fleet(
        Secrets(tools.client, secret_changed),
        limits=options.limits,
        clock=tools.clock,
        connect=connections_to_members(AGENT),
        observe=request_ended,
    )
    tools.informers.of(CONFIGS).tell(follow)
    tools.accompany(fleet)
    return fleet
