"""The placement as the manager knows it: its rights, and how it is put together."""

from __future__ import annotations

from functools import partial
from random import Random
from typing import TYPE_CHECKING

from virt_steward import __version__
from virt_steward.apis.kubevirtconfig import KUBEVIRT_CONFIG
from virt_steward.controllers.placement.assignments import Assignments
from virt_steward.controllers.placement.capacity import CapacityCache
from virt_steward.controllers.placement.clusters import ClusterStatusWriter
from virt_steward.controllers.placement.fleet import LONGEST_ANSWER, Fleet
from virt_steward.controllers.placement.observation import MACHINE
from virt_steward.controllers.placement.observe import PlacementClusterView
from virt_steward.controllers.placement.pending import PendingMachines
from virt_steward.controllers.placement.reconcile import PlacementController, Placer
from virt_steward.controllers.placement.reporter import PlacementReporter
from virt_steward.controllers.placement.schema import DEFINITION as MACHINE_DEFINITION
from virt_steward.controllers.placement.schema import MachineSchema
from virt_steward.controllers.placement.search import Search
from virt_steward.controllers.placement.secrets import Secrets
from virt_steward.controllers.placement.watches import CONFIGS, MACHINES, ClusterKey, PlacementEventHandlers
from virt_steward.kube.connection import Connection, unobserved
from virt_steward.kube.discovery import CUSTOM_RESOURCE_DEFINITION
from virt_steward.runtime.access import PATCH, READ, SECRET, WATCH, Access, Grant, Reach
from virt_steward.runtime.controller import ControllerDefinition
from virt_steward.runtime.kinds import DEFINITIONS

if TYPE_CHECKING:
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
        Grant(
            CUSTOM_RESOURCE_DEFINITION, READ, "to know if machines have conditions", names=(MACHINE_DEFINITION.name,)
        ),
    ),
)


def definition(options: PlacementOptions) -> ControllerDefinition:
    return ControllerDefinition(NAME, ACCESS, partial(_build, options=options), concurrency=10)


def _build(tools: Toolbox, options: PlacementOptions) -> PlacementController:
    clock = tools.clock
    waiting, ledger = PendingMachines(clock), Assignments()
    reporter = PlacementReporter(tools.recorder, clock, tools.registry)
    handlers = PlacementEventHandlers(tools.store(MACHINES), waiting.woken)
    fleet = _fleet(tools, options, handlers, reporter)
    tools.informers.of(MACHINES).tell(ledger.take)
    rooms = CapacityCache(fleet, tools.store(CONFIGS), ledger, clock, lasting=options.probe_interval)
    view = PlacementClusterView(tools.store(MACHINES), tools.store(CONFIGS), fleet, ledger, options.rules, rooms)
    placer = Placer(
        client=tools.client,
        view=view,
        fleet=fleet,
        search=Search(fleet, options.patience, clock, reporter.searched),
        waiting=waiting,
        schema=MachineSchema(tools.client, tools.store(DEFINITIONS)),
        reporter=reporter,
        clock=clock,
        options=options,
    )
    status_writer = ClusterStatusWriter(
        client=tools.client,
        view=view,
        fleet=fleet,
        waiting=waiting,
        reporter=reporter,
        wake=tools.wake,
        interval=options.probe_interval,
        clock=clock,
        rng=Random(),  # noqa: S311 - jitter
    )
    _forget_what_goes(tools, placer, status_writer)
    return PlacementController(handlers, placer, status_writer)


def _forget_what_goes(tools: Toolbox, placer: Placer, reporter: ClusterStatusWriter) -> None:
    """Also while another process leads, when nothing is reconciled here."""

    def machine_seen(key: Key, _before: Machine | None, after: Machine | None) -> None:
        if after is None:
            placer.waits_no_more(key)

    def config_seen(key: Key, _before: KubevirtConfig | None, after: KubevirtConfig | None) -> None:
        if after is None:
            reporter.forget(key.name)

    tools.informers.of(MACHINES).tell(machine_seen)
    tools.informers.of(CONFIGS).tell(config_seen)


def _fleet(
    tools: Toolbox, options: PlacementOptions, handlers: PlacementEventHandlers, reporter: PlacementReporter
) -> Fleet:
    """Clients of all clusters, which follow the configs whether or not we lead."""

    def changed(config: str) -> None:
        for key in handlers.by_cluster(config):
            tools.wake(key)

    def asked(config: str, seconds: float, *, answered: bool) -> None:
        reporter.asked(config, seconds, answered=answered)
        if not answered:  # nobody need wait for the next look to hear of it
            tools.wake(ClusterKey(config))

    def follow(key: Key, _before: KubevirtConfig | None, after: KubevirtConfig | None) -> None:
        fleet.follow(key.name, after.spec if after else None)

    fleet = Fleet(
        Secrets(tools.client, changed),
        limits=options.limits,
        clock=tools.clock,
        connect=partial(Connection, user_agent=AGENT, observe=unobserved, longest_answer=LONGEST_ANSWER),
        observe=asked,
    )
    tools.informers.of(CONFIGS).tell(follow)
    tools.accompany(fleet)
    return fleet
