"""What the advisor would have in its caches, asked for once."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from random import Random
from typing import TYPE_CHECKING, Any

from virt_steward.catalog.sources import MACHINE_CONFIGS
from virt_steward.controllers.advisor.freshness import Freshness
from virt_steward.controllers.advisor.observe import Outlook
from virt_steward.controllers.advisor.profiles import profiles, schemas_of
from virt_steward.controllers.advisor.watches import CONFIGS, TargetSources
from virt_steward.kube.backoff import Backoff
from virt_steward.plans.pools import POOLS
from virt_steward.runtime.clock import SystemClock
from virt_steward.runtime.informers import Borrowed, Informers
from virt_steward.runtime.kinds import DEFINITIONS
from virt_steward.runtime.schemas import Schemas

if TYPE_CHECKING:
    from virt_steward.controllers.advisor.options import Options
    from virt_steward.kube.client import Reader
    from virt_steward.runtime.informer import Source

PATIENCE = 10.0
"""Seconds for the schemas of a few definitions."""


async def look(reader: Reader, options: Options) -> Outlook:
    """The advisor's outlook, filled once. Raises what the server refuses."""
    known = profiles(options)
    informers = Informers(reader, ())
    sources = TargetSources(known, options.hco)
    schemas = Schemas(reader, informers.of(DEFINITIONS), schemas_of(known), Backoff(Random()))  # noqa: S311 - jitter
    read: tuple[Source[Any], ...] = (CONFIGS, MACHINE_CONFIGS, POOLS, *sources.by_ref.values())
    for source in read:
        informers.of(source)
    await reader.discovery.refresh()
    await asyncio.gather(*(informer.list_once() for informer in informers))
    async with asyncio.TaskGroup() as beside:
        fetching = beside.create_task(schemas.run())
        with suppress(TimeoutError):  # what could not be read is said by whoever needs it
            async with asyncio.timeout(PATIENCE):
                await schemas.settled()
        fetching.cancel()
    return Outlook(Borrowed(informers), sources, schemas, reader.discovery, Freshness(SystemClock()), options)
