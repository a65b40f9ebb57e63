"""What is told when a status has changed: events, notices, metrics, each once."""

from datetime import timedelta
from typing import Any

import msgspec
import pytest
from prometheus_client import CollectorRegistry

from tests.controllers.advisor.builders import EARLIER, NOON, TEN, a_config, a_status, an_item, an_observation, done
from tests.controllers.advisor.desk import Listener
from tests.runtime.clocks import ManualClock
from virt_steward.apis.virtplatformconfig import LOAD_AWARE, PlanApproval, VirtPlatformConfigStatus
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

PLAN = "a" * 64


class Notebook:
    """Takes events in the place of a recorder."""

    def __init__(self) -> None:
        self.heard: list[Occurrence] = []

    def once(self, occurrence: Occurrence) -> None:
        self.heard.append(occurrence)

    def again(self, occurrence: Occurrence) -> None:
        self.heard.append(occurrence)


class Room:
    """A reporter, and everybody who listens."""

    def __init__(self) -> None:
        self.events = Notebook()
        self.notices = Listener()
        self.registry = CollectorRegistry()
        self.reporter = AdvisorReporter(self.events, self.notices, ManualClock(), self.registry)  # type: ignore[arg-type]

    def tell(self, status: VirtPlatformConfigStatus, step: StatusStep, **config: Any) -> VirtPlatformConfigStatus:
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
def test_an_event_and_a_notice_tell_of(
    before: VirtPlatformConfigStatus, step: StatusStep, phase: str, kind: str
) -> None:
    room = Room()
    after = room.tell(before, step)
    assert [(one.reason, one.type) for one in room.events.heard] == [(phase, kind)]
    assert [one.data["reason"] for one in room.notices.heard] == [phase]
    assert room.notices.heard[0].data["planHash"] == after.plan_hash


def test_what_goes_without_saying_is_not_told() -> None:
    room = Room()
    room.tell(a_status(None), RedraftLater("something moved"))
    assert (room.events.heard, room.notices.heard) == ([], [])


def test_the_same_status_is_told_once() -> None:
    room = Room()
    after = room.tell(a_status(None), AwaitReview("PlanReady", "look"))
    room.tell(after, AwaitReview("PlanReady", "look"))
    assert room.reasons == ["ReviewRequired"]


def test_another_plan_in_review_is_news() -> None:
    room = Room()
    first = room.tell(a_status(None), AwaitReview("PlanReady", "look"))
    config = a_config(first, notify="ops")
    another = with_plan(an_observation(config), (an_item(),), "b" * 64)
    after = next_status(an_observation(config), another, AwaitReview("PlanReady", "look"), NOON)
    room.reporter.report(config, after)
    assert room.reasons == ["ReviewRequired", "ReviewRequired"]
    assert len({one.key for one in room.events.heard}) == 2
    assert [one.data["planHash"] for one in room.notices.heard] == [PLAN, "b" * 64]
    assert len({one.id for one in room.notices.heard}) == 2


def test_changed_inputs_are_told_by_themselves() -> None:
    room = Room()
    config = a_config(done(), notify="ops", action="Apply")
    around = an_observation(config, inputs=TEN)
    room.reporter.report(config, next_status(around, config.status, AwaitReview("InputChanged", "look"), NOON))
    assert room.reasons == ["ReviewRequired", "InputDependencyDrift"]
    assert [one.data["reason"] for one in room.notices.heard] == ["ReviewRequired", "InputDependencyDrift"]


def test_an_endpoint_that_nobody_knows_hears_nothing() -> None:
    room = Room()
    room.tell(done(), MarkDrifted(done().items), notify="elsewhere")
    assert room.notices.heard == []


def test_items_are_told_and_measured() -> None:
    room = Room()
    running = an_item(state="InProgress", last_transition_time=NOON - timedelta(seconds=90))
    room.tell(a_status("InProgress", running), CompleteItem(running, "ready"))
    assert room.reasons[0] == "ItemCompleted"
    assert room.sample("virt_advisor_item_duration_seconds_sum", item=running.name) == 90


@pytest.mark.parametrize("state", ["Completed", "Failed"])
def test_an_item_that_ends_at_once_is_measured_too(state: str) -> None:
    room = Room()
    item = an_item(last_transition_time=NOON - timedelta(hours=1))
    step = CompleteItem(item, "ready") if state == "Completed" else FailItem(item, "refused")
    room.tell(a_status("InProgress", item), step)
    assert room.sample("virt_advisor_item_duration_seconds_count", item=item.name) == 1
    assert room.sample("virt_advisor_item_duration_seconds_sum", item=item.name) == 0


def test_an_item_that_was_not_carried_out_is_not_measured() -> None:
    room = Room()
    room.tell(a_status("CompletedWithErrors", an_item(state="Failed")), AdoptVersion("ManuallyAligned", done().items))
    assert room.sample("virt_advisor_item_duration_seconds_count", item=an_item().name) is None


def test_series_follow_the_phase_and_go_while_it_is_ignored() -> None:
    room = Room()
    drifted = room.tell(done(), MarkDrifted(done().items))
    assert room.sample("virt_advisor_drift") == 1
    assert room.sample("virt_advisor_phase", phase="Drifted") == 1
    assert room.sample("virt_advisor_phase_timestamp_seconds", phase="Drifted") == NOON.timestamp()
    begun = room.tell(
        msgspec.structs.replace(drifted, phase="ReviewRequired"), Begin(PlanApproval(PLAN, EARLIER)), action="Apply"
    )
    assert room.sample("virt_advisor_drift") == 0
    assert room.sample("virt_advisor_phase", phase="Drifted") is None
    room.tell(begun, Ignore(), action="Ignore")
    assert room.sample("virt_advisor_drift") is None
    assert room.sample("virt_advisor_phase", phase="InProgress") is None


def test_bypass_is_never_silent() -> None:
    room = Room()
    room.reporter.enforced(a_config(done()), done().items)
    (event,) = room.events.heard
    assert (event.type, event.reason) == ("Warning", "LockBypassed")
    assert "KubeDescheduler" in event.note


def test_a_stale_target_is_never_overwritten_silently() -> None:
    room = Room()
    room.reporter.overwrote(a_config(a_status("InProgress")), an_item())
    (event,) = room.events.heard
    assert (event.type, event.reason) == ("Warning", "LockBypassed")
    assert "KubeDescheduler configure-descheduler had changed since the plan was made" in event.note
