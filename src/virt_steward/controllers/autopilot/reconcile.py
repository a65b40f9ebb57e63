"""Joins observing, deciding, converging and reporting: a pass over everything, and one asset at a time."""

from __future__ import annotations

from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING, Any

from virt_steward.catalog.aliases import ALWAYS_ON, current_name
from virt_steward.controllers.autopilot.annotation_keys import EXCLUDED, ON_OPT_OUT, SCOPE
from virt_steward.controllers.autopilot.compliance import Compliance
from virt_steward.controllers.autopilot.converge import STALE_RETRY, RenderedFrom, Task, converge
from virt_steward.controllers.autopilot.decide import (
    MOST_REMARKS,
    Wanted,
    decide,
    is_gate_served,
    is_kind_served,
    is_requested,
    unreadable_exclusions,
)
from virt_steward.controllers.autopilot.edit_wars import Pauses
from virt_steward.controllers.autopilot.optout import DELETE, KEEP, OptOut, delete_opted_out
from virt_steward.controllers.autopilot.overrides.exclusions import UnreadableExclusions
from virt_steward.controllers.autopilot.overrides.scope import Everything, Idle, Only, unmatched
from virt_steward.controllers.autopilot.replaced import ReplacedObjects, Replacement
from virt_steward.controllers.autopilot.reporter import AssetNeeds
from virt_steward.controllers.autopilot.rollouts.policy import REBOOTING
from virt_steward.controllers.autopilot.rollouts.stager import RolloutContext
from virt_steward.controllers.autopilot.tombstones import delete_tombstoned
from virt_steward.controllers.autopilot.verdicts import (
    AssetApplied,
    AssetFailed,
    AssetPending,
    AssetSkipped,
    AssetStaged,
    EditWar,
    FailureReason,
    PendingReason,
    SkipReason,
    pending_claims,
    pending_hco,
)
from virt_steward.controllers.autopilot.watches import PLATFORM, SCHEMA_SETTLES, AssetKey, PlatformKey
from virt_steward.holds.freezes import Frozen
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
    from virt_steward.controllers.autopilot.reporter import AutopilotReporter
    from virt_steward.controllers.autopilot.rollouts.policy import RolloutPolicy
    from virt_steward.controllers.autopilot.verdicts import Verdict
    from virt_steward.controllers.autopilot.watches import Watchlist
    from virt_steward.objects.identity import Ref
    from virt_steward.runtime.controller import Trigger
    from virt_steward.runtime.outcomes import Outcome


TERMINATING_RETRY = 5.0
"""Seconds until an object is tried again whose kind or namespace was terminating."""
BUILT_IN = frozenset(("rbac.authorization.k8s.io", "scheduling.k8s.io", "storage.k8s.io"))
_TERMINATING = ("definition is terminating", "is being terminated")


