"""The advisor: one step per reconcile, and one status write per step, whose return brings the next."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import structlog

from virt_steward.apis.virtplatformconfig import VIRT_PLATFORM_CONFIG, VirtPlatformConfigStatus
from virt_steward.controllers.advisor.act import (
    advertise,
    draft_plan,
    draft_rollback_plan,
    has_advertisement_fields,
    release_advertisement,
    write_status,
)
from virt_steward.controllers.advisor.decide import after_draft, decide, failed
from virt_steward.controllers.advisor.phases import STARTING
from virt_steward.controllers.advisor.report import fold, with_plan
from virt_steward.controllers.advisor.steps import (
    ApplyItem,
    AwaitItem,
    AwaitWindow,
    CompleteItem,
    Enforce,
    FailStale,
    LackPrerequisites,
    MarkDrifted,
    Redraft,
    RedraftLater,
    RejectPlan,
    Settle,
)
from virt_steward.kube.errors import Conflict
from virt_steward.objects.identity import Ref
from virt_steward.plans.draft import Drafted, DraftRejected, TargetsMoving, judged
from virt_steward.plans.execute import ItemOutdated, WriteRefused, Written, write
from virt_steward.plans.fingerprint import plan_hash
from virt_steward.plans.intent import ref_to
from virt_steward.plans.preimage import capture, load, record_name, save
from virt_steward.plans.rollback import AlreadyGone, write_rollback
from virt_steward.platform.health import Ready
from virt_steward.runtime.outcomes import Done, RequeueAfter
from virt_steward.runtime.throttle import BucketEmpty, KeyedBuckets, Rate
from virt_steward.ssa.release import disclaim, is_disclaimed

if TYPE_CHECKING:
    from datetime import datetime

    from virt_steward.apis.virtplatformconfig import PlanItem
    from virt_steward.controllers.advisor.context import ProfileContext
    from virt_steward.controllers.advisor.observation import AdvisorObservation, VirtPlatformConfig
    from virt_steward.controllers.advisor.observe import AdvisorClusterView
    from virt_steward.controllers.advisor.profiles.profile import Profile
    from virt_steward.controllers.advisor.reporter import AdvisorReporter
    from virt_steward.controllers.advisor.steps import Said, Step
    from virt_steward.controllers.advisor.watches import AdvisorEventHandlers
    from virt_steward.kube.client import Client
    from virt_steward.objects.identity import Key
    from virt_steward.plans.draft import Draft
    from virt_steward.platform.health import Health
    from virt_steward.runtime.clock import Clock
    from virt_steward.runtime.controller import Trigger
    from virt_steward.runtime.outcomes import Outcome

log = structlog.get_logger()

SOON = 1.0
PREREQUISITES = 300.0
"""Seconds until prerequisites are looked for again though nothing happened: events should make it needless."""
ENFORCEMENTS = Rate(capacity=10, per_second=1 / 6)
"""Per profile: bypass mode must not become a war at full speed."""


@dataclass(frozen=True, slots=True)
class Told:
    """What a step came to: the status before it is said, and what to say."""

    status: VirtPlatformConfigStatus
    step: Said


class AdvisorController:
    """Joins seeing, deciding, acting and telling."""

    def __init__(
        self,
        client: Client,
        view: AdvisorClusterView,
        handlers: AdvisorEventHandlers,
        reporter: AdvisorReporter,
        clock: Clock,
    ) -> None:
        self._client = client
        self._view = view
        self._handlers = handlers
        self._profiles = {profile.name: profile for profile in handlers.profiles}
        self._reporter = reporter
        self._clock = clock
        self._enforcements: KeyedBuckets[str] = KeyedBuckets(ENFORCEMENTS)

    @property
    def triggers(self) -> tuple[Trigger[Any], ...]:
        return self._handlers.triggers

    async def reconcile(self, key: Key) -> Outcome:
        config = self._view.config(key)
        profile = self._profiles.get(key.name)
        if profile is None:
            return Done()  # the schema knows no others
        if config is None:
            return await self._offer(key, profile)
        if config.metadata.deletion_timestamp or self._is_behind(config):
            return Done()  # it is on its way out, or our own write is on its way back
        if has_advertisement_fields(config):
            await release_advertisement(self._client, Ref(VIRT_PLATFORM_CONFIG, key))
            return Done()
        now = self._clock.utc().replace(microsecond=0)
        seen = self._view.observe(config, profile, now)
        step = decide(seen, now)
        if isinstance(step, Settle) and config.status.phase not in STARTING:
            return RequeueAfter(SOON, step.why)
        told = await self._act(seen, profile, step, now)
        return await self._report(seen, told, now)

    async def _offer(self, key: Key, profile: Profile) -> Outcome:
        """There is no such config: profiles that are advertised come back, asleep."""
        self._reporter.gone(key)
        if not profile.about.is_advertised:
            return Done()
        if self._view.is_unknown(key):
            return RequeueAfter(SOON, "the configs are being read") if self._view.is_filling() else Done()
        await advertise(self._client, profile, self._view.options.docs_url)
        log.info("profile offered", profile=profile.name)
        return Done()

    def _is_behind(self, config: VirtPlatformConfig) -> bool:
        ref = Ref(VIRT_PLATFORM_CONFIG, config.metadata.key)
        return self._view.freshness.is_behind(ref, config.metadata.resource_version)

    async def _act(self, seen: AdvisorObservation, profile: Profile, step: Step, now: datetime) -> Told:
        status = seen.config.status
        match step:
            case Redraft(because):
                log.info("drafting", config=profile.name, because=because)
                return await self._draft(seen, profile, now)
            case ApplyItem():
                return await self._apply(seen, profile, step)
            case AwaitItem(item) | CompleteItem(item) if status.plan_action == "Rollback":
                await self._disclaim(item)
            case Enforce(items):
                if isinstance(self._enforcements.take(profile.name, self._clock.now()), BucketEmpty):
                    return Told(status, MarkDrifted(items))
                self._reporter.enforced(seen.config, items)
                return Told(status, step)
        return Told(status, step)

    async def _draft(self, seen: AdvisorObservation, profile: Profile, now: datetime) -> Told:
        status = seen.config.status
        is_back = seen.config.spec.action == "Rollback"
        context = self._view.context(seen.config, profile)
        drafting = self._draft_back(status, profile, context) if is_back else draft_plan(self._client, profile, context)
        match await drafting:
            case Drafted(drafted):
                items = tuple(self._judged(item, context, back=is_back) for item in drafted)
                digest = plan_hash(profile.name, items, back=is_back)
                return Told(with_plan(seen, items, digest), after_draft(seen, items, digest, now))
            case TargetsMoving(why):
                return Told(status, RedraftLater(why))
            case DraftRejected(item, why):
                return Told(with_plan(seen, (), ""), RejectPlan(item, why))

    def _judged(self, item: PlanItem, context: ProfileContext, *, back: bool) -> PlanItem:
        live = context.targets.get(ref_to(item.target_ref))
        return judged(item, self._view.health(item, live, back=back))

    async def _draft_back(self, status: VirtPlatformConfigStatus, profile: Profile, context: ProfileContext) -> Draft:
        namespace = self._view.options.namespace
        image = await load(self._client, namespace, profile.name, status.pre_image)
        if image is None:
            return DraftRejected("rollback", "nothing was recorded that could be gone back to")
        return await draft_rollback_plan(self._client, image, context)

    async def _apply(self, seen: AdvisorObservation, profile: Profile, step: ApplyItem) -> Told:
        status = seen.config.status
        if status.plan_action == "Rollback":
            return Told(status, await self._undo(seen, step.item))
        if status.pre_image != record_name(profile.name, status.plan_hash):  # before anything of this plan is written
            await self._keep(seen, profile)
        return Told(status, await self._write(seen, profile, step.item))

    async def _keep(self, seen: AdvisorObservation, profile: Profile) -> None:
        status, namespace = seen.config.status, self._view.options.namespace
        targets = self._view.context(seen.config, profile).targets
        earlier = await load(self._client, namespace, profile.name, status.pre_image)
        await save(self._client, namespace, capture(profile.name, status.plan_hash, status.items, targets, earlier))

    async def _undo(self, seen: AdvisorObservation, item: PlanItem) -> Said:
        match await write_rollback(self._client, item):
            case AlreadyGone():
                return self._awaited(item, self._view.health(item, None, back=True))
            case Written(live):
                self._view.freshness.expect(ref_to(item.target_ref), live["metadata"]["resourceVersion"])
                return self._awaited(item, self._view.health(item, live, back=True))
            case ItemOutdated(why):
                return FailStale(why)
            case WriteRefused(why):
                return failed(seen, item, f"Not undone: {why}")

    async def _disclaim(self, item: PlanItem) -> None:
        """Own nothing of what was restored, also if a process before us was cut off right after that."""
        live = self._view.target(ref_to(item.target_ref))
        if live is not None and not is_disclaimed(live):
            await disclaim(self._client, live)

    async def _write(self, seen: AdvisorObservation, profile: Profile, item: PlanItem) -> Said:
        match await write(self._client, item, profile.name, bypass=seen.config.spec.bypass_optimistic_lock):
            case Written(live, overwrote):
                if overwrote:
                    self._reporter.overwrote(seen.config, item)
                self._view.freshness.expect(ref_to(item.target_ref), live["metadata"]["resourceVersion"])
                return self._awaited(item, self._view.health(item, live))
            case ItemOutdated(why):
                return FailStale(why)
            case WriteRefused(why):
                return failed(seen, item, f"Not applied: {why}")

    @staticmethod
    def _awaited(item: PlanItem, health: Health) -> Said:
        if isinstance(health, Ready):
            return CompleteItem(item, health.message)
        return AwaitItem(item, health.message, None)

    async def _report(self, seen: AdvisorObservation, told: Told, now: datetime) -> Outcome:
        config = seen.config
        status = fold(seen, told.status, told.step, now)
        if status == config.status:
            self._reporter.shows(config.metadata.name, status)
            return _look_again(seen, told.step, now)
        try:
            written = await write_status(self._client, config, status)
        except Conflict:
            return RequeueAfter(SOON, "the config has changed meanwhile")
        ref = Ref(VIRT_PLATFORM_CONFIG, config.metadata.key)
        self._view.freshness.expect(ref, written["metadata"]["resourceVersion"])
        self._reporter.tell(config, status)
        return _look_again(seen, told.step, now)


def _look_again(seen: AdvisorObservation, step: Said, now: datetime) -> Outcome:
    match step:
        case Settle(why) | RedraftLater(why):
            return RequeueAfter(SOON, why)
        case LackPrerequisites():
            return RequeueAfter(PREREQUISITES, "prerequisites are missing")
        case AwaitWindow(until=until) if until:
            return RequeueAfter(max((until - now).total_seconds(), 0.0), "the window is closed")
        case AwaitItem(deadline=deadline) if deadline:
            return RequeueAfter(max((deadline - now).total_seconds(), 0.0), "an item may time out")
        case MarkDrifted() if seen.config.spec.bypass_optimistic_lock:
            return RequeueAfter(1 / ENFORCEMENTS.per_second, "bypass mode was throttled")
    return Done()
