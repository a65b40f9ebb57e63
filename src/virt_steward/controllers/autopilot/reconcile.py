"""Joins seeing, deciding, converging and telling: a pass over everything, and one asset at a time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from virt_steward.catalog.report import asked_for, gate_is_installed, kind_is_installed
from virt_steward.controllers.autopilot.baseline import Origin, Work, converge
from virt_steward.controllers.autopilot.burial import bury
from virt_steward.controllers.autopilot.compliance import Compliance
from virt_steward.controllers.autopilot.decide import Wanted, decide
from virt_steward.controllers.autopilot.marks import EXCLUDED, ON_OPT_OUT
from virt_steward.controllers.autopilot.optout import DELETE, KEEP, Leaving, part
from virt_steward.controllers.autopilot.overrides.exclusions import Unreadable
from virt_steward.controllers.autopilot.overrides.scope import Idle, Only, unmatched
from virt_steward.controllers.autopilot.verdicts import (
    Broken,
    Failed,
    Held,
    Left,
    LeftAlone,
    Waits,
    after_the_hco,
    until_claims_are_known,
)
from virt_steward.controllers.autopilot.watches import PLATFORM, One, Platform
from virt_steward.kube.errors import Forbidden, NotServed, Refused, ServerError
from virt_steward.objects.identity import Kind
from virt_steward.runtime.outcomes import Done, RequeueAfter

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterator
    from datetime import datetime

    from virt_steward.catalog.asset import Asset
    from virt_steward.controllers.autopilot.baseline import Bench
    from virt_steward.controllers.autopilot.decide import Decision
    from virt_steward.controllers.autopilot.observe import Outlook
    from virt_steward.controllers.autopilot.overrides.scope import Everything
    from virt_steward.controllers.autopilot.seen import Seen
    from virt_steward.controllers.autopilot.tell import Teller
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
        self, outlook: Outlook, watchlist: Watchlist, bench: Bench, teller: Teller, wake: Callable[[Hashable], None]
    ) -> None:
        self._outlook = outlook
        self._watchlist = watchlist
        self._bench = bench
        self._teller = teller
        self._wake = wake
        self._first, *self._others = outlook.catalog.assets
        self._compliance = Compliance(asset.name for asset in outlook.catalog.assets)
        self._hco_failed = ""
        self._begun: Everything | Only | None = None
        self._paused: set[str] = set()

    @property
    def triggers(self) -> tuple[Trigger[Any], ...]:
        return self._watchlist.triggers(self._outlook.stale)

    def look_at_everything(self) -> None:
        """Something has changed that concerns every asset."""
        self._outlook.stale()
        self._wake(PLATFORM)

    def definition_changed(self, crd: str) -> None:
        """What the server makes of an intent may have changed, though neither that nor the object did."""
        for asset in self._outlook.catalog.assets:
            kind = asset.object.kind
            if f"{kind.plural}.{kind.group}" == crd:
                self._bench.settled.forget_kind(kind)
                self._bench.reported.forget_kind(kind)
                self._wake(One(asset.name))

    async def reconcile(self, key: Platform | One) -> Outcome:
        if isinstance(key, Platform):
            self._outlook.stale()  # a pass trusts nothing that a missed event may have left behind
        seen = self._outlook.seen()
        if seen is None:
            self._rest(f"there is no HyperConverged {self._outlook.options.hco}")
            return Done()
        if isinstance(key, Platform):
            return await self._pass(seen)
        if isinstance(seen.scope, Idle) or seen.scope != self._begun:  # a pass is due, which begins with the HCO
            return Done()
        asset = self._outlook.catalog.find(key.asset)
        return await self._look(asset, seen) if asset else Done()

    async def _pass(self, seen: Seen) -> Outcome:
        again = RequeueAfter(self._outlook.options.period, "time for the next pass")
        self._say_what_is_wrong(seen)
        if isinstance(seen.scope, Idle):
            self._rest(seen.scope.why)
            return again
        if why := self._outlook.undetected():
            self._teller.undetected(seen.hco, why)
        self._teller.active()
        self._compliance.begin()
        if not isinstance(seen.exclusions, Unreadable):
            await bury(self._bench.client, self._outlook, self._teller, seen)
        try:
            sooner = await self._look(self._first, seen)
        finally:
            self._begun = seen.scope
            for asset in self._others:
                self._wake(One(asset.name))
        return sooner if isinstance(sooner, RequeueAfter) and sooner.seconds < again.seconds else again

    def _refs(self) -> Iterator[Ref]:
        """All objects that the catalog makes or buries."""
        yield from (self._outlook.ref(asset) for asset in self._outlook.catalog.assets)
        yield from (stone.ref for stone in self._outlook.catalog.tombstones)

    def _rest(self, why: str) -> None:
        self._begun = None
        self._compliance.rest()
        self._teller.idle(why)
        for asset in self._outlook.catalog.assets:
            self._teller.gauges.forget(self._outlook.ref(asset))
            self._teller.not_asked_for(asset.name)
        for stone in self._outlook.catalog.tombstones:
            self._teller.gauges.forget_tombstone(stone.ref)

    async def _look(self, asset: Asset, seen: Seen) -> Outcome:
        """See to one asset. What fails is said, and tried again by the queue, later each time."""
        now, began = self._bench.clock.utc(), self._bench.clock.now()
        ref = self._outlook.ref(asset)
        sighted = self._outlook.sighted(asset.name)
        self._notice_resume(asset)
        decision = decide(asset, seen, sighted, self._bench.renderer, now)
        self._teller.overrides(ref, decision.overrides)
        self._teller.pause(seen.hco, ref, sighted)
        self._teller.remarks(seen.hco, ref, decision.remarks)
        self._say_what_is_missing(asset, seen, decision)
        try:
            verdict = await self._verdict(asset, decision, seen)
        except NotServed as error:  # until a moment ago it was, so discovery will tell soon
            verdict = LeftAlone(Left.NO_KIND, str(error))
        except (Refused, ServerError) as error:  # the latter also if a webhook does not answer
            if not is_leaving(error):
                self._concluded(asset, seen, Failed(Broken.APPLY, str(error)))
                raise
            verdict = Waits(Held.LEAVING, str(error), LEAVES_WITHIN)
        finally:
            self._teller.gauges.looked(asset.name, ref, self._bench.clock.now() - began)
        self._concluded(asset, seen, verdict)
        return _next(verdict, decision.until, now)

    async def _verdict(self, asset: Asset, decision: Decision, seen: Seen) -> Verdict:
        sighted, ref = self._outlook.sighted(asset.name), self._outlook.ref(asset)
        if sighted and isinstance(decision.outcome, LeftAlone):
            leaving = Leaving(asset, ref, sighted, decision.outcome)
            await part(self._bench.client, self._teller, leaving, seen, self._outlook.catalog.assets)
        if not isinstance(decision.outcome, Wanted):
            return decision.outcome
        if self._hco_failed and asset is not self._first:
            return after_the_hco(self._hco_failed)
        if why := self._outlook.unreadable(asset.name):
            return Failed(Broken.APPLY, f"the live object cannot be read: {why}")
        if self._outlook.is_governed(asset) and (why := self._outlook.unknown_claims()):
            return until_claims_are_known(why)
        governed = self._outlook.governed(asset)
        if governed.paths:
            self._teller.governed(seen.hco, ref, governed)
        wanted = decision.outcome
        work = Work(wanted, sighted, governed, wanted.intent, _made_from(asset, seen), asset.withdrawn)
        return await converge(self._bench, work)

    def _concluded(self, asset: Asset, seen: Seen, verdict: Verdict) -> None:
        if asset is self._first:
            before, self._hco_failed = self._hco_failed, verdict.why if isinstance(verdict, Failed) else ""
            if before and not self._hco_failed:
                self._wake(PLATFORM)
        self._teller.verdict(seen.hco, asset.name, self._outlook.ref(asset), verdict)
        if reached := self._compliance.concluded(asset.name, verdict, self._bench.clock.utc()):
            self._teller.succeeded(seen.hco, reached)

    def _notice_resume(self, asset: Asset) -> None:
        """Whoever removes the mark of a pause gets a fresh start."""
        sighted = self._outlook.sighted(asset.name)
        if sighted and sighted.is_paused:
            self._paused.add(asset.name)
        elif asset.name in self._paused:
            self._paused.discard(asset.name)
            self._bench.wars.resumed(self._outlook.ref(asset))

    def _say_what_is_missing(self, asset: Asset, seen: Seen, decision: Decision) -> None:
        target = asset.object
        match decision.outcome:
            case LeftAlone(Left.NO_KIND) if asked_for(asset, seen.look):
                self._teller.missing(seen.hco, asset.name, target.kind, target.version)
            case LeftAlone(Left.NO_GATE) if asked_for(asset, seen.look):
                self._teller.missing(seen.hco, asset.name, *self._gate(asset))
            case _ if kind_is_installed(asset, seen.look) is None and gate_is_installed(asset, seen.look) is None:
                self._teller.not_missing(seen.hco, asset.name)
            case _:
                self._teller.not_asked_for(asset.name)

    def _gate(self, asset: Asset) -> tuple[Kind, str]:
        """The kind that the asset waits for, as the catalog calls it elsewhere: what is not there cannot tell."""
        plural, _, group = asset.gate_crd.partition(".")
        for other in self._outlook.catalog.assets:
            if (other.object.kind.group, other.object.kind.plural) == (group, plural):
                return other.object.kind, other.object.version
        return Kind(group, plural, plural), ""

    def _say_what_is_wrong(self, seen: Seen) -> None:
        """The HyperConverged's own annotations, where they cannot be followed to the letter."""
        if isinstance(seen.scope, Idle) and seen.scope.typo:
            self._teller.warned(seen.hco, "LikelyTypo", seen.scope.why)
        if isinstance(seen.scope, Only):
            for name in unmatched(seen.scope.names, self._outlook.catalog.assets):
                self._teller.warned(seen.hco, "UnknownAsset", f"no asset and no group is called {name!r}")
        if (policy := seen.look.context.hco.annotations.get(ON_OPT_OUT, KEEP)) not in (KEEP, DELETE):
            why = f"{ON_OPT_OUT} is {policy[:40]!r}: only {DELETE!r} means something, so nothing is deleted"
            self._teller.warned(seen.hco, "InvalidOptOut", why)
        if isinstance(seen.exclusions, Unreadable):
            why = f"nothing is written before {EXCLUDED} can be read: {seen.exclusions.why}"
            self._teller.warned(seen.hco, "InvalidExclusions", why)
            return
        for rule in seen.exclusions.unmatched(self._refs()):
            self._teller.warned(seen.hco, "ExclusionMatchesNothing", f"{EXCLUDED}: {rule} matches no asset's object")


def _made_from(asset: Asset, seen: Seen) -> Origin | None:
    read = asset.reads_itself
    return Origin(read, seen.look.context.objects[read.ref]) if read else None


def is_leaving(error: Exception) -> bool:
    """Whether the kind or the namespace is just being removed: nobody need hear of that as a failure."""
    return isinstance(error, Forbidden) and any(words in str(error) for words in _LEAVING)


def _next(verdict: Verdict, until: datetime | None, now: datetime) -> Outcome:
    if isinstance(verdict, Waits) and verdict.retry_in is not None:
        return RequeueAfter(verdict.retry_in, verdict.why)
    if until is not None:
        return RequeueAfter(max((until - now).total_seconds(), 0.1), "an override ends then")
    return Done()