class AutopilotController:
    """One worker takes the keys in order, so that assets are reconciled in the order of the catalog."""

    def __init__(
        self,
        view: AutopilotClusterView,
        watchlist: Watchlist,
        toolkit: Toolkit,
        reporter: AutopilotReporter,
        wake: Callable[[Hashable], None],
    ) -> None:
        self._view = view
        self._watchlist = watchlist
        self._toolkit = toolkit
        self._reporter = reporter
        self._wake = wake
        self._ledger = toolkit.stager.ledger
        self._replaced = ReplacedObjects(toolkit, view, reporter)
        self._first, *self._others = view.catalog.assets
        self._compliance = Compliance(asset.name for asset in view.catalog.assets)
        self._hco_failure = ""
        self._scope_of_pass: Everything | Only | None = None
        self._pauses = Pauses()
        self._facts_changed_at: dict[str, float] = {}

    @property
    def triggers(self) -> tuple[Trigger[Any], ...]:
        return self._watchlist.triggers(self._view.stale)

    def reconcile_everything(self) -> None:
        """Something has changed that concerns every asset."""
        self._view.stale()
        self._wake(PLATFORM)

    def handle_facts_change(self, crd: str) -> None:
        """Templates read another schema than before."""
        self._facts_changed_at[crd] = self._toolkit.clock.now()
        self.reconcile_everything()

    def handle_schema_change(self, crd: str) -> None:
        """The server may treat the same intent in another way, so what was remembered of this kind is void."""
        for asset in self._view.catalog.assets:
            kind = asset.object.kind
            if f"{kind.plural}.{kind.group}" == crd:
                self._toolkit.settled.forget_kind(kind)
                self._toolkit.reported.forget_kind(kind)
                self._toolkit.held.forget_kind(kind)
                self._wake(AssetKey(asset.name))

    async def reconcile(self, key: PlatformKey | AssetKey) -> Outcome:
        if isinstance(key, PlatformKey):
            self._view.stale()  # a pass must not depend on an event that was missed
        observation = self._view.seen()
        if observation is None:
            self._become_idle(f"there is no HyperConverged {self._view.options.hco}")
            return Done()
        if isinstance(key, PlatformKey):
            return await self._reconcile_platform(observation)
        if isinstance(observation.scope, Idle) or observation.scope != self._scope_of_pass:
            return Done()  # a pass is due, which begins with the HyperConverged
        asset = self._view.catalog.find(key.asset)
        return await self._reconcile_asset(asset, observation) if asset else Done()

    async def _reconcile_platform(self, observation: AutopilotObservation) -> Outcome:
        next_pass = RequeueAfter(self._view.options.period, "time for the next pass")
        self._report_bad_annotations(observation)
        self._reporter.report_decisions(observation.hco, observation.context.hco.annotations)
        if isinstance(observation.scope, Idle):
            self._become_idle(observation.scope.why)
            await self._ledger.keep_only(observation.hco, ())
            return next_pass
        if problem := self._view.undetected():
            self._reporter.report_undetected(observation.hco, problem)
        self._reporter.report_active()
        await self._ledger.keep_only(observation.hco, self._refs())
        for ref in islice(self._view.not_in_catalog(), MOST_REMARKS):
            self._reporter.report_not_in_catalog(observation.hco, ref)
        self._notice_replaced_list(observation)
        self._compliance.start_pass()
        is_frozen = isinstance(self._view.freeze(self._toolkit.clock.utc()), Frozen)
        if not isinstance(observation.exclusions, UnreadableExclusions) and not is_frozen:
            await delete_tombstoned(self._toolkit.client, self._view, self._reporter, observation)
        try:
            sooner = await self._reconcile_asset(self._first, observation)
        finally:
            self._scope_of_pass = observation.scope
            for asset in self._others:
                self._wake(AssetKey(asset.name))
        return sooner if isinstance(sooner, RequeueAfter) and sooner.seconds < next_pass.seconds else next_pass

    def _notice_replaced_list(self, observation: AutopilotObservation) -> None:
        """Somebody has written `true` over a list, as OpenShift's console does: say which assets were selected.

        The list is that of the last pass. A new process has none, and says nothing.
        """
        before, annotations = self._scope_of_pass, observation.context.hco.annotations
        if isinstance(before, Only) and annotations.get(SCOPE, "").strip() == "true":
            self._reporter.report_replaced_list(observation.hco, sorted(before.names))

    def _refs(self) -> Iterator[Ref]:
        """List all objects that the catalog creates or deletes."""
        yield from (self._view.ref(asset) for asset in self._view.catalog.assets)
        yield from (stone.ref for stone in self._view.catalog.tombstones)

    def _become_idle(self, message: str) -> None:
        catalog = self._view.catalog
        self._scope_of_pass = None
        self._compliance.reset()
        self._toolkit.wars.reset()
        self._reporter.report_idle(message)
        self._reporter.forget(
            ((asset.name, self._view.ref(asset)) for asset in catalog.assets),
            (stone.ref for stone in catalog.tombstones),
        )

    async def _reconcile_asset(self, asset: Asset, observation: AutopilotObservation) -> Outcome:
        """Reconcile one asset. A failure is reported, and retried by the queue with backoff."""
        now, began = self._toolkit.clock.utc(), self._toolkit.clock.now()
        ref, live = self._view.ref(asset), self._view.live_summary(asset.name)
        self._notice_resume(asset)
        decision = decide(asset, observation, live, self._toolkit.renderer, now)
        self._reporter.report_overrides(ref, decision.overrides)
        self._reporter.report_pause(observation.hco, ref, live)
        if live and ref != observation.hco.ref:
            self._reporter.report_decisions(observation.hco, live.annotations, ref)
        self._reporter.report_remarks(observation.hco, ref, decision.remarks)
        self._report_dependencies(asset, observation)
        try:
            verdict = await self._act(asset, decision, observation)
        except NotServed as error:  # it was served a moment ago, so discovery will show it soon
            verdict = AssetSkipped(SkipReason.NO_KIND, str(error))
        except (Refused, RefusedIntent, ServerError) as error:  # the last also if a webhook does not answer
            if is_terminating(error):
                verdict = AssetPending(PendingReason.TERMINATING, str(error), TERMINATING_RETRY)
            elif await self._is_schema_changing(asset):
                verdict = AssetPending(PendingReason.STALE, f"the CRD has just changed: {error}", STALE_RETRY)
            else:
                await self._conclude(asset, observation, AssetFailed(FailureReason.APPLY, str(error)))
                raise
        finally:
            self._reporter.report_duration(asset.name, ref, self._toolkit.clock.now() - began)
        if isinstance(verdict, EditWar):
            self._pauses.begun(asset.name, verdict.version)
        if _ends_staging(verdict):
            await self._ledger.drop(observation.hco, (ref,))
        until = await self._conclude(asset, observation, verdict)
        return _next(verdict, [one for one in (decision.until, until) if one], now)

    async def _is_schema_changing(self, asset: Asset) -> bool:
        """Whether a refusal may be the fault of a CRD that has just been replaced, and ends by itself.

        What was rendered follows an earlier schema, which the watch has not shown yet; or it follows the new one, and
        the server still validates by the earlier one. Only templates that read a schema depend on it.
        """
        crds = asset.needs.schemas
        await self._view.refresh_schemas(crds)
        now, never = self._toolkit.clock.now(), -SCHEMA_SETTLES
        return any(now - self._facts_changed_at.get(crd, never) < SCHEMA_SETTLES for crd in crds)

    def _follow_rollouts(self) -> None:
        """Let others go along with rollouts that we have started."""
        for name in self._ledger.assets_of(self._ledger.started(self._view.pools() or ())):
            self._wake(AssetKey(name))

    async def _act(self, asset: Asset, decision: AssetDecision, observation: AutopilotObservation) -> Verdict:
        live, ref = self._view.live_summary(asset.name), self._view.ref(asset)
        freeze = self._view.freeze(self._toolkit.clock.utc())
        if live and isinstance(decision.outcome, AssetSkipped) and not isinstance(freeze, Frozen):
            opt_out = OptOut(asset, ref, live, decision.outcome)
            catalog = self._view.catalog
            await delete_opted_out(self._toolkit.client, self._reporter, opt_out, observation, catalog.assets)
        if not isinstance(decision.outcome, Wanted):
            return decision.outcome
        if self._hco_failure and asset is not self._first:
            return pending_hco(self._hco_failure)
        if problem := self._view.unreadable(asset.name):
            return AssetFailed(FailureReason.APPLY, f"the live object cannot be read: {problem}")
        if self._view.is_governed(asset) and (problem := self._view.unknown_claims()):
            return pending_claims(problem)
        governed = self._view.governed(asset)
        if governed.paths:
            self._reporter.report_governed(observation.hco, ref, governed)
        wanted = decision.outcome
        may_wait = self._view.may_wait(asset.object.kind, live, wanted.rollout)
        rollout = self._rollout(asset, wanted.rollout, observation) if may_wait else None
        task = Task(wanted, live, governed, wanted.intent, _rendered_from(asset, observation), rollout, freeze)
        return await converge(self._toolkit, task)

    def _rollout(self, asset: Asset, policy: RolloutPolicy, observation: AutopilotObservation) -> RolloutContext:
        catalog = self._view.catalog
        existing = (
            *(self._view.ref(one) for one in catalog.assets if self._view.live_summary(one.name)),
            *(stone.ref for stone in catalog.tombstones if stone.replaced_by and self._view.tombstoned(stone.ref)),
        )
        return replace(
            RolloutContext.of(asset.name, observation, policy, self._view.pools()),
            has_predecessor=self._view.has_predecessor(),
            all_compared=asset.object.kind not in REBOOTING
            or all(self._ledger.was_compared(ref) for ref in existing if ref.kind in REBOOTING),
            holds=self._view.rollout_holds(observation.context.hco.annotations, self._toolkit.clock.utc()),
        )

    async def _conclude(self, asset: Asset, observation: AutopilotObservation, verdict: Verdict) -> datetime | None:
        """Report the verdict, and draw the consequences for others. Returns when to look again without any event."""
        if not isinstance(verdict, AssetPending) or verdict.reason is not PendingReason.STALE:
            self._ledger.note_compared(self._view.ref(asset))
        if asset is self._first:
            before, self._hco_failure = self._hco_failure, verdict.message if isinstance(verdict, AssetFailed) else ""
            if before and not self._hco_failure:
                self._wake(PLATFORM)
        self._reporter.report_verdict(observation.hco, asset.name, self._view.ref(asset), verdict)
        if reached := self._compliance.record(asset.name, verdict, self._toolkit.clock.utc()):
            self._reporter.report_compliance(observation.hco, reached)
        if isinstance(verdict, AssetApplied) and asset.object.kind in REBOOTING:
            self._follow_rollouts()
        if isinstance(observation.exclusions, UnreadableExclusions):
            return None
        settled = await self._replaced.settle(observation, Replacement(asset.name, verdict))
        if settled.starts_rollout:
            self._follow_rollouts()
        return settled.until

    def _notice_resume(self, asset: Asset) -> None:
        """When a person removes the annotation of a pause, the object starts with fresh counters."""
        live = self._view.live_summary(asset.name)
        version, is_paused = (int(live.metadata.resource_version), live.is_paused) if live else (0, False)
        if self._pauses.ended(asset.name, version, is_paused=is_paused):
            self._toolkit.wars.resumed(self._view.ref(asset))

    def _report_dependencies(self, asset: Asset, observation: AutopilotObservation) -> None:
        """Report the kinds that an asset needs. Those that every cluster has are of no interest."""
        target = asset.object
        served = {(target.kind, target.version): is_kind_served(asset, observation)}
        if asset.gate_crd:
            served[self._gate(asset)] = is_gate_served(asset, observation)
        kinds = tuple(need for need in served if is_custom(need[0]))
        missing = next((need for need in kinds if not served[need]), None)
        needs = AssetNeeds(kinds, is_requested(asset, observation), missing)
        self._reporter.report_dependencies(observation.hco, asset.name, needs)

    def _gate(self, asset: Asset) -> tuple[Kind, str]:
        """The gate's kind and version, as another asset of the catalog declares them: the CRD is not there to ask."""
        plural, _, group = asset.gate_crd.partition(".")
        for other in self._view.catalog.assets:
            if (other.object.kind.group, other.object.kind.plural) == (group, plural):
                return other.object.kind, other.object.version
        return Kind(group, plural, plural), ""

    def _report_bad_annotations(self, observation: AutopilotObservation) -> None:
        """Report annotations of the HyperConverged that cannot be followed to the letter."""
        report, hco = self._reporter.report_annotation, observation.hco
        self._report_bad_scope(observation)
        for key, asset in ALWAYS_ON.items():
            if key in observation.context.hco.annotations:
                message = (
                    f"{key} has no effect any more: {asset} is always installed; {EXCLUDED} can exclude its object"
                )
                report(hco, "ObsoleteAnnotation", message)
        if (policy := observation.context.hco.annotations.get(ON_OPT_OUT, KEEP)) not in (KEEP, DELETE):
            message = f"{ON_OPT_OUT} is {policy[:40]!r}; it must be {KEEP!r} or {DELETE!r}, so nothing is deleted"
            report(hco, "InvalidOptOut", message)
        if isinstance(observation.exclusions, UnreadableExclusions):
            report(hco, "InvalidExclusions", unreadable_exclusions(observation.exclusions.why))
            return
        for rule in observation.exclusions.unmatched(self._refs())[:MOST_REMARKS]:
            report(hco, "ExclusionMatchesNothing", f"{EXCLUDED}: {rule} matches no object of the catalog")

    def _report_bad_scope(self, observation: AutopilotObservation) -> None:
        report, hco = self._reporter.report_annotation, observation.hco
        if isinstance(observation.scope, Idle) and observation.scope.typo:
            report(hco, "LikelyTypo", observation.scope.why)
        if isinstance(observation.scope, Everything) and observation.scope.typo:
            report(hco, "LikelyTypo", observation.scope.typo)
        if isinstance(observation.scope, Only):
            for name in unmatched(observation.scope.names, self._view.catalog.assets)[:MOST_REMARKS]:
                report(hco, "UnknownAsset", f"there is no asset or group {name[:100]!r}")
            for name in sorted(observation.scope.renamed)[:MOST_REMARKS]:
                message = f"{SCOPE} names {name}, which is called {current_name(name)} here: replace it when convenient"
                report(hco, "RenamedAsset", message)


