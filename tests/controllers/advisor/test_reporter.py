"""What the reporter does when a status has changed: events, notifications and metrics, each once."""

from datetime import timedelta
from typing import Any

import msgspec
import pytest
from prometheus_client import CollectorRegistry

from tests.controllers.advisor.builders import EARLIER, NOON, TEN, a_config, a_status, an_item, an_observation, done
from tests.controllers.advisor.process import Start
from tests.controllers.advisor.rig import AdvisorRig, Listener
from tests.controllers.approver.process import SHORT_LEASE, home_of
from tests.grants import Account
from tests.leftovers import delete_all
from tests.other_leader import Scraped, deleting, let_another_lead
from tests.ports import a_free_port
from tests.runtime.clocks import ManualClock
from virt_steward.apis.profiles import LOAD_AWARE
from virt_steward.apis.virtplatformconfig import VIRT_PLATFORM_CONFIG, PlanApproval, VirtPlatformConfigStatus
from virt_steward.controllers.advisor.report import next_status, with_plan
from virt_steward.controllers.advisor.reporter import AdvisorReporter
from virt_steward.controllers.advisor.steps import (
    AdoptVersion,
    AwaitReview,
    Begin,
    CompleteItem,
    FailItem,
    Finish,
    Ignore,
    LackPrerequisites,
    MarkDrifted,
    RedraftLater,
    StatusStep,
)
from virt_steward.kube.events import Occurrence
from virt_steward.objects.identity import Key, Ref
from virt_steward.runtime.access import LEASE, lease_of

PLAN = "a" * 64


class RecordedEvents:
    """A recorder that keeps the events."""

    def __init__(self) -> None:
        self.heard: list[Occurrence] = []

    def once(self, occurrence: Occurrence) -> None:
        self.heard.append(occurrence)

    def again(self, occurrence: Occurrence) -> None:
        self.heard.append(occurrence)


class Harness:
    """A reporter with everything that it reports to."""

    def __init__(self) -> None:
        self.events = RecordedEvents()
        self.notifications = Listener()
        self.registry = CollectorRegistry()
        self.reporter = AdvisorReporter(self.events, self.notifications, ManualClock(), self.registry)  # type: ignore[arg-type]

    def report(self, status: VirtPlatformConfigStatus, step: StatusStep, **config: Any) -> VirtPlatformConfigStatus:
        around = a_config(status, **{"notify": "ops", **config})
        after = next_status(an_observation(around), status, step, NOON)
        self.reporter.report(around, after)
        return after

    @property
    def reasons(self) -> list[str]:
        return [one.reason for one in self.events.heard]

    def sample(self, name: str, **labels: str) -> float | None:
        return self.registry.get_sample_value(name, {"profile": LOAD_AWARE, **labels})


