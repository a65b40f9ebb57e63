"""What people and machines hear of a decision: once, in time, and measured only where it means something."""

import asyncio
from functools import partial
from typing import Any

import pytest
from prometheus_client import CollectorRegistry

from tests.controllers.approver.builders import NOON, V1, a_pinned_install, a_plan, an_approver, waiting
from tests.controllers.approver.test_notices import TOO_YOUNG, Outbox, a_crowd, after_a_report
from tests.runtime.clocks import ManualClock
from virt_steward.controllers.approver.decide import ApproverVerdict, PlanDecision, decide
from virt_steward.controllers.approver.notifications import ApproverNotifications
from virt_steward.controllers.approver.reporter import ApproverReporter
from virt_steward.controllers.approver.verdicts import PlanReason, WaitForPlan
from virt_steward.objects.identity import Key
from virt_steward.runtime.notifications import NotificationSender

ANN = Key("approvers", "ann")
PLAN = a_plan(V1)
LATENCY = "installplan_approver_approval_latency_seconds"


class Listener:
    """Keeps what would become events."""

    def __init__(self) -> None:
        self.heard: list[Any] = []
        self.arrived = asyncio.Event()
        self.arrived.set()

    async def flush(self, _grace: float) -> None:
        await self.arrived.wait()

    def once(self, occurrence: Any) -> None:
        self.heard.append(occurrence)


class Nobody:
    """There is no endpoint for notices."""

    endpoints = ()

    def send(self, endpoint: str, _notice: Any) -> None:
        raise AssertionError(endpoint)


class Story:
    """A reporter and whatever comes of what it tells."""

    def __init__(self, notify: NotificationSender | None = None) -> None:
        self.clock = ManualClock()
        self.listener = Listener()
        self._registry = CollectorRegistry()
        notices = ApproverNotifications(notify or Nobody(), self.clock)
        self.reporter = ApproverReporter(self.listener, notices, self.clock, self._registry)  # type: ignore[arg-type]

    def metric(self, name: str, **labels: str) -> float | None:
        return self._registry.get_sample_value(name, labels)

    def opens(self) -> None:
        self.reporter.plan_changed(PLAN.metadata.key, a_plan(V1, phase=""), PLAN)

    def approves(self) -> None:
        approval = decide(a_pinned_install(), NOON).approval
        assert approval
        self.reporter.approved(PLAN, approval)

    def waits(self, reason: PlanReason) -> None:
        self.reporter.pending(
            PLAN, PlanDecision((ApproverVerdict(an_approver(), WaitForPlan(reason, "not now")),)), [ANN]
        )


def test_namespace_that_is_gone_has_no_series() -> None:
    story = Story()
    story.approves()
    counted = partial(story.metric, "installplan_approver_approvals_total", namespace="shop")
    for gone in (Key("", "garden"), Key("", "shop")):
        assert counted() == 1
        story.reporter.namespace_changed(gone, object(), None)
    assert counted() is None
    story.reporter.namespace_changed(Key("", "shop"), object(), None)
    story.approves()
    story.reporter.namespace_changed(Key("", "shop"), object(), object())
    assert counted() == 1


async def test_the_latency_of_an_approval_runs_from_the_plans_opening() -> None:
    story = Story()
    story.opens()
    await story.clock.advance(0.5)
    story.opens()
    story.approves()
    assert story.metric(f"{LATENCY}_sum") == 0.5
    story.approves()
    assert story.metric(f"{LATENCY}_count") == 1
    assert story.metric("installplan_approver_approvals_total", namespace="shop") == 2
    assert story.metric("installplan_approver_decisions_total", reason="Approved") == 2


@pytest.mark.parametrize(
    ("reason", "measured"),
    [
        pytest.param(PlanReason.SUBSCRIPTION_BEHIND, 1, id="a-moment-that-every-plan-passes-is-measured"),
        pytest.param(PlanReason.NOT_PINNED, 0, id="a-wait-for-a-person-is-not"),
        pytest.param(PlanReason.OUTSIDE_WINDOW, 0, id="a-wait-for-a-window-is-not"),
    ],
)
async def test_of_what_a_plan_waits_for(reason: PlanReason, measured: int) -> None:
    story = Story()
    story.opens()
    story.waits(reason)
    story.approves()
    assert story.metric(f"{LATENCY}_count") == measured


def test_a_moment_that_every_plan_passes_is_not_told() -> None:
    story = Story()
    story.waits(PlanReason.SUBSCRIPTION_BEHIND)
    assert story.listener.heard == []
    assert story.metric("installplan_approver_decisions_total", reason="SubscriptionBehind") is None


@pytest.mark.parametrize(
    ("reason", "kind"),
    [
        (PlanReason.NOT_PINNED, "Normal"),
        (PlanReason.RIDES_ALONG, "Warning"),
        (PlanReason.UNREADABLE, "Warning"),
        (PlanReason.BAD_POLICY, "Warning"),
    ],
)
def test_a_wait_is_an_event_on_the_plan(reason: PlanReason, kind: str) -> None:
    story = Story()
    story.waits(reason)
    story.waits(reason)
    first, second = story.listener.heard
    assert (first.type, first.reason, first.regarding.uid) == (kind, reason, PLAN.metadata.uid)
    assert "approvers/ann: not now" in first.note
    assert first.key == second.key  # so it is told once, also across restarts


@pytest.mark.parametrize("reports", [0, 1], ids=["not-before-the-first-report", "from-the-first-report-on"])
def test_what_a_crowd_out_of_sight_waits_for_is_noticed(reports: int) -> None:
    outbox, plan = Outbox(), a_crowd()[-1]
    story, ann = Story(outbox), after_a_report(a_crowd())
    for _ in range(reports):
        story.reporter.all_pending(ANN, ())
    story.reporter.pending(plan, PlanDecision((ApproverVerdict(ann, TOO_YOUNG),)), [ANN])
    assert len(outbox.sent) == reports
    assert [one.reason for one in story.listener.heard] == ["TooYoung"]  # an event is the same one by its name


def test_only_what_is_news_is_told() -> None:
    story = Story()
    pinned, late = WaitForPlan(PlanReason.NOT_PINNED, "pin it"), WaitForPlan(PlanReason.TOO_YOUNG, "too young")
    decision = PlanDecision((ApproverVerdict(an_approver("ann"), pinned), ApproverVerdict(an_approver("bob"), late)))
    story.reporter.pending(PLAN, decision, [Key("approvers", "bob")])
    assert [one.reason for one in story.listener.heard] == ["TooYoung"]
    assert story.metric("installplan_approver_decisions_total", reason="NotPinned") is None
    assert story.metric("installplan_approver_decisions_total", reason="TooYoung") == 1


def test_the_gauge_of_what_waits_goes_with_its_approver() -> None:
    story = Story()
    labels = {"namespace": "approvers", "approver": "ann"}
    story.reporter.all_pending(ANN, [waiting(PLAN, WaitForPlan(PlanReason.NOT_PINNED, "not pinned"))])
    assert story.metric("installplan_approver_pending", **labels) == 1
    story.reporter.approver_deleted(ANN)
    story.reporter.approver_deleted(ANN)
    assert story.metric("installplan_approver_pending", **labels) is None
