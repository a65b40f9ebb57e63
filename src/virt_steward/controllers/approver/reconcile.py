"""The approver controller: evaluates plans one by one, and writes the status of approvers at most once a second."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from virt_steward.controllers.approver.act import approve, require_approvals, write_status
from virt_steward.controllers.approver.conditions import ApproverEnvironment
from virt_steward.controllers.approver.decide import decide
from virt_steward.controllers.approver.observe import observe
from virt_steward.controllers.approver.pending import StatusMemory
from virt_steward.controllers.approver.policy import ADMISSION_POLICY
from virt_steward.controllers.approver.prepare import prepare, prepare_decision
from virt_steward.controllers.approver.report import fold
from virt_steward.controllers.approver.watches import ApproverEventHandlers, ApproverKey
from virt_steward.holds.gate_board import GateBoard
from virt_steward.kube.errors import Conflict, NotFound, Refused
from virt_steward.runtime.enforcement import is_enforced
from virt_steward.runtime.outcomes import Done, RequeueAfter

if TYPE_CHECKING:
    from collections.abc import Collection
    from datetime import datetime

    from virt_steward.apis.installplanapprover import InstallPlanApproverStatus
    from virt_steward.controllers.approver.decide import ApprovalDecision, PlanDecision
    from virt_steward.controllers.approver.observation import Approver, ApproverObservation
    from virt_steward.controllers.approver.observe import ApproverStores
    from virt_steward.controllers.approver.olm import InstallPlan
    from virt_steward.controllers.approver.pending import Pending
    from virt_steward.controllers.approver.reporter import ApproverReporter
    from virt_steward.controllers.approver.verdicts import WaitForPlan
    from virt_steward.kube.client import Client
    from virt_steward.objects.identity import Key
    from virt_steward.runtime.clock import Clock
    from virt_steward.runtime.controller import Trigger
    from virt_steward.runtime.outcomes import Outcome

BETWEEN_STATUS_WRITES = 1.0
EVENTS_RECHECK = 0.05
"""Seconds until a status is tried again whose events are still being sent."""
OUTDATED_RECHECK = 5.0
"""Seconds until a status is computed again. Watches catch up by the next event, or by a bookmark within a minute."""
RECHECK = 180.0
"""Seconds until a pending plan is evaluated again though nothing changed, in case an event was missed."""


@dataclass(frozen=True, slots=True)
class Draft:
    """A status that is about to be written: exactly what it counts has been reported."""

    approver: Approver
    status: InstallPlanApproverStatus
    is_outdated: bool
    """Whether approvals may be missing in it, because our watches may be behind the status of another process."""


class ApproverController:
    """Observes a plan, decides on it, approves it and reports; and writes the status of approvers."""

    def __init__(
        self, client: Client, stores: ApproverStores, pending: Pending, reporter: ApproverReporter, clock: Clock
    ) -> None:
        self._client = client
        self._stores = stores
        self._pending = pending
        self._reporter = reporter
        self._clock = clock
        self._handlers = ApproverEventHandlers(stores)
        self._approving: set[Key] = set()
        self._approved: dict[Key, str] = {}
        self._written: dict[Key, float] = {}
        self._drafts: dict[Key, Draft] = {}
        self._memory = StatusMemory()
        self._gates = GateBoard(client, stores.gates, clock)

    @property
    def triggers(self) -> tuple[Trigger[Any], ...]:
        return self._handlers.triggers

    async def reconcile(self, key: Key | ApproverKey) -> Outcome:
        if isinstance(key, ApproverKey):
            return await self._report(key.approver)
        return await self._evaluate(key)

    def plan_changed(self, key: Key, _before: InstallPlan | None, after: InstallPlan | None) -> None:
        """A listener of the plan informer: forget a closed plan. A reconcile for that alone would cost far more.

        The watch may show our own approval before the server has answered it: then `_approve` forgets the plan.
        """
        if (after is None or not after.is_open) and key not in self._approving:
            self._forget(key)

    def approver_changed(self, key: Key, _before: Approver | None, after: Approver | None) -> None:
        """A listener of the approver informer: forget a deleted one, also while another process leads.

        No later reconcile would: a new leader queues what exists.
        """
        if after is None:
            self._forget_approver(key)

    async def _evaluate(self, key: Key) -> Outcome:
        if self._is_open(key):
            await prepare_decision(self._stores, key.namespace, self._clock.utc())
        observation = await self._observe(key)
        if observation is None:
            self._forget(key)
            if (closed := self._stores.plans.get(key)) and closed.approved:
                self._reporter.approved_manually(closed)
            return Done()
        if self._approved.get(key) == observation.plan.metadata.resource_version:
            return Done()  # the watch does not show our own approval yet
        now = self._clock.utc()
        decision = decide(observation, now)
        if decision.is_by_people and not await is_enforced(self._client, ADMISSION_POLICY):
            decision = decision.unenforced()
        waits = decision.waits
        approval = decision.approval
        if approval is None or key not in self._pending:  # a refused approval stays pending until it succeeds
            self._keep(observation.plan, decision)
        if approval:
            await self._approve(observation.plan, decision, approval, now)
            return Done()
        if decision.required_approvals != observation.plan.metadata.required_approvals:
            await require_approvals(self._client, observation.plan, decision.required_approvals)
        if not waits:
            self._reporter.closed(key)  # no approver covers it, so this time is no latency
        return _recheck(waits.values(), now)

    async def _observe(self, key: Key) -> ApproverObservation | None:
        """Evaluate the gates too, if nothing but them keeps the plan from being approved. None: it is not open."""
        now = self._clock.utc()
        observation = observe(self._stores, key, now) if self._is_open(key) else None
        gates = decide(observation, now).gates if observation else ()
        if not gates:
            return observation
        states = await self._gates.evaluate(gates)
        again = observe(self._stores, key, self._clock.utc()) if self._is_open(key) else None
        return replace(again, gates=states) if again else None  # meanwhile, all else may have changed

    async def _approve(
        self, plan: InstallPlan, decision: PlanDecision, approval: ApprovalDecision, now: datetime
    ) -> None:
        key = plan.metadata.key
        self._approving.add(key)
        try:
            await approve(self._client, plan, approval, now)
        except Refused as error:
            if not isinstance(error, Conflict | NotFound):  # those mean that the plan has changed
                self._keep(plan, decision.refused(str(error)))
            raise
        finally:
            self._approving.discard(key)
        self._approved[key] = plan.metadata.resource_version
        self._reporter.approved(plan, approval)
        if not self._is_open(key):  # the watch was faster than the answer
            self._forget(key)

    def _is_open(self, key: Key) -> bool:
        plan = self._stores.plans.get(key)
        return plan is not None and plan.is_open

    def _forget(self, key: Key) -> None:
        """The plan is no longer open."""
        self._approved.pop(key, None)
        self._pending.forget(key)
        self._reporter.closed(key)

    def _forget_approver(self, key: Key) -> None:
        self._written.pop(key, None)
        self._drafts.pop(key, None)
        self._memory.forget(key)
        self._reporter.approver_deleted(key)

    def _keep(self, plan: InstallPlan, decision: PlanDecision) -> None:
        """Remember the verdict of each approver, and report those that are new."""
        if changed := self._pending.set(plan.metadata.key, decision.waits):
            self._reporter.pending(plan, decision, changed)

    async def _report(self, key: Key) -> Outcome:
        if known := self._stores.approvers.get(key):
            await prepare([known], self._clock.utc())
        approver = self._stores.approvers.get(key)
        if approver is None:
            self._forget_approver(key)
            return Done()
        draft = self._drafts.pop(key, None)
        if draft is None or draft.approver is not approver:
            early = self._written.get(key, 0.0) + BETWEEN_STATUS_WRITES - self._clock.now()
            if early > 0 or not self._is_complete():
                return RequeueAfter(max(early, 0.1), "statuses are written at most once a second")
            draft = self._draft(approver)
        if draft.status == approver.status:
            return RequeueAfter(OUTDATED_RECHECK, "its watches may be behind") if draft.is_outdated else Done()
        if self._reporter.is_sending(key):  # to wait here would occupy a worker
            self._drafts[key] = draft
            return RequeueAfter(EVENTS_RECHECK, "its events are sent first")
        self._written[key] = self._clock.now()
        try:
            await write_status(self._client, approver, draft.status)
        except Conflict:
            return RequeueAfter(BETWEEN_STATUS_WRITES, "the approver has changed meanwhile")
        return Done()

    def _draft(self, approver: Approver) -> Draft:
        key, now = approver.metadata.key, self._clock.utc()
        plans = self._stores.plans.values()
        found = ((self._stores.plans.get(name), wait) for name, wait in self._pending.of(key))
        # A plan that another process approved while it led was not evaluated here.
        open_ = ((plan, wait) for plan, wait in found if plan and plan.is_open)
        waiting = self._memory.with_times(approver, open_, now)
        namespaces = self._memory.namespaces(approver, plans) if self._stores.watched else {}
        outdated = self._memory.outdated(approver, self._stores.plan_versions)
        environment = ApproverEnvironment(
            self._reporter.endpoints,
            self._stores.denied,
            self._stores.watched,
            self._stores.policy_namespaces,
            namespaces,
            outdated,
        )
        status = fold(approver, plans, waiting, now, environment)
        self._reporter.all_pending(key, waiting)
        self._reporter.status(approver, status, plans)
        self._memory.leaves(key, status.counted_plans, outdated)
        return Draft(approver, status, is_outdated=bool(outdated))

    def _is_complete(self) -> bool:
        """Whether every open plan is evaluated: else a status would lose plans, and since when they are pending."""
        return all(plan.metadata.key in self._pending for plan in self._stores.plans if plan.is_open)


def _recheck(waits: Collection[WaitForPlan], now: datetime) -> Outcome:
    """When a window opens, an age is reached or a gate may be open; else after a while, in case an event was missed."""
    known = [(wait.until - now).total_seconds() for wait in waits if wait.until]
    known += [wait.recheck for wait in waits if wait.recheck is not None]
    if not known and not waits:
        return Done()
    return RequeueAfter(max(min([*known, RECHECK]), 0.0), "it is pending")
