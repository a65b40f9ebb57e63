"""What the autopilot would decide on each asset: its own stores, filled by one list each, and its own rules."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import msgspec

from virt_steward.catalog.offline import offline
from virt_steward.catalog.render import Renderer
from virt_steward.controllers.autopilot.asset_report import report_all
from virt_steward.controllers.autopilot.decide import Wanted, decide
from virt_steward.controllers.autopilot.observation import AutopilotObservation
from virt_steward.controllers.autopilot.observe import AutopilotClusterView, AutopilotStores
from virt_steward.controllers.autopilot.overrides.exclusions import UnreadableExclusions
from virt_steward.controllers.autopilot.overrides.governed import NothingLeft, without_governed
from virt_steward.controllers.autopilot.overrides.mask import masked
from virt_steward.controllers.autopilot.overrides.scope import Idle
from virt_steward.controllers.autopilot.watches import Watchlist, ref_of_asset
from virt_steward.insight.reading import listed_if_served
from virt_steward.kube.discovery import CUSTOM_RESOURCE_DEFINITION
from virt_steward.kube.errors import NotFound
from virt_steward.objects.checks import CheckResult
from virt_steward.objects.coverage import lacking
from virt_steward.objects.diff import ABSENT
from virt_steward.objects.errors import UserError
from virt_steward.objects.identity import Key, Ref, Regarding
from virt_steward.objects.masks import masked as hidden
from virt_steward.objects.paths import get, has
from virt_steward.objects.schemafacts import CrdDefinition, facts_of
from virt_steward.platform.hco import HYPERCONVERGED
from virt_steward.ssa.drift_entries import drift_entry
from virt_steward.ssa.managers import AUTOPILOT

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from datetime import datetime

    from virt_steward.catalog.asset import Asset
    from virt_steward.catalog.load import Catalog
    from virt_steward.controllers.autopilot.asset_report import AssetReport
    from virt_steward.controllers.autopilot.decide import AssetDecision
    from virt_steward.controllers.autopilot.options import AutopilotOptions
    from virt_steward.kube.client import Reader
    from virt_steward.objects.paths import Pointer
    from virt_steward.objects.schemafacts import SchemaFacts
    from virt_steward.runtime.informer import Source
    from virt_steward.runtime.store import Store

Object = dict[str, Any]


class NoPlatform(UserError):
    """There is no HyperConverged, so the autopilot has nothing to manage."""


@dataclass(frozen=True, slots=True)
class AssetRendition:
    """What would be applied, asset by asset."""

    reports: tuple[AssetReport, ...]
    idle: str
    """Why nothing is applied; empty while the autopilot is on."""
    held: str
    """Why nothing may be written at all; empty if it may."""


@dataclass(frozen=True, slots=True)
class Survey:
    """A cluster at one moment, as the controller would observe it."""

    view: AutopilotClusterView
    seen: AutopilotObservation
    renderer: Renderer
    now: datetime
    lives: Mapping[str, Object]
    """The assets' objects that exist, by asset."""

    def decision(self, asset: Asset) -> AssetDecision:
        return decide(asset, self.seen, self.view.live_summary(asset.name), self.renderer, self.now)

    def live(self, asset: Asset) -> Object | None:
        """Return the whole object; in a list, servers omit apiVersion and kind of the items."""
        found = self.lives.get(asset.name)
        if found is None:
            return None
        api_version = asset.object.api_version
        return {"apiVersion": api_version, "kind": asset.object.kind.name, **found}


async def survey(reader: Reader, catalog: Catalog, options: AutopilotOptions, now: datetime) -> Survey:
    """List all that the controller watches. Raises NoPlatform."""
    lives: dict[str, Object] = {}
    watchlist = Watchlist(catalog, options.hco, options.namespace)
    if not len(await listed_if_served(reader, watchlist.hco)):
        raise NoPlatform(f"there is no HyperConverged {options.hco}: the autopilot has nothing to manage")
    sources = {source: source for source in watchlist.around}
    sources |= {source: _keeping(source, lives, name) for name, source in watchlist.managed.items()}
    found = await asyncio.gather(*(listed_if_served(reader, source) for source in sources.values()))
    stores: dict[Source[Any], Store[Any]] = dict(zip(sources, found, strict=True))
    stores[watchlist.freezes].denied.clear()  # what this user may not read says nothing about the controller
    facts = _KnownSchemas(await _facts(reader, catalog))
    view = AutopilotClusterView(
        AutopilotStores.of(watchlist, stores.__getitem__), facts, reader.discovery, catalog, options
    )
    seen = view.seen()
    if seen is None:
        raise NoPlatform(f"the HyperConverged {options.hco} was deleted, or cannot be read")
    return Survey(view, seen, Renderer(catalog), now, lives)


