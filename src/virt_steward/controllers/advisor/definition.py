"""The advisor as the manager knows it: its rights, and how it is put together."""

from __future__ import annotations

from functools import partial
from random import Random
from typing import TYPE_CHECKING

from virt_steward.controllers.advisor.access import NAME, access_for
from virt_steward.controllers.advisor.observe import AdvisorClusterView
from virt_steward.controllers.advisor.own_writes import OwnWrites
from virt_steward.controllers.advisor.profiles import profiles, schemas_of
from virt_steward.controllers.advisor.reconcile import AdvisorController
from virt_steward.controllers.advisor.reporter import AdvisorReporter
from virt_steward.controllers.advisor.watches import CONFIGS, AdvisorEventHandlers, TargetSources
from virt_steward.kube.backoff import RetryBackoff
from virt_steward.runtime.controller import ControllerDefinition
from virt_steward.runtime.kinds import DEFINITIONS, CrdChanges
from virt_steward.runtime.schemas import Schemas

if TYPE_CHECKING:
    from collections.abc import Sequence

    from virt_steward.controllers.advisor.options import AdvisorOptions
    from virt_steward.controllers.advisor.profiles.profile import Profile
    from virt_steward.runtime.controller import Toolbox


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
    view = AdvisorClusterView(tools.informers, sources, schemas, discovery, freshness, options, tools.notify.endpoints)

    def wake_all() -> None:
        for key in handlers.awake():
            tools.wake(key)

    schemas.tell(lambda _crd: wake_all())
    tools.accompany(schemas)
    tools.accompany(CrdChanges(discovery, wake_all))
    reporter = AdvisorReporter(tools.recorder, tools.notify, tools.clock, tools.registry)
    return AdvisorController(tools.client, view, handlers, reporter, tools.clock)
