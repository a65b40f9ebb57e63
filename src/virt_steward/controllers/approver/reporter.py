"""Reports decisions of the approver: log, events, metrics, notifications."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import structlog
from prometheus_client import Counter, Gauge, Histogram

from virt_steward.controllers.approver.events import ApprovalEvents, regarding
from virt_steward.controllers.approver.report import newly_counted
from virt_steward.controllers.approver.verdicts import PlanReason, WaitForPlan
from virt_steward.kube.events import Occurrence
from virt_steward.runtime.decision_events import report_decision

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from prometheus_client import CollectorRegistry

    from virt_steward.apis.installplanapprover import InstallPlanApproverStatus
    from virt_steward.controllers.approver.decide import ApprovalDecision, PlanDecision
    from virt_steward.controllers.approver.notifications import ApproverNotifications
    from virt_steward.controllers.approver.observation import Approver
    from virt_steward.controllers.approver.olm import InstallPlan
    from virt_steward.controllers.approver.pending import WaitingPlan
    from virt_steward.kube.events import Recorder
    from virt_steward.objects.identity import Key
    from virt_steward.runtime.clock import Clock

log = structlog.get_logger()

TRANSIENT = frozenset({PlanReason.SUBSCRIPTION_BEHIND})
"""Every plan passes through these within a moment: they are not reported."""
WARNINGS = frozenset(
    {
        PlanReason.RIDES_ALONG,
        PlanReason.UNREADABLE,
        PlanReason.NAMESPACE_DENIED,
        PlanReason.UNKNOWN_PACKAGE,
        PlanReason.BAD_POLICY,
    }
)


class ApproverReporter:
    """Reports each decision once, when it is new."""

    def __init__(
        self, recorder: Recorder, notifications: ApproverNotifications, clock: Clock, registry: CollectorRegistry
    ) -> None:
        self._recorder = recorder
        self._notifications = notifications
        self._clock = clock
        self._approval_events = ApprovalEvents(recorder, notifications, clock)
        self._opened: dict[Key, float] = {}
        self._decisions = Counter(
            "installplan_approver_decisions", "Verdicts on InstallPlans.", ["reason"], registry=registry
        )
        self._approved = self._decisions.labels("Approved")
        self._approvals = Counter(
            "installplan_approver_approvals", "InstallPlans approved.", ["namespace"], registry=registry
        )
        self._latency = Histogram(
            "installplan_approver_approval_latency_seconds",
            "Seconds from observing a plan in RequiresApproval to its approval, unless it was pending in between.",
            buckets=(0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 5, 30),
            registry=registry,
        )
        self._gauges = ApproverMetrics(registry)

    @property
    def endpoints(self) -> Collection[str]:
        """The names of the notification endpoints."""
        return self._notifications.endpoints

    def plan_changed(self, plan: Key, before: InstallPlan | None, after: InstallPlan | None) -> None:
        """A listener of the plan informer: note when a plan opens, from where its latency runs.

        A plan that closes is forgotten by its reconcile (`closed`), not here: the watch may show our own approval
        before the server has answered it, and then its latency is still to be measured.
        """
        if after is None:
            self.closed(plan)
        elif before and after.is_open and not before.is_open:
            self._opened.setdefault(plan, self._clock.now())

    def namespace_changed(self, namespace: Key, _before: object, after: object | None) -> None:
        """A listener of the namespace informer: remove the series of a deleted namespace."""
        if after is None:
            self._approvals.remove(namespace.name)

    def closed(self, plan: Key) -> None:
        """Its latency is not to be measured (any more)."""
        self._opened.pop(plan, None)

    def approved(self, plan: InstallPlan, approval: ApprovalDecision) -> None:
        """Log and measure it. Events and notifications follow when the status counts it."""
        key, by = plan.metadata.key, approval.approver.metadata.key
        log.info("approved InstallPlan", plan=str(key), csvs=plan.csvs, approver=str(by), reason=approval.reason)
        self._approved.inc()
        self._approvals.labels(key.namespace).inc()
        if (since := self._opened.pop(key, None)) is not None:
            self._latency.observe(self._clock.now() - since)

    def approved_manually(self, plan: InstallPlan) -> None:
        """Report the approval of a person, if it carries one."""
        report_decision(self._recorder, plan.signature.record(plan.csvs), regarding(plan), self._clock.utc())

    def pending(self, plan: InstallPlan, decision: PlanDecision, changed: Collection[Key]) -> None:
        """Report the verdicts of the `changed` approvers; those of the others were reported before."""
        for opinion in decision.verdicts:
            approver, wait = opinion.approver.metadata.key, opinion.verdict
            if approver not in changed or not isinstance(wait, WaitForPlan) or wait.reason in TRANSIENT:
                continue
            self.closed(plan.metadata.key)  # the time in which a plan is pending is no latency
            self._decisions.labels(wait.reason).inc()
            log.info(
                "skipping InstallPlan",
                plan=str(plan.metadata.key),
                csvs=plan.csvs,
                approver=str(approver),
                reason=wait.reason,
                message=wait.message,
            )
            note = f"not approved by InstallPlanApprover {approver}: {wait.message}"
            kind: Literal["Warning", "Normal"] = "Warning" if wait.reason in WARNINGS else "Normal"
            episode = f"{approver} {','.join(plan.csvs)}"
            self._recorder.once(Occurrence(regarding(plan), kind, wait.reason, "Wait", note, episode))
            self._notifications.pending(plan, opinion.approver, wait)

    def all_pending(self, approver: Key, waiting: Collection[WaitingPlan]) -> None:
        """All pending plans of an approver, also those that its status does not show."""
        self._gauges.set(approver, waiting)
        self._notifications.caught_up(approver)

    def status(self, approver: Approver, status: InstallPlanApproverStatus, plans: Iterable[InstallPlan]) -> None:
        """Before a status is written: report the approvals that it counts and the present one does not."""
        self._approval_events.report(approver, newly_counted(approver.status, status, plans), status.approved_count)

    def is_sending(self, approver: Key) -> bool:
        """Whether events of its approvals are still being sent, which the status must not overtake."""
        return self._approval_events.is_sending(approver)

    def approver_deleted(self, approver: Key) -> None:
        """Remove its series and all that is remembered of it."""
        self._gauges.remove(approver)
        self._approval_events.forget(approver)
        self._notifications.forget(approver)


class ApproverMetrics:
    """Gauges for alerts: how many plans are pending, for which reason and since when. Old series are removed."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._count = Gauge(
            "installplan_approver_pending",
            "Pending InstallPlans.",
            ["namespace", "approver"],
            registry=registry,
        )
        self._oldest = Gauge(
            "installplan_approver_oldest_pending_timestamp_seconds",
            "Since when the longest pending InstallPlan is pending for this reason, in Unix time.",
            ["namespace", "approver", "reason"],
            registry=registry,
        )
        self._shown: dict[Key, frozenset[str]] = {}

    def set(self, approver: Key, waiting: Collection[WaitingPlan]) -> None:
        oldest: dict[str, float] = {}
        for one in waiting:
            since = one.since.timestamp()
            oldest[one.wait.reason] = min(since, oldest.get(one.wait.reason, since))
        self._forget(approver, self._shown.get(approver, frozenset()) - oldest.keys())
        self._shown[approver] = frozenset(oldest)
        self._count.labels(approver.namespace, approver.name).set(len(waiting))
        for reason, since in oldest.items():
            self._oldest.labels(approver.namespace, approver.name, reason).set(since)

    def remove(self, approver: Key) -> None:
        """Remove the series of a deleted approver."""
        if approver in self._shown:
            self._forget(approver, self._shown.pop(approver))
            self._count.remove(approver.namespace, approver.name)

    def _forget(self, approver: Key, reasons: frozenset[str]) -> None:
        for reason in reasons:
            self._oldest.remove(approver.namespace, approver.name, reason)
