"""Joins seeing, deciding, converging and telling: a pass over everything, and one asset at a time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from virt_steward.catalog.report import asked_for, gate_is_installed, kind_is_installed
from virt_steward.controllers.autopilot.annotation_keys import EXCLUDED, ON_OPT_OUT
from virt_steward.controllers.autopilot.compliance import Compliance
from virt_steward.controllers.autopilot.converge import RenderedFrom, Task, converge
from virt_steward.controllers.autopilot.decide import Wanted, decide
from virt_steward.controllers.autopilot.optout import DELETE, KEEP, Leaving, part
from virt_steward.controllers.autopilot.overrides.exclusions import UnreadableExclusions
from virt_steward.controllers.autopilot.overrides.scope import Idle, Only, unmatched
from virt_steward.controllers.autopilot.tombstones import delete_tombstoned
from virt_steward.controllers.autopilot.verdicts import (
    AssetFailed,
    AssetSkipped,
    Broken,
    Held,
    LeftAlone,
    Waits,
    after_the_hco,
    until_claims_are_known,
)
from virt_steward.controllers.autopilot.watches import PLATFORM, AssetKey, PlatformKey
from virt_steward.kube.errors import Forbidden, NotServed, Refused, ServerError
from virt_steward.objects.identity import Kind
from virt_steward.runtime.outcomes import Done, RequeueAfter
from virt_steward.ssa.refusals import RefusedIntent

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterator
    from datetime import datetime

    from virt_steward.catalog.asset import Asset
    from virt_steward.controllers.autopilot.converge import Toolkit
    from virt_steward.controllers.autopilot.decide import AssetDecision
    from virt_steward.controllers.autopilot.observation import AutopilotObservation
    from virt_steward.controllers.autopilot.observe import AutopilotClusterView
    from virt_steward.controllers.autopilot.overrides.scope import Everything
    from virt_steward.controllers.autopilot.reporter import AutopilotReporter
    from virt_steward.controllers.autopilot.verdicts import Verdict
    from virt_steward.controllers.autopilot.watches import Watchlist
    from virt_steward.objects.identity import Ref
    from virt_steward.runtime.controller import Trigger
    from virt_steward.runtime.outcomes import Outcome


LEAVES_WITHIN = 5.0
"""Seconds until a look at something that was about to be gone."""
_LEAVING = ("definition is terminating", "is being terminated")


class AutopilotController:
    """One worker at a time takes the keys in order, so that assets come in the order of the catalog."""

    def __init__(
        self,
        view: AutopilotClusterView,
        watchlist: Watchlist,
        bench: Toolkit,
        reporter: AutopilotReporter,
        wake: Callable[[Hashable], None],
    ) -> None:
        self._view = view
        self._watchlist = watchlist
        self._bench = bench
        self._reporter = reporter
        self._wake = wake
        self._first, *self._others = view.catalog.assets
        self._compliance = Compliance(asset.name for asset in view.catalog.assets)
        self._hco_failed = ""
        self._begun: Everything | Only | None = None
        self._paused: set[str] = set()

    @property
    def triggers(self) -> tuple[Trigger[Any], ...]:
        return self._watchlist.triggers(self._view.stale)

    def look_at_everything(self) -> None:
        """Something has changed that concerns every asset."""
        self._view.stale()
        self._wake(PLATFORM)

    def definition_changed(self, crd: str) -> None:
        """What the server makes of an intent may have changed, though neither that nor the object did."""
        for asset in self._view.catalog.assets:
            kind = asset.object.kind
            if f"{kind.plural}.{kind.group}" == crd:
                self._bench.settled.forget_kind(kind)
                self._bench.reported.forget_kind(kind)
                self._wake(AssetKey(asset.name))

    async def reconcile(self, key: PlatformKey | AssetKey) -> Outcome:
        if isinstance(key, PlatformKey):
            self._view.stale()  # a pass trusts nothing that a missed event may have left behind
        seen = self._view.seen()
        if seen is None:
            self._rest(f"there is no HyperConverged {self._view.options.hco}")
            return Done()
        if isinstance(key, PlatformKey):
            return await self._pass(seen)
        if isinstance(seen.scope, Idle) or seen.scope != self._begun:  # a pass is due, which begins with the HCO
            return Done()
        asset = self._view.catalog.find(key.asset)
        return await self._look(asset, seen) if asset else Done()

    async def _pass(self, seen: AutopilotObservation) -> Outcome:
        again = RequeueAfter(self._view.options.period, "time for the next pass")
        self._say_what_is_wrong(seen)
        if isinstance(seen.scope, Idle):
            self._rest(seen.scope.why)
            return again
        if why := self._view.undetected():
            self._reporter.undetected(seen.hco, why)
        self._reporter.active()
        self._compliance.begin()
        if not isinstance(seen.exclusions, UnreadableExclusions):
            await delete_tombstoned(self._bench.client, self._view, self._reporter, seen)
        try:
            sooner = await self._look(self._first, seen)
        finally:
            self._begun = seen.scope
            for asset in self._others:
                self._wake(AssetKey(asset.name))
        return sooner if isinstance(sooner, RequeueAfter) and sooner.seconds < again.seconds else again

    def _refs(self) -> Iterator[Ref]:
        """All objects that the catalog makes or buries."""
        yield from (self._view.ref(asset) for asset in self._view.catalog.assets)
        yield from (stone.ref for stone in self._view.catalog.tombstones)

    def _rest(self, why: str) -> None:
        self._begun = None
        self._compliance.rest()
        self._reporter.idle(why)
        for asset in self._view.catalog.assets:
            self._reporter.gauges.forget(self._view.ref(asset))
            self._reporter.not_asked_for(asset.name)
        for stone in self._view.catalog.tombstones:
            self._reporter.gauges.forget_tombstone(stone.ref)

    async def _look(self, asset: Asset, seen: AutopilotObservation) -> Outcome:
        """See to one asset. What fails is said, and tried again by the queue, later each time."""
        now, began = self._bench.clock.utc(), self._bench.clock.now()
        ref = self._view.ref(asset)
        sighted = self._view.sighted(asset.name)
        self._notice_resume(asset)
        decision = decide(asset, seen, sighted, self._bench.renderer, now)
        self._reporter.overrides(ref, decision.overrides)
        self._reporter.pause(seen.hco, ref, sighted)
        self._reporter.remarks(seen.hco, ref, decision.remarks)
        self._say_what_is_missing(asset, seen, decision)
        try:
            verdict = await self._verdict(asset, decision, seen)
        except NotServed as error:  # until a moment ago it was, so discovery will tell soon
            verdict = LeftAlone(AssetSkipped.NO_KIND, str(error))
        except (Refused, RefusedIntent, ServerError) as error:  # the last also if a webhook does not answer
            if not is_leaving(error):
                self._concluded(asset, seen, AssetFailed(Broken.APPLY, str(error)))
                raise
            verdict = Waits(Held.LEAVING, str(error), LEAVES_WITHIN)
        finally:
            self._reporter.gauges.looked(asset.name, ref, self._bench.clock.now() - began)
        self._concluded(asset, seen, verdict)
        return _next(verdict, decision.until, now)

    async def _verdict(self, asset: Asset, decision: AssetDecision, seen: AutopilotObservation) -> Verdict:
        sighted, ref = self._view.sighted(asset.name), self._view.ref(asset)
        if sighted and isinstance(decision.outcome, LeftAlone):
            leaving = Leaving(asset, ref, sighted, decision.outcome)
            await part(self._bench.client, self._reporter, leaving, seen, self._view.catalog.assets)
        if not isinstance(decision.outcome, Wanted):
            return decision.outcome
        if self._hco_failed and asset is not self._first:
            return after_the_hco(self._hco_failed)
        if why := self._view.unreadable(asset.name):
            return AssetFailed(Broken.APPLY, f"the live object cannot be read: {why}")
        if self._view.is_governed(asset) and (why := self._view.unknown_claims()):
            return until_claims_are_known(why)
        governed = self._view.governed(asset)
        if governed.paths:
            self._reporter.governed(seen.hco, ref, governed)
        wanted = decision.outcome
        work = Task(wanted, sighted, governed, wanted.intent, _made_from(asset, seen))
        return await converge(self._bench, work)

    def _concluded(self, asset: Asset, seen: AutopilotObservation, verdict: Verdict) -> None:
        if asset is self._first:
            before, self._hco_failed = self._hco_failed, verdict.why if isinstance(verdict, AssetFailed) else ""
            if before and not self._hco_failed:
                self._wake(PLATFORM)
        self._reporter.verdict(seen.hco, asset.name, self._view.ref(asset), verdict)
        if reached := self._compliance.concluded(asset.name, verdict, self._bench.clock.utc()):
            self._reporter.succeeded(seen.hco, reached)

    def _notice_resume(self, asset: Asset) -> None:
        """Whoever removes the mark of a pause gets a fresh start."""
        sighted = self._view.sighted(asset.name)
        if sighted and sighted.is_paused:
            self._paused.add(asset.name)
        elif asset.name in self._paused:
            self._paused.discard(asset.name)
            self._bench.wars.resumed(self._view.ref(asset))

    def _say_what_is_missing(self, asset: Asset, seen: AutopilotObservation, decision: AssetDecision) -> None:
        target = asset.object
        match decision.outcome:
            case LeftAlone(AssetSkipped.NO_KIND) if asked_for(asset, seen.look):
                self._reporter.missing(seen.hco, asset.name, target.kind, target.version)
            case LeftAlone(AssetSkipped.NO_GATE) if asked_for(asset, seen.look):
                self._reporter.missing(seen.hco, asset.name, *self._gate(asset))
            case _ if kind_is_installed(asset, seen.look) is None and gate_is_installed(asset, seen.look) is None:
                self._reporter.not_missing(seen.hco, asset.name)
            case _:
                self._reporter.not_asked_for(asset.name)

    def _gate(self, asset: Asset) -> tuple[Kind, str]:
        """The kind that the asset waits for, as the catalog calls it elsewhere: what is not there cannot tell."""
        plural, _, group = asset.gate_crd.partition(".")
        for other in self._view.catalog.assets:
            if (other.object.kind.group, other.object.kind.plural) == (group, plural):
                return other.object.kind, other.object.version
        return Kind(group, plural, plural), ""

    def _say_what_is_wrong(self, seen: AutopilotObservation) -> None:
        """The HyperConverged's own annotations, where they cannot be followed to the letter."""
        if isinstance(seen.scope, Idle) and seen.scope.typo:
            self._reporter.warned(seen.hco, "LikelyTypo", seen.scope.why)
        if isinstance(seen.scope, Only):
            for name in unmatched(seen.scope.names, self._view.catalog.assets):
                self._reporter.warned(seen.hco, "UnknownAsset", f"no asset and no group is called {name!r}")
        if (policy := seen.look.context.hco.annotations.get(ON_OPT_OUT, KEEP)) not in (KEEP, DELETE):
            why = f"{ON_OPT_OUT} is {policy[:40]!r}: only {DELETE!r} means something, so nothing is deleted"
            self._reporter.warned(seen.hco, "InvalidOptOut", why)
        if isinstance(seen.exclusions, UnreadableExclusions):
            why = f"nothing is written before {EXCLUDED} can be read: {seen.exclusions.why}"
            self._reporter.warned(seen.hco, "InvalidExclusions", why)
            return
        for rule in seen.exclusions.unmatched(self._refs()):
            self._reporter.warned(seen.hco, "ExclusionMatchesNothing", f"{EXCLUDED}: {rule} matches no asset's object")


def _made_from(asset: Asset, seen: AutopilotObservation) -> RenderedFrom | None:
    read = asset.reads_itself
    return RenderedFrom(read, seen.look.context.objects[read.ref]) if read else None


def is_leaving(error: Exception) -> bool:
    """Whether the kind or the namespace is just being removed: nobody need hear of that as a failure."""
    return isinstance(error, Forbidden) and any(words in str(error) for words in _LEAVING)


def _next(verdict: Verdict, until: datetime | None, now: datetime) -> Outcome:
    if isinstance(verdict, Waits) and verdict.retry_in is not None:
        return RequeueAfter(verdict.retry_in, verdict.why)
    if until is not None:
        return RequeueAfter(max((until - now).total_seconds(), 0.1), "an override ends then")
    return Done()
