"""Tells people and machines what was decided: log, events, metrics, notices."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import structlog
from prometheus_client import Counter, Histogram

from virt_steward.controllers.approver.events import ApprovalEvents, regarding
from virt_steward.controllers.approver.metrics import ApproverMetrics
from virt_steward.controllers.approver.report import newly_counted
from virt_steward.controllers.approver.verdicts import PlanReason, WaitForPlan
from virt_steward.kube.events import Occurrence

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from prometheus_client import CollectorRegistry

    from virt_steward.apis.installplanapprover import InstallPlanApproverStatus
    from virt_steward.controllers.approver.decide import ApprovalDecision, PlanDecision
    from virt_steward.controllers.approver.memory import WaitingPlan
    from virt_steward.controllers.approver.notifications import ApproverNotifications
    from virt_steward.controllers.approver.observation import Approver
    from virt_steward.controllers.approver.olm import InstallPlan
    from virt_steward.kube.events import Recorder
    from virt_steward.objects.identity import Key
    from virt_steward.runtime.clock import Clock

log = structlog.get_logger()

PASSING = frozenset({PlanReason.SUBSCRIPTION_BEHIND})
"""True for a moment in the life of every plan: nobody needs to hear of it."""
ALARMING = frozenset(
    {
        PlanReason.RIDES_ALONG,
        PlanReason.UNREADABLE,
        PlanReason.NAMESPACE_DENIED,
        PlanReason.UNKNOWN_PACKAGE,
        PlanReason.BAD_POLICY,
    }
)


class ApproverReporter:
    """Each decision is told once, when it is new."""

    def __init__(
        self, recorder: Recorder, notices: ApproverNotifications, clock: Clock, registry: CollectorRegistry
    ) -> None:
        self._recorder = recorder
        self._notices = notices
        self._clock = clock
        self._announcer = ApprovalEvents(recorder, notices, clock)
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
            "Seconds from seeing a plan in RequiresApproval to its approval, where nothing had to be waited for.",
            buckets=(0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 5, 30),
            registry=registry,
        )
        self._pending = ApproverMetrics(registry)

    @property
    def endpoints(self) -> Collection[str]:
        """Where notices can go, by name."""
        return self._notices.endpoints

    def opened(self, plan: Key) -> None:
        """The plan began to wait for approval, as far as we can see."""
        self._opened.setdefault(plan, self._clock.now())

    def closed(self, plan: Key) -> None:
        self._opened.pop(plan, None)

    def approved(self, plan: InstallPlan, approval: ApprovalDecision) -> None:
        """Log and measure it. Events and notices follow the stamp, when it is counted."""
        key, by = plan.metadata.key, approval.approver.metadata.key
        log.info("approved InstallPlan", plan=str(key), csvs=plan.csvs, approver=str(by), because=approval.because)
        self._approved.inc()
        self._approvals.labels(key.namespace).inc()
        if (since := self._opened.pop(key, None)) is not None:
            self._latency.observe(self._clock.now() - since)

    def waits(self, plan: InstallPlan, decision: PlanDecision, news: Collection[Key]) -> None:
        """Said when a plan begins to wait, or waits for something else than before; `news` are the approvers of whom.

        What the others wait for has been told.
        """
        for opinion in decision.opinions:
            approver, wait = opinion.approver.metadata.key, opinion.verdict
            if approver not in news or not isinstance(wait, WaitForPlan) or wait.reason in PASSING:
                continue
            self.closed(plan.metadata.key)  # what has to wait is not measured as latency
            self._decisions.labels(wait.reason).inc()
            log.info(
                "skipping InstallPlan",
                plan=str(plan.metadata.key),
                csvs=plan.csvs,
                approver=str(approver),
                reason=wait.reason,
                why=wait.message,
            )
            note = f"not approved by InstallPlanApprover {approver}: {wait.message}"
            kind: Literal["Warning", "Normal"] = "Warning" if wait.reason in ALARMING else "Normal"
            episode = f"{approver} {','.join(plan.csvs)}"
            self._recorder.once(Occurrence(regarding(plan), kind, wait.reason, "Wait", note, episode))
            self._notices.waits(plan, opinion.approver, wait)

    def waiting(self, approver: Key, waiting: Collection[WaitingPlan]) -> None:
        """All that wait now, also those that its status does not show."""
        self._pending.show(approver, waiting)
        self._notices.caught_up(approver)

    def status(self, approver: Approver, status: InstallPlanApproverStatus, plans: Iterable[InstallPlan]) -> None:
        """Before it is written: tell of what it counts and the present one does not."""
        self._announcer.tell(approver, newly_counted(approver.status, status, plans), status.approved_count)

    def is_telling(self, approver: Key) -> bool:
        """Whether the server should hear more of what was told before it gets the status."""
        return self._announcer.is_telling(approver)

    def gone(self, approver: Key) -> None:
        """The approver was deleted: its series must not go on."""
        self._pending.remove(approver)
        self._announcer.gone(approver)
        self._notices.gone(approver)