@pytest.mark.parametrize(
    ("before", "step", "phase", "kind"),
    [
        (a_status(None), AwaitReview("PlanReady", "look"), "ReviewRequired", "Normal"),
        (a_status(None), LackPrerequisites(("it",)), "PrerequisiteFailed", "Warning"),
        (a_status("InProgress", an_item(state="Completed")), Finish(), "Completed", "Normal"),
        (a_status("InProgress", an_item(state="Failed")), Finish(("a",)), "CompletedWithErrors", "Warning"),
        (done(), MarkDrifted(done().items), "Drifted", "Warning"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_reporter_sends_event_and_notification(
    before: VirtPlatformConfigStatus, step: StatusStep, phase: str, kind: str
) -> None:
    harness = Harness()
    after = harness.report(before, step)
    assert [(one.reason, one.type) for one in harness.events.heard] == [(phase, kind)]
    assert [one.data["reason"] for one in harness.notifications.heard] == [phase]
    assert harness.notifications.heard[0].data["planHash"] == after.plan_hash


def test_reporter_is_silent_while_drafting() -> None:
    harness = Harness()
    harness.report(a_status(None), RedraftLater("something moved"))
    assert (harness.events.heard, harness.notifications.heard) == ([], [])


def test_reporter_reports_status_once() -> None:
    harness = Harness()
    after = harness.report(a_status(None), AwaitReview("PlanReady", "look"))
    harness.report(after, AwaitReview("PlanReady", "look"))
    assert harness.reasons == ["ReviewRequired"]


def test_reporter_reports_another_plan_in_review() -> None:
    harness = Harness()
    first = harness.report(a_status(None), AwaitReview("PlanReady", "look"))
    config = a_config(first, notify="ops")
    another = with_plan(an_observation(config), (an_item(),), "b" * 64)
    after = next_status(an_observation(config), another, AwaitReview("PlanReady", "look"), NOON)
    harness.reporter.report(config, after)
    assert harness.reasons == ["ReviewRequired", "ReviewRequired"]
    assert len({one.key for one in harness.events.heard}) == 2
    assert [one.data["planHash"] for one in harness.notifications.heard] == [PLAN, "b" * 64]
    assert len({one.id for one in harness.notifications.heard}) == 2


def test_reporter_reports_changed_inputs() -> None:
    harness = Harness()
    config = a_config(done(), notify="ops", action="Apply")
    around = an_observation(config, inputs=TEN)
    harness.reporter.report(config, next_status(around, config.status, AwaitReview("InputChanged", "look"), NOON))
    assert harness.reasons == ["ReviewRequired", "InputDependencyDrift"]
    assert [one.data["reason"] for one in harness.notifications.heard] == ["ReviewRequired", "InputDependencyDrift"]


def test_reporter_skips_unknown_endpoint() -> None:
    harness = Harness()
    harness.report(done(), MarkDrifted(done().items), notify="elsewhere")
    assert harness.notifications.heard == []


def test_reporter_reports_and_measures_items() -> None:
    harness = Harness()
    running = an_item(state="InProgress", last_transition_time=NOON - timedelta(seconds=90))
    harness.report(a_status("InProgress", running), CompleteItem(running, "ready"))
    assert harness.reasons[0] == "ItemCompleted"
    assert harness.sample("virt_advisor_item_duration_seconds_sum", item=running.name) == 90


@pytest.mark.parametrize("state", ["Completed", "Failed"])
def test_reporter_measures_item_that_ends_at_once(state: str) -> None:
    harness = Harness()
    item = an_item(last_transition_time=NOON - timedelta(hours=1))
    step = CompleteItem(item, "ready") if state == "Completed" else FailItem(item, "refused")
    harness.report(a_status("InProgress", item), step)
    assert harness.sample("virt_advisor_item_duration_seconds_count", item=item.name) == 1
    assert harness.sample("virt_advisor_item_duration_seconds_sum", item=item.name) == 0


def test_reporter_does_not_measure_item_that_was_not_executed() -> None:
    harness = Harness()
    harness.report(
        a_status("CompletedWithErrors", an_item(state="Failed")), AdoptVersion("ManuallyAligned", done().items)
    )
    assert harness.sample("virt_advisor_item_duration_seconds_count", item=an_item().name) is None


def test_reporter_metrics_follow_phase() -> None:
    harness = Harness()
    drifted = harness.report(done(), MarkDrifted(done().items))
    assert harness.sample("virt_advisor_drift") == 1
    assert harness.sample("virt_advisor_phase", phase="Drifted") == 1
    assert harness.sample("virt_advisor_phase_timestamp_seconds", phase="Drifted") == NOON.timestamp()
    begun = harness.report(
        msgspec.structs.replace(drifted, phase="ReviewRequired"), Begin(PlanApproval(PLAN, EARLIER)), action="Apply"
    )
    assert harness.sample("virt_advisor_drift") == 0
    assert harness.sample("virt_advisor_phase", phase="Drifted") is None
    harness.report(begun, Ignore(), action="Ignore")
    assert harness.sample("virt_advisor_drift") is None
    assert harness.sample("virt_advisor_phase", phase="InProgress") is None


def test_reporter_warns_of_enforcement() -> None:
    harness = Harness()
    harness.reporter.enforced(a_config(done()), done().items)
    (event,) = harness.events.heard
    assert (event.type, event.reason) == ("Warning", "LockBypassed")
    assert "KubeDescheduler" in event.note


def test_reporter_warns_of_overwritten_target() -> None:
    harness = Harness()
    harness.reporter.overwrote(a_config(a_status("InProgress")), an_item())
    (event,) = harness.events.heard
    assert (event.type, event.reason) == ("Warning", "LockBypassed")
    assert "KubeDescheduler configure-descheduler had changed since the plan was made" in event.note


async def test_config_that_is_deleted_while_another_process_leads_has_no_series(
    rig: AdvisorRig, account: Account, start: Start
) -> None:
    port, series = a_free_port(), "virt_advisor_phase{"
    metrics = Scraped(port)
    await rig.ask("DryRun")
    async with deleting(rig.client, Ref(LEASE, Key(home_of(account), lease_of("advisor")))) as lease:
        with start(*SHORT_LEASE, f"--metrics-bind-address=127.0.0.1:{port}"):
            assert await metrics.shows(series)
            await let_another_lead(rig.client, lease)
            assert await metrics.shows(series, 'leader_election_master_status{name="advisor"} 0.0')
            await delete_all(rig.client, VIRT_PLATFORM_CONFIG)
            assert await metrics.shows_no_more(series)
