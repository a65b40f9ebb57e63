"""The advisor's reconcile: observe, decide, act, report. One step at a time: its status write triggers the next."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import structlog

from virt_steward.apis.virtplatformconfig import VIRT_PLATFORM_CONFIG, VirtPlatformConfigStatus
from virt_steward.controllers.advisor.act import (
    advertise,
    draft_plan,
    draft_rollback_plan,
    has_advertisement_fields,
    owner_of,
    release_advertisement,
    write_status,
)
from virt_steward.controllers.advisor.adoption import Adopted, has_offer, with_adoption
from virt_steward.controllers.advisor.approval import ADMISSION_POLICY, step_for_new_plan
from virt_steward.controllers.advisor.decide import decide
from virt_steward.controllers.advisor.integrity import (
    Altered,
    Unrecorded,
    authenticated,
    may_stand,
    next_record,
)
from virt_steward.controllers.advisor.phases import STARTING
from virt_steward.controllers.advisor.profiles import OFF_BY_DEFAULT
from virt_steward.controllers.advisor.records import PlanRecords
from virt_steward.controllers.advisor.report import next_status, with_plan
from virt_steward.controllers.advisor.steps import (
    ApplyItem,
    AwaitEnforcement,
    AwaitItem,
    Begin,
    CompleteItem,
    Enforce,
    EvaluateGates,
    FailStale,
    FailTampered,
    MarkDrifted,
    Redraft,
    RedraftLater,
    RejectPlan,
    RestoreStatus,
    Settle,
    failed_item,
)
from virt_steward.controllers.advisor.steps.base import SOON
from virt_steward.controllers.advisor.steps.integrity import restored
from virt_steward.controllers.advisor.steps.settled import ENFORCEMENTS
from virt_steward.holds.gate_board import GateBoard
from virt_steward.kube.errors import Conflict
from virt_steward.objects.approvals import unenforced
from virt_steward.objects.identity import Ref
from virt_steward.plans.draft import Drafted, DraftRejected, TargetsMoving, judged
from virt_steward.plans.execute import ItemOutdated, WriteRefused, Written, write
from virt_steward.plans.fingerprint import plan_hash, record_name
from virt_steward.plans.intent import ref_to, writes_only
from virt_steward.plans.preimage import capture, load, save
from virt_steward.plans.rollback import AlreadyGone, write_rollback
from virt_steward.platform.health import Ready
from virt_steward.runtime.enforcement import is_enforced
from virt_steward.runtime.outcomes import Done, RequeueAfter
from virt_steward.runtime.throttle import BucketEmpty, KeyedBuckets
from virt_steward.ssa.release import disclaim, is_disclaimed

if TYPE_CHECKING:
    from datetime import datetime

    from virt_steward.apis.virtplatformconfig import PlanItem
    from virt_steward.controllers.advisor.integrity import AuthenticConfig
    from virt_steward.controllers.advisor.observation import AdvisorObservation, VirtPlatformConfig
    from virt_steward.controllers.advisor.observe import AdvisorClusterView
    from virt_steward.controllers.advisor.profiles.profile import Profile, ProfileContext
    from virt_steward.controllers.advisor.reporter import AdvisorReporter
    from virt_steward.controllers.advisor.steps import StatusStep, Step
    from virt_steward.controllers.advisor.watches import AdvisorEventHandlers
    from virt_steward.kube.client import Client, Object
    from virt_steward.objects.identity import Key
    from virt_steward.plans.draft import Draft
    from virt_steward.platform.health import Health
    from virt_steward.runtime.clock import Clock
    from virt_steward.runtime.controller import Trigger
    from virt_steward.runtime.outcomes import Outcome

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class StepResult:
    """What acting on a step led to: the step to report, and the status to report it on (with a new plan, if any)."""

    status: VirtPlatformConfigStatus
    step: StatusStep


class AdvisorController:
    """Joins observing, deciding, acting and reporting."""

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
        self._records = PlanRecords(client, view.options.namespace)
        self._gates = GateBoard(client, view.options.gates, clock)
        self._enforcements: KeyedBuckets[str] = KeyedBuckets(ENFORCEMENTS)

    @property
    def triggers(self) -> tuple[Trigger[Any], ...]:
        return self._handlers.triggers

    async def reconcile(self, key: Key) -> Outcome:
        config = self._view.config(key)
        profile = self._profiles.get(key.name)
        if profile is None:
            if config is not None and key.name in OFF_BY_DEFAULT:
                log.info("profile is off", profile=key.name, flag=OFF_BY_DEFAULT[key.name])
            return Done()
        if config is None:
            return await self._offer(key, profile)
        if config.metadata.deletion_timestamp or self._is_behind(config):
            return Done()  # it is being deleted, or our last write is not in the cache yet
        if has_advertisement_fields(config):
            await release_advertisement(self._client, Ref(VIRT_PLATFORM_CONFIG, key))
            return Done()
        self._reporter.decided(config)
        now = self._clock.utc().replace(microsecond=0)
        authentic = authenticated(config, await self._records.load(profile.name), self._view.other_ran_at())
        observation = await self._observe(authentic, profile, now)
        result = await self._enforced(observation, await self._act(observation, profile, decide(observation, now), now))
        if isinstance(result.step, Settle | RedraftLater) and _keeps_phase(observation, result.step):
            return RequeueAfter(SOON, result.step.message)
        return await self._report(config, observation, result, now)

    async def _enforced(self, observation: AdvisorObservation, result: StepResult) -> StepResult:
        """A plan that several people approved starts only if the API server holds approvals to their names."""
        is_by_people = isinstance(result.step, Begin) and observation.config.spec.approvals is not None
        if not is_by_people or await is_enforced(self._client, ADMISSION_POLICY):
            return result
        return StepResult(result.status, AwaitEnforcement("ApprovalsNotEnforced", unenforced(ADMISSION_POLICY)))

    async def _observe(self, authentic: AuthenticConfig, profile: Profile, now: datetime) -> AdvisorObservation:
        """Evaluate the gates too, if nothing but them keeps an item from starting."""
        read = self._view.config(authentic.config.metadata.key)
        observation = self._view.observe(authentic, profile, now)
        step = decide(observation, now)
        if not isinstance(step, EvaluateGates):
            return observation
        gates = await self._gates.evaluate(step.gates.names)
        if self._view.config(authentic.config.metadata.key) is not read:
            return replace(observation, unsettled="the config has changed while its gates were evaluated")
        return replace(self._view.observe(authentic, profile, now), gates=gates)

    async def _offer(self, key: Key, profile: Profile) -> Outcome:
        """Create the config of a profile that is advertised, with action Ignore."""
        self._reporter.gone(key)
        if not profile.about.is_advertised:
            return Done()
        if self._view.is_unknown(key):
            return RequeueAfter(SOON, "the configs are being listed") if self._view.is_filling() else Done()
        await advertise(self._client, profile, self._view.options.docs_url)
        log.info("profile offered", profile=profile.name)
        return Done()

    def _is_behind(self, config: VirtPlatformConfig) -> bool:
        ref = Ref(VIRT_PLATFORM_CONFIG, config.metadata.key)
        return self._view.freshness.is_behind(ref, config.metadata.resource_version)

    async def _act(self, observation: AdvisorObservation, profile: Profile, step: Step, now: datetime) -> StepResult:
        status = observation.config.status
        match step:
            case Redraft(reason):
                log.info("plan is drafted", config=profile.name, reason=reason)
                return await self._draft(observation, profile, now)
            case ApplyItem():
                return await self._apply(observation, profile, step)
            case EvaluateGates():
                raise AssertionError(step)  # `_observe` has evaluated them
            case AwaitItem(item) | CompleteItem(item) if status.plan_action == "Rollback":
                await self._disclaim(item)
            case Enforce(items):
                if isinstance(self._enforcements.take(profile.name, self._clock.now()), BucketEmpty):
                    return StepResult(status, MarkDrifted(items, observation.drift_details))
                self._reporter.enforced(observation.config, items)
        return StepResult(status, step)

    async def _draft(self, observation: AdvisorObservation, profile: Profile, now: datetime) -> StepResult:
        status = observation.config.status
        is_rollback = observation.config.spec.action == "Rollback"
        context = self._view.context(observation.config, profile)
        drafting = (
            self._draft_rollback(status, profile, context)
            if is_rollback
            else draft_plan(self._client, profile, context)
        )
        match await drafting:
            case Drafted(drafted):
                items = tuple(self._judged(item, context, rollback=is_rollback) for item in drafted)
                observation = with_adoption(observation, items, context.targets)
                status = observation.config.status
                if isinstance(observation.integrity, Unrecorded) and may_stand(observation.config, items):
                    return StepResult(status, RestoreStatus("the plan of version 0.1 is what this version plans"))
                digest = plan_hash(profile.name, items, back=is_rollback, executions=status.executions)
                return StepResult(
                    with_plan(observation, items, digest), step_for_new_plan(observation, items, digest, now)
                )
            case TargetsMoving(why):
                return StepResult(status, RedraftLater(why))
            case DraftRejected(item, why):
                return StepResult(with_plan(observation, (), ""), RejectPlan(item, why))

    def _judged(self, item: PlanItem, context: ProfileContext, *, rollback: bool) -> PlanItem:
        live = context.targets.get(ref_to(item.target_ref))
        return judged(item, self._view.health(item, live, rollback=rollback))

    async def _draft_rollback(
        self, status: VirtPlatformConfigStatus, profile: Profile, context: ProfileContext
    ) -> Draft:
        namespace = self._view.options.namespace
        image = await load(self._client, namespace, profile.name, status.pre_image)
        if image is None:
            return DraftRejected("rollback", "no record of an executed plan exists, so nothing can be rolled back")
        return await draft_rollback_plan(self._client, image, context)

    async def _apply(self, observation: AdvisorObservation, profile: Profile, step: ApplyItem) -> StepResult:
        status = observation.config.status
        if not writes_only(step.item, profile.targets):
            return StepResult(status, FailTampered(f"items[{step.item.name}] is not of this profile"))
        if status.plan_action == "Rollback":
            return StepResult(status, await self._roll_back(observation, step.item))
        if status.pre_image != record_name(profile.name, status.plan_hash):  # before anything of this plan is written
            await self._record(observation, profile)
        return StepResult(status, await self._write(observation, profile, step.item))

    async def _record(self, observation: AdvisorObservation, profile: Profile) -> None:
        status, namespace = observation.config.status, self._view.options.namespace
        targets = self._view.context(observation.config, profile).targets
        earlier = await load(self._client, namespace, profile.name, status.pre_image)
        owner = owner_of(profile.name)
        image = capture(owner, status.plan_hash, status.items, targets, earlier)
        await save(self._client, owner, namespace, image)

    async def _roll_back(self, observation: AdvisorObservation, item: PlanItem) -> StatusStep:
        match await write_rollback(self._client, owner_of(observation.config.metadata.name), item):
            case AlreadyGone():
                return self._awaited(item, self._view.health(item, None, rollback=True))
            case Written(live):
                self._view.freshness.expect(ref_to(item.target_ref), live["metadata"]["resourceVersion"])
                return self._awaited(item, self._view.health(item, live, rollback=True))
            case ItemOutdated(why):
                return FailStale(why)
            case WriteRefused(why):
                return failed_item(observation, item, f"Not rolled back: {why}")

    async def _disclaim(self, item: PlanItem) -> None:
        """Own nothing of what was restored, even if an earlier process ended right after restoring it."""
        live = self._view.target(ref_to(item.target_ref))
        if live is not None and not is_disclaimed(live):
            await disclaim(self._client, live)

    async def _write(self, observation: AdvisorObservation, profile: Profile, item: PlanItem) -> StatusStep:
        bypass = observation.config.spec.bypass_optimistic_lock
        match await write(self._client, owner_of(profile.name), item, bypass=bypass):
            case Written(live, overwrote):
                if overwrote:
                    self._reporter.overwrote(observation.config, item)
                self._view.freshness.expect(ref_to(item.target_ref), live["metadata"]["resourceVersion"])
                return self._awaited(item, self._view.health(item, live))
            case ItemOutdated(why):
                return FailStale(why)
            case WriteRefused(why):
                return failed_item(observation, item, f"Not applied: {why}")

    @staticmethod
    def _awaited(item: PlanItem, health: Health) -> StatusStep:
        if isinstance(health, Ready):
            return CompleteItem(item, health.message)
        return AwaitItem(item, health.message, None)

    async def _report(
        self, read: VirtPlatformConfig, observation: AdvisorObservation, result: StepResult, now: datetime
    ) -> Outcome:
        config = observation.config
        status = next_status(observation, result.status, result.step, now)
        if status == read.status and not isinstance(observation.integrity, Unrecorded):
            self._reporter.show(config.metadata.name, status)
            return result.step.requeue(observation, now)
        try:
            written = await self._save(read, observation, status)
        except Conflict:
            return RequeueAfter(SOON, "the config has changed since it was read")
        ref = Ref(VIRT_PLATFORM_CONFIG, config.metadata.key)
        self._view.freshness.expect(ref, written["metadata"]["resourceVersion"])
        if isinstance(observation.integrity, Altered):
            self._reporter.tampered(read, restored(str(observation.integrity)))
        self._reporter.report(config, status)
        return result.step.requeue(observation, now)

    async def _save(
        self, read: VirtPlatformConfig, observation: AdvisorObservation, status: VirtPlatformConfigStatus
    ) -> Object:
        """Save the record, then the status: a later process takes a status without a record for somebody else's.

        A status that looks altered may only be older than our cache should be. The write of it fails then, so that
        comes first, and nothing wrong is recorded.
        """
        profile = read.metadata.name
        record = next_record(read, await self._records.load(profile), status, self._clock.utc())
        is_doubtful = isinstance(observation.integrity, Altered)
        if record and not is_doubtful:
            await self._records.save(profile, record)
        written = await write_status(self._client, read, status)
        if record and is_doubtful:
            await self._records.save(profile, record)
        return written


def _keeps_phase(observation: AdvisorObservation, step: Settle | RedraftLater) -> bool:
    """Whether the phase is kept while something is waited for. What another advisor left decides what comes next."""
    status = observation.config.status
    if isinstance(observation.integrity, Adopted) or has_offer(status):
        return True
    return isinstance(step, Settle) and status.phase not in STARTING
