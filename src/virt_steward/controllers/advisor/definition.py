"""The advisor as the manager knows it: its rights, and how it is put together."""

from __future__ import annotations

from functools import partial
from random import Random
from typing import TYPE_CHECKING

from virt_steward.controllers.advisor.access import NAME, access_for
from virt_steward.controllers.advisor.freshness import Freshness
from virt_steward.controllers.advisor.observe import Outlook
from virt_steward.controllers.advisor.profiles import profiles, schemas_of
from virt_steward.controllers.advisor.reconcile import AdvisorController
from virt_steward.controllers.advisor.tell import Teller
from virt_steward.controllers.advisor.watches import CONFIGS, TargetSources, Wakes
from virt_steward.kube.backoff import Backoff
from virt_steward.runtime.controller import Definition
from virt_steward.runtime.kinds import DEFINITIONS, KindNews
from virt_steward.runtime.schemas import Schemas

if TYPE_CHECKING:
    from collections.abc import Sequence

    from virt_steward.controllers.advisor.options import Options
    from virt_steward.controllers.advisor.profiles.profile import Profile
    from virt_steward.runtime.controller import Tools


def definition(options: Options) -> Definition:
    known = profiles(options)
    return of_profiles(known, options)


def of_profiles(known: Sequence[Profile], options: Options) -> Definition:
    """The advisor for just these profiles."""
    return Definition(NAME, access_for(known, options), partial(_build, known=known, options=options), concurrency=2)


def _build(tools: Tools, known: Sequence[Profile], options: Options) -> AdvisorController:
    discovery = tools.client.discovery
    backoff = Backoff(Random())  # noqa: S311 - jitter
    schemas = Schemas(tools.client, tools.informers.of(DEFINITIONS), schemas_of(known), backoff)
    sources = TargetSources(known, options.hco)
    wakes = Wakes(known, sources, tools.store(CONFIGS))
    freshness = Freshness(tools.clock)
    outlook = Outlook(tools.informers, sources, schemas, discovery, freshness, options, tools.notify.endpoints)

    def wake_all() -> None:
        for key in wakes.awake():
            tools.wake(key)

    schemas.tell(lambda _crd: wake_all())
    tools.accompany(schemas)
    tools.accompany(KindNews(discovery, wake_all))
    teller = Teller(tools.recorder, tools.notify, tools.clock, tools.registry)
    return AdvisorController(tools.client, outlook, wakes, teller, tools.clock)