def _rendered_from(asset: Asset, observation: AutopilotObservation) -> RenderedFrom | None:
    read = asset.reads_itself
    return RenderedFrom(read, observation.context.objects[read.ref]) if read else None


def is_custom(kind: Kind) -> bool:
    """Whether a CRD defines the kind: groups of built-in kinds have no domain, or that of Kubernetes itself."""
    return "." in kind.group and kind.group not in BUILT_IN


def is_terminating(error: Exception) -> bool:
    """Whether the kind or the namespace is just being removed, which is no failure."""
    return isinstance(error, Forbidden) and any(words in str(error) for words in _TERMINATING)


def _ends_staging(verdict: Verdict) -> bool:
    match verdict:
        case AssetSkipped(reason):
            return not reason.is_unknown  # what is unknown may be wanted
        case AssetStaged() | AssetPending() | AssetFailed():
            return False
    return True


def _next(verdict: Verdict, moments: list[datetime], now: datetime) -> Outcome:
    """Look again when the verdict says so, and at these moments, whatever comes first."""
    waits = [max((moment - now).total_seconds(), 0.1) for moment in moments]
    if isinstance(verdict, AssetPending | AssetStaged) and verdict.retry_in is not None:
        return RequeueAfter(min((verdict.retry_in, *waits)), verdict.message)
    return RequeueAfter(min(waits), "an override or a wait ends then") if waits else Done()
