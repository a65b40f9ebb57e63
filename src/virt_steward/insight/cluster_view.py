"""The advisor's view of a cluster, read once instead of watched."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from random import Random
from typing import TYPE_CHECKING, Any

from virt_steward.controllers.advisor.observe import AdvisorClusterView, OwnWrites
from virt_steward.controllers.advisor.profiles import profiles, schemas_of
from virt_steward.controllers.advisor.watches import CONFIGS, TargetSources
from virt_steward.holds.installation import freezes_in
from virt_steward.kube.backoff import RetryBackoff
from virt_steward.kube.errors import Forbidden
from virt_steward.platform.sources import MACHINE_CONFIGS, POOLS
from virt_steward.runtime.clock import SystemClock
from virt_steward.runtime.informers import Informers, InformerView
from virt_steward.runtime.kinds import DEFINITIONS
from virt_steward.runtime.schemas import Schemas

if TYPE_CHECKING:
    from virt_steward.controllers.advisor.options import AdvisorOptions
    from virt_steward.kube.client import Reader
    from virt_steward.runtime.informer import Source

PATIENCE = 10.0
"""Seconds for the schemas of a few definitions."""


async def read_advisor_view(reader: Reader, options: AdvisorOptions) -> AdvisorClusterView:
    """Fill the advisor's view. Raises the errors of the API server."""
    known = profiles(options)
    informers = Informers(reader, ())
    sources = TargetSources(known, options.hco)
    schemas = Schemas(reader, informers.of(DEFINITIONS), schemas_of(known), RetryBackoff(Random()))  # noqa: S311 - jitter
    read: tuple[Source[Any], ...] = (CONFIGS, MACHINE_CONFIGS, POOLS, *sources.by_ref.values())
    for source in read:
        informers.of(source)
    await reader.discovery.refresh()
    await asyncio.gather(*(informer.list_once() for informer in informers))
    with suppress(Forbidden):  # what this person may not read says nothing about the advisor
        for informer in informers.of(freezes_in(options.namespace)).informers:
            await informer.list_once()
    async with asyncio.TaskGroup() as beside:
        fetching = beside.create_task(schemas.run())
        with suppress(TimeoutError):  # a profile that needs a missing schema reports that itself
            async with asyncio.timeout(PATIENCE):
                await schemas.settled()
        fetching.cancel()
    return AdvisorClusterView(
        InformerView(informers), sources, schemas, reader.discovery, OwnWrites(SystemClock()), options
    )