async def render_online(reader: Reader, catalog: Catalog, options: AutopilotOptions, now: datetime) -> AssetRendition:
    """Report what the autopilot of this cluster would apply. Raises NoPlatform."""
    found = await survey(reader, catalog, options, now)
    return _rendition(found.seen, report_all(found.seen, found.view.live_summary, found.renderer, now))


def render_offline(text: str, catalog: Catalog, options: AutopilotOptions, now: datetime) -> AssetRendition:
    """Report what the autopilot would apply to the cluster that a file describes. Raises BadFile."""
    known = offline(text, catalog, options.images, options.namespace)
    hco = known.context.hco
    key = Key(hco.namespace, hco.name)
    namespaces = frozenset(ref_of_asset(asset, key).key.namespace for asset in catalog.assets)
    seen = AutopilotObservation.of(
        Regarding(Ref(HYPERCONVERGED, key), hco.api_version, ""),
        known.context,
        known.served,
        namespaces,
        options.activation,
    )
    return _rendition(seen, report_all(seen, lambda _: None, Renderer(catalog), now))


def _rendition(seen: AutopilotObservation, found: tuple[AssetReport, ...]) -> AssetRendition:
    idle = seen.scope.why if isinstance(seen.scope, Idle) else ""
    held = seen.exclusions.why if isinstance(seen.exclusions, UnreadableExclusions) else ""
    return AssetRendition(found, idle, held)


def _keeping(source: Source[Any], lives: dict[str, Object], asset: str) -> Source[Any]:
    """Return the same source, which also keeps the whole object.

    The user must be allowed to read it: unlike the controller, a command cannot report later that it was denied.
    """
    decode: Callable[[bytes], Any] = source.decode

    def kept(raw: bytes) -> Any:
        lives[asset] = msgspec.json.decode(raw)
        return decode(raw)

    return replace(source, decode=kept, may_be_denied=False)


@dataclass(frozen=True, slots=True)
class _KnownSchemas:
    known: Mapping[str, SchemaFacts | None]

    def facts(self, crd: str) -> SchemaFacts | None:
        return self.known[crd]

    async def refresh(self, crd: str) -> None:
        """Do nothing: it was read a moment ago, and nothing is written."""


async def _facts(reader: Reader, catalog: Catalog) -> dict[str, SchemaFacts | None]:
    wanted = catalog.needs.schemas

    async def one(crd: str) -> SchemaFacts | None:
        try:
            definition = await reader.get(Ref(CUSTOM_RESOURCE_DEFINITION, Key("", crd)), CrdDefinition)
        except NotFound:
            return None
        return facts_of(definition.schema, wanted[crd])

    return dict(zip(wanted, await asyncio.gather(*(one(crd) for crd in wanted)), strict=True))


@dataclass(frozen=True, slots=True)
class AssetTargetState:
    """What would be sent of an asset's object, after masks and governed fields, and how far the live object is off."""

    intent: Object | None = None
    """None: nothing would be sent."""
    checks: tuple[CheckResult, ...] = ()
    differences: tuple[str, ...] = ()
    """What the live object lacks of the intent, as JSON pointers."""
    message: str = ""
    """The differences in words; empty if there are none."""


def target_state(survey: Survey, asset: Asset) -> AssetTargetState:
    """Follow the controller up to where it would ask the server."""
    wanted, live = survey.decision(asset).outcome, survey.live(asset)
    if not isinstance(wanted, Wanted):
        return AssetTargetState()
    if live is None:
        return AssetTargetState(wanted.intent)
    kept = masked(wanted.intent, live, AUTOPILOT, wanted.mask)
    left = without_governed(kept.intent, live, survey.view.governed(asset))
    checks = tuple(CheckResult("Ignored field kept", "pass", note) for note in kept.notes)
    if isinstance(left, NothingLeft):
        governed = CheckResult("Fields left to manage", "fail", left.message, decided=True)
        return AssetTargetState(checks=(*checks, governed))
    found = tuple(lacking(left, live))
    message = "; ".join(_difference(pointer, left, live) for pointer in found)
    in_sync = CheckResult("Live object in sync", "fail" if found else "pass", message)
    return AssetTargetState(left, (*checks, in_sync), tuple(map(str, found)), message)


def _difference(pointer: Pointer, intent: Object, live: Object) -> str:
    """The same words as in the event of a drift; secrets are masked."""
    shown, planned = hidden(live), hidden({**intent, "kind": live["kind"], "apiVersion": live["apiVersion"]})
    found = get(shown, pointer) if has(shown, pointer) else ABSENT
    return drift_entry(live, pointer, found, get(planned, pointer), AUTOPILOT).sentence("should be")
