"""The approver: plans are judged one by one; an approver's status is written at most once a second."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from virt_steward.controllers.approver.act import approve, write_status
from virt_steward.controllers.approver.conditions import Abilities
from virt_steward.controllers.approver.decide import decide
from virt_steward.controllers.approver.memory import Memory
from virt_steward.controllers.approver.observe import observe
from virt_steward.controllers.approver.report import fold
from virt_steward.controllers.approver.watches import ApproverEventHandlers, ApproverKey
from virt_steward.kube.errors import Conflict, NotFound, Refused
from virt_steward.runtime.outcomes import Done, RequeueAfter

if TYPE_CHECKING:
    from collections.abc import Collection
    from datetime import datetime

    from virt_steward.apis.installplanapprover import InstallPlanApproverStatus
    from virt_steward.controllers.approver.decide import PlanDecision
    from virt_steward.controllers.approver.observation import Approver
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
A_MOMENT = 0.05
"""Seconds until a status is tried again whose events are still on their way."""
LOOK_AGAIN = 180.0
"""Seconds until a waiting plan is judged anew though nothing happened: events should make it needless."""


@dataclass(frozen=True, slots=True)
class Draft:
    """A status that is about to be written: what it counts has been told, and nothing else."""

    approver: Approver
    status: InstallPlanApproverStatus


class ApproverController:
    """Joins seeing, deciding, acting and telling."""

    def __init__(
        self, client: Client, stores: ApproverStores, pending: Pending, reporter: ApproverReporter, clock: Clock
    ) -> None:
        self._client = client
        self._stores = stores
        self._pending = pending
        self._reporter = reporter
        self._clock = clock
        self._handlers = ApproverEventHandlers(stores, reporter.opened, self._let_go)
        self._approving: set[Key] = set()
        self._approved: dict[Key, str] = {}
        self._written: dict[Key, float] = {}
        self._drafts: dict[Key, Draft] = {}
        self._memory = Memory()

    @property
    def triggers(self) -> tuple[Trigger[Any], ...]:
        return self._handlers.triggers

    async def reconcile(self, key: Key | ApproverKey) -> Outcome:
        if isinstance(key, ApproverKey):
            return await self._report(key.approver)
        return await self._judge(key)

    async def _judge(self, key: Key) -> Outcome:
        plan = self._stores.plans.get(key)
        seen = observe(self._stores, key) if plan and plan.is_open else None
        if seen is None:
            self._let_go(key)
            return Done()
        if self._approved.get(key) == seen.plan.metadata.resource_version:
            return Done()  # our own approval has not come back yet
        now = self._clock.utc()
        decision = decide(seen, now)
        waits = decision.waits
        approval = decision.approval
        if approval is None or key not in self._pending:  # one that was refused stays so until it is approved
            self._keep(seen.plan, decision)
        if approval:
            self._approving.add(key)
            try:
                await approve(self._client, seen.plan, approval, now)
            except Refused as error:
                if not isinstance(error, Conflict | NotFound):  # those mean that there is something new to look at
                    self._keep(seen.plan, decision.refused(str(error)))
                raise
            finally:
                self._approving.discard(key)
            self._approved[key] = seen.plan.metadata.resource_version
            self._reporter.approved(seen.plan, approval)
            return Done()
        if not waits:
            self._reporter.closed(key)  # nobody is in charge, so nobody is slow
        return _look_again(waits.values(), now)

    def _let_go(self, key: Key) -> bool:
        """Forget a plan that is no longer open; not yet, if its approval is under way, which has to be told first."""
        if key in self._approving:
            return False
        self._approved.pop(key, None)
        self._pending.forget(key)
        self._reporter.closed(key)
        return True

    def _keep(self, plan: InstallPlan, decision: PlanDecision) -> None:
        """Remember who waits for what, and tell it if that is news."""
        if news := self._pending.set(plan.metadata.key, decision.waits):
            self._reporter.waits(plan, decision, news)

    async def _report(self, key: Key) -> Outcome:
        approver = self._stores.approvers.get(key)
        if approver is None:
            self._written.pop(key, None)
            self._drafts.pop(key, None)
            self._memory.forget(key)
            self._reporter.gone(key)
            return Done()
        draft = self._drafts.pop(key, None)
        if draft is None or draft.approver is not approver:
            early = self._written.get(key, 0.0) + BETWEEN_STATUS_WRITES - self._clock.now()
            if early > 0 or not self._everything_is_judged():
                return RequeueAfter(max(early, 0.1), "more may come")
            draft = self._draft(approver)
        if draft.status == approver.status:
            return Done()
        if self._reporter.is_telling(key):  # a worker that waited here would keep plans waiting
            self._drafts[key] = draft
            return RequeueAfter(A_MOMENT, "its events go first")
        self._written[key] = self._clock.now()
        try:
            await write_status(self._client, approver, draft.status)
        except Conflict:
            return RequeueAfter(BETWEEN_STATUS_WRITES, "the approver has changed meanwhile")
        return Done()

    def _draft(self, approver: Approver) -> Draft:
        key, now = approver.metadata.key, self._clock.utc()
        plans = {plan.metadata.key: plan for plan in self._stores.plans}
        # What another process did while it led may not have been judged here.
        open_ = ((plans[name], wait) for name, wait in self._pending.of(key) if name in plans and plans[name].is_open)
        waiting = self._memory.since(approver, open_, now)
        places = self._memory.places(approver, plans.values()) if self._stores.watched else {}
        abilities = Abilities(self._reporter.endpoints, self._stores.denied, self._stores.watched, places)
        status = fold(approver, plans.values(), waiting, now, abilities)
        self._reporter.waiting(key, waiting)
        self._reporter.status(approver, status, plans.values())
        return Draft(approver, status)

    def _everything_is_judged(self) -> bool:
        """Until then, a status would tell half the story, and forget since when plans wait."""
        return all(plan.metadata.key in self._pending for plan in self._stores.plans if plan.is_open)


def _look_again(waits: Collection[WaitForPlan], now: datetime) -> Outcome:
    """By the time that a window opens or an age is reached; else after a while, in case an event was missed."""
    known = [(wait.until - now).total_seconds() for wait in waits if wait.until]
    if not known and not waits:
        return Done()
    return RequeueAfter(max(min([*known, LOOK_AGAIN]), 0.0), "it waits for approval")
