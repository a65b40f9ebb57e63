"""What the autopilot wants of each asset and why, asked once: filled into its own stores, judged by its own rules."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import msgspec

from virt_steward.catalog.offline import offline
from virt_steward.catalog.render import Renderer
from virt_steward.controllers.autopilot.asset_report import lines
from virt_steward.controllers.autopilot.decide import decide
from virt_steward.controllers.autopilot.observation import AutopilotObservation
from virt_steward.controllers.autopilot.observe import AutopilotClusterView, AutopilotStores
from virt_steward.controllers.autopilot.overrides.exclusions import UnreadableExclusions
from virt_steward.controllers.autopilot.overrides.scope import Idle
from virt_steward.controllers.autopilot.watches import Watchlist, ref_of_asset
from virt_steward.insight.reading import listed_if_served
from virt_steward.kube.discovery import CUSTOM_RESOURCE_DEFINITION
from virt_steward.kube.errors import NotFound
from virt_steward.objects.errors import UserError
from virt_steward.objects.identity import Key, Ref, Regarding
from virt_steward.objects.schemafacts import CrdDefinition, facts_of
from virt_steward.platform.hco import HYPERCONVERGED

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from datetime import datetime

    from virt_steward.catalog.asset import Asset
    from virt_steward.catalog.load import Catalog
    from virt_steward.catalog.report import AssetReport
    from virt_steward.controllers.autopilot.decide import AssetDecision
    from virt_steward.controllers.autopilot.options import AutopilotOptions
    from virt_steward.kube.client import Reader
    from virt_steward.objects.schemafacts import SchemaFacts
    from virt_steward.runtime.informer import Source
    from virt_steward.runtime.store import Store

Object = dict[str, Any]


class NoPlatform(UserError):
    """There is nothing that the autopilot would look after: one line that says so."""


@dataclass(frozen=True, slots=True)
class AssetRendition:
    """What would be applied, asset by asset."""

    lines: tuple[AssetReport, ...]
    idle: str
    """Why nothing of it is; empty while the autopilot is on."""
    held: str
    """Why nothing may be written at all; empty if it may."""


@dataclass(frozen=True, slots=True)
class Survey:
    """A cluster at one moment, as the controller would see it."""

    view: AutopilotClusterView
    seen: AutopilotObservation
    renderer: Renderer
    now: datetime
    lives: Mapping[str, Object]
    """The assets' objects that are there, by asset."""

    def decision(self, asset: Asset) -> AssetDecision:
        return decide(asset, self.seen, self.view.sighted(asset.name), self.renderer, self.now)

    def live(self, asset: Asset) -> Object | None:
        """Return the object whole; in lists, servers leave out what is the same for all."""
        found = self.lives.get(asset.name)
        if found is None:
            return None
        api_version = asset.object.api_version
        return {"apiVersion": api_version, "kind": asset.object.kind.name, **found}


async def survey(reader: Reader, catalog: Catalog, options: AutopilotOptions, now: datetime) -> Survey:
    """Ask for all that the controller watches. Raises NoPlatform."""
    lives: dict[str, Object] = {}
    watchlist = Watchlist(catalog, options.hco)
    if not len(await listed_if_served(reader, watchlist.hco)):  # then there is nothing else to ask
        raise NoPlatform(f"there is no HyperConverged {options.hco}: the autopilot has nothing to look after")
    sources = {source: source for source in watchlist.around}
    sources |= {source: _keeping(source, lives, name) for name, source in watchlist.managed.items()}
    found = await asyncio.gather(*(listed_if_served(reader, source) for source in sources.values()))
    stores: dict[Source[Any], Store[Any]] = dict(zip(sources, found, strict=True))
    facts = _Facts(await _facts(reader, catalog))
    view = AutopilotClusterView(
        AutopilotStores.of(watchlist, stores.__getitem__), facts, reader.discovery, catalog, options
    )
    seen = view.seen()
    if seen is None:
        raise NoPlatform(f"the HyperConverged {options.hco} is gone, or cannot be read")
    return Survey(view, seen, Renderer(catalog), now, lives)


async def rendered(reader: Reader, catalog: Catalog, options: AutopilotOptions, now: datetime) -> AssetRendition:
    """Tell what the autopilot of this cluster would apply. Raises NoPlatform."""
    found = await survey(reader, catalog, options, now)
    return _rendition(found.seen, lines(found.seen, found.view.sighted, found.renderer, now))


def rendered_offline(text: str, catalog: Catalog, images: Mapping[str, str], now: datetime) -> AssetRendition:
    """Tell what the autopilot of a cluster that is a file would apply. Raises BadFile."""
    known = offline(text, catalog, images)
    hco = known.context.hco
    key = Key(hco.namespace, hco.name)
    namespaces = frozenset(ref_of_asset(asset, key).key.namespace for asset in catalog.assets)
    seen = AutopilotObservation.of(
        Regarding(Ref(HYPERCONVERGED, key), hco.api_version, ""), known.context, known.served, namespaces
    )
    return _rendition(seen, lines(seen, lambda _: None, Renderer(catalog), now))


def _rendition(seen: AutopilotObservation, found: tuple[AssetReport, ...]) -> AssetRendition:
    idle = seen.scope.why if isinstance(seen.scope, Idle) else ""
    held = seen.exclusions.why if isinstance(seen.exclusions, UnreadableExclusions) else ""
    return AssetRendition(found, idle, held)


def _keeping(source: Source[Any], lives: dict[str, Object], asset: str) -> Source[Any]:
    """The same source, which also puts what it decodes among the live objects.

    Whoever asks has to see these: unlike the controller, nobody would hear that one was taken for absent.
    """
    decode: Callable[[bytes], Any] = source.decode

    def kept(raw: bytes) -> Any:
        lives[asset] = msgspec.json.decode(raw)
        return decode(raw)

    return replace(source, decode=kept, may_be_denied=False)


@dataclass(frozen=True, slots=True)
class _Facts:
    known: Mapping[str, SchemaFacts | None]

    def facts(self, crd: str) -> SchemaFacts | None:
        return self.known[crd]


async def _facts(reader: Reader, catalog: Catalog) -> dict[str, SchemaFacts | None]:
    wanted = catalog.needs.schemas

    async def one(crd: str) -> SchemaFacts | None:
        try:
            definition = await reader.get(Ref(CUSTOM_RESOURCE_DEFINITION, Key("", crd)), CrdDefinition)
        except NotFound:
            return None
        return facts_of(definition.schema, wanted[crd])

    return dict(zip(wanted, await asyncio.gather(*(one(crd) for crd in wanted)), strict=True))
