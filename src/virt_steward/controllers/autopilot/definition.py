"""The autopilot as the manager knows it: its rights, and how it is built."""

from __future__ import annotations

from functools import partial
from random import Random
from typing import TYPE_CHECKING

from virt_steward.catalog.load import load
from virt_steward.catalog.render import Renderer
from virt_steward.controllers.autopilot import REPORTER
from virt_steward.controllers.autopilot.access import access
from virt_steward.controllers.autopilot.converge import Toolkit
from virt_steward.controllers.autopilot.debug_pages import pages
from virt_steward.controllers.autopilot.metrics import AutopilotMetrics
from virt_steward.controllers.autopilot.notifications import notification_rules
from virt_steward.controllers.autopilot.observe import AutopilotClusterView, AutopilotStores
from virt_steward.controllers.autopilot.reconcile import AutopilotController
from virt_steward.controllers.autopilot.reporter import AutopilotReporter
from virt_steward.controllers.autopilot.rollouts.ledger import StagingLedger
from virt_steward.controllers.autopilot.tls_profile import follow_tls_profile
from virt_steward.controllers.autopilot.watches import SchemaChanges, Watchlist
from virt_steward.holds.gate_board import GateBoard
from virt_steward.holds.installation import follow_freeze
from virt_steward.kube.backoff import RetryBackoff
from virt_steward.runtime.controller import ControllerDefinition
from virt_steward.runtime.kinds import DEFINITIONS, CrdChanges
from virt_steward.runtime.schemas import Schemas

if TYPE_CHECKING:
    from virt_steward.catalog.load import Catalog
    from virt_steward.controllers.autopilot.options import AutopilotOptions
    from virt_steward.runtime.controller import Toolbox

NAME = "autopilot"


def definition(options: AutopilotOptions, catalog: Catalog | None = None) -> ControllerDefinition:
    """Define the controller, with the shipped catalog unless another is given."""
    catalog = catalog or load()
    build = partial(_build, options=options, catalog=catalog)
    # One worker: assets come in the order of the catalog, and no asset is reconciled twice at a time.
    return ControllerDefinition(
        NAME,
        access(NAME, catalog, options.hco, options.gates),
        build,
        concurrency=1,
        reporter=REPORTER,
        notifications=notification_rules(catalog, options.hco),
    )


def _build(tools: Toolbox, options: AutopilotOptions, catalog: Catalog) -> AutopilotController:
    rng = Random()  # noqa: S311 - jitter
    watchlist = Watchlist(catalog, options.hco, options.namespace)
    definitions = tools.informers.of(DEFINITIONS)
    schemas = Schemas(tools.client, definitions, catalog.needs.schemas, RetryBackoff(rng))
    stores = AutopilotStores.of(watchlist, tools.store)
    view = AutopilotClusterView(stores, schemas, tools.client.discovery, catalog, options)
    ledger = StagingLedger(tools.client, stores.staging, options.hco, tools.clock)
    tools.when_leading(ledger.begin)
    gates = GateBoard(tools.client, options.gates, tools.clock)
    toolkit = Toolkit.of(tools.client, Renderer(catalog), ledger, gates, tools.clock)
    reporter = AutopilotReporter(tools.recorder, AutopilotMetrics(tools.registry), tools.clock)
    for path, page in pages(view, toolkit.renderer, reporter.corrections, tools.clock).items():
        tools.show(path, page)
    controller = AutopilotController(view, watchlist, toolkit, reporter, tools.wake)
    follow_tls_profile(tools, watchlist, stores)
    schemas.tell(controller.handle_facts_change)
    tools.accompany(schemas)
    tools.accompany(CrdChanges(tools.client.discovery, controller.reconcile_everything))
    follow_freeze(tools, options.namespace, NAME, controller.reconcile_everything)
    tools.accompany(SchemaChanges(definitions, tools.clock, controller.handle_schema_change))
    return controller
