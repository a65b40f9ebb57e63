"""The autopilot as the manager knows it: its rights, and how it is put together."""

from __future__ import annotations

from functools import partial
from random import Random
from typing import TYPE_CHECKING

from virt_steward.catalog.load import load
from virt_steward.catalog.render import Renderer
from virt_steward.controllers.autopilot import REPORTER
from virt_steward.controllers.autopilot.access import access
from virt_steward.controllers.autopilot.baseline import Bench
from virt_steward.controllers.autopilot.definition_news import DefinitionNews
from virt_steward.controllers.autopilot.gauges import Gauges
from virt_steward.controllers.autopilot.observe import Outlook, Stores
from virt_steward.controllers.autopilot.pages import pages
from virt_steward.controllers.autopilot.reconcile import AutopilotController
from virt_steward.controllers.autopilot.tell import Teller
from virt_steward.controllers.autopilot.wars import Wars
from virt_steward.controllers.autopilot.watches import Watchlist
from virt_steward.kube.backoff import Backoff
from virt_steward.runtime.controller import Definition
from virt_steward.runtime.kinds import DEFINITIONS, KindNews
from virt_steward.runtime.schemas import Schemas
from virt_steward.ssa.memo import Memo

if TYPE_CHECKING:
    from virt_steward.catalog.load import Catalog
    from virt_steward.controllers.autopilot.options import Options
    from virt_steward.runtime.controller import Tools

NAME = "autopilot"


def definition(options: Options, catalog: Catalog | None = None) -> Definition:
    """With the shipped catalog, unless another is given."""
    catalog = catalog or load()
    build = partial(_build, options=options, catalog=catalog)
    # One worker: assets come in the order of the catalog, and nothing is looked at twice at a time.
    return Definition(NAME, access(NAME, catalog, options.hco), build, concurrency=1, reporter=REPORTER)


def _build(tools: Tools, options: Options, catalog: Catalog) -> AutopilotController:
    rng = Random()  # noqa: S311 - jitter
    watchlist = Watchlist(catalog, options.hco)
    definitions = tools.informers.of(DEFINITIONS)
    schemas = Schemas(tools.client, definitions, catalog.needs.schemas, Backoff(rng))
    outlook = Outlook(Stores.of(watchlist, tools.store), schemas, tools.client.discovery, catalog, options)
    bench = Bench(tools.client, Renderer(catalog), Memo(rng), Memo(rng), Wars(), tools.clock)
    teller = Teller(tools.recorder, Gauges(tools.registry), tools.clock)
    for path, page in pages(outlook, bench.renderer, tools.clock).items():
        tools.show(path, page)
    controller = AutopilotController(outlook, watchlist, bench, teller, tools.wake)
    schemas.tell(lambda _crd: controller.look_at_everything())
    tools.accompany(schemas)
    tools.accompany(KindNews(tools.client.discovery, controller.look_at_everything))
    tools.accompany(DefinitionNews(definitions, tools.clock, controller.definition_changed))
    return controller
