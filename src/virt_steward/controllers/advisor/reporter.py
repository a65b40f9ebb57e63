"""Reports each change of a status: log, events, metrics, notifications."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import structlog
from prometheus_client import Gauge, Histogram

from virt_steward.apis.virtplatformconfig import API_VERSION, VIRT_PLATFORM_CONFIG
from virt_steward.controllers.advisor.conditions import ADOPTED, INPUT_DRIFT
from virt_steward.kube.events import Occurrence
from virt_steward.objects.identity import Ref, Regarding
from virt_steward.runtime.decision_events import report_decision
from virt_steward.runtime.notifications import notification

if TYPE_CHECKING:
    from collections.abc import Iterator

    from prometheus_client import CollectorRegistry

    from virt_steward.apis.meta import Condition
    from virt_steward.apis.virtplatformconfig import PlanItem, VirtPlatformConfigStatus
    from virt_steward.controllers.advisor.observation import VirtPlatformConfig
    from virt_steward.kube.events import Recorder
    from virt_steward.objects.identity import Key
    from virt_steward.runtime.clock import Clock
    from virt_steward.runtime.notifications import NotificationSender

log = structlog.get_logger()

NOTIFIED = frozenset(
    {
        "ReviewRequired",
        "Drifted",
        "Failed",
        "Completed",
        "CompletedWithErrors",
        "CompletedWithUpgrade",
        "PrerequisiteFailed",
    }
)
ALARMING = frozenset({"Drifted", "Failed", "CompletedWithErrors", "PrerequisiteFailed"})
ABOUT_A_PLAN = frozenset({"ReviewRequired", "InProgress"})
"""In these phases another plan is reported though the phase stays."""
QUIET = frozenset({"Pending", "Drafting"})
_SECONDS = (1, 10, 60, 300, 900, 1800, 3600, 7200, 14400, 43200)


class AdvisorMetrics:
    """The state of each profile: its phase, whether it has drifted, how long items took.

    A profile that is ignored or whose config is deleted has no series.
    """

    def __init__(self, registry: CollectorRegistry) -> None:
        self._drift = Gauge(
            "virt_advisor_drift",
            "1 if fields that the profile set were changed by others.",
            ["profile"],
            registry=registry,
        )
        self._phase = Gauge(
            "virt_advisor_phase", "1 for the phase that the profile is in.", ["profile", "phase"], registry=registry
        )
        self._since = Gauge(
            "virt_advisor_phase_timestamp_seconds",
            "When the profile entered its phase, in Unix time.",
            ["profile", "phase"],
            registry=registry,
        )
        self._durations = Histogram(
            "virt_advisor_item_duration_seconds",
            "Seconds from applying an item until it was ready or failed.",
            ["profile", "item"],
            buckets=_SECONDS,
            registry=registry,
        )
        self._shown: dict[str, str] = {}

    def show(self, profile: str, status: VirtPlatformConfigStatus) -> None:
        phase = status.phase
        if phase is None or phase == "Ignored":
            self.remove(profile)
            return
        shown = self._shown.get(profile)
        if shown not in (None, phase):
            self.remove(profile)
        self._shown[profile] = phase
        self._drift.labels(profile).set(phase == "Drifted")
        self._phase.labels(profile, phase).set(1)
        since = next((one.last_transition_time for one in status.conditions if one.type == phase), None)
        if since:
            self._since.labels(profile, phase).set(since.timestamp())

    def remove(self, profile: str) -> None:
        shown = self._shown.pop(profile, None)
        if shown is not None:
            self._drift.remove(profile)
            self._phase.remove(profile, shown)
            self._since.remove(profile, shown)

    def ended(self, profile: str, before: PlanItem, after: PlanItem) -> None:
        """Observe how long an item took to complete or fail; one that was never InProgress took no time."""
        if before.state != "InProgress":
            self._durations.labels(profile, after.name).observe(0)
        elif before.last_transition_time and after.last_transition_time:
            took = after.last_transition_time - before.last_transition_time
            self._durations.labels(profile, after.name).observe(took.total_seconds())


class AdvisorReporter:
    """Each change of a status is reported once, after it was written."""

    def __init__(
        self, recorder: Recorder, notify: NotificationSender, clock: Clock, registry: CollectorRegistry
    ) -> None:
        self._recorder = recorder
        self._notify = notify
        self._clock = clock
        self._metrics = AdvisorMetrics(registry)

    def show(self, profile: str, status: VirtPlatformConfigStatus) -> None:
        """Update the metrics, also after a write of another process."""
        self._metrics.show(profile, status)

    def gone(self, key: Key) -> None:
        self._metrics.remove(key.name)

    def config_changed(self, key: Key, _before: VirtPlatformConfig | None, after: VirtPlatformConfig | None) -> None:
        """A listener of the config informer, for those that are deleted while another process leads."""
        if after is None:
            self.gone(key)

    def report(self, config: VirtPlatformConfig, after: VirtPlatformConfigStatus) -> None:
        before = config.status
        self.show(config.metadata.name, after)
        for item, was in _moved(before, after):
            self._item(config, was, item)
        condition = _condition(after, after.phase or "")
        if condition and _is_reported(before, after, condition):
            self._phase(config, after, condition)
        adopted = _condition(after, ADOPTED)
        if adopted and adopted.status == "True" and not config.is_true(ADOPTED):
            self._event(config, "Normal", ADOPTED, adopted.message, config.metadata.uid)
        drift = _condition(after, INPUT_DRIFT)
        if drift and drift.status == "True" and not config.is_true(INPUT_DRIFT):
            self._event(config, "Warning", "InputDependencyDrift", drift.message, after.plan_hash)
            self._notification(config, "InputDependencyDrift", drift.message, after)

    def decided(self, config: VirtPlatformConfig) -> None:
        """Report the last decision of a person, if it is recent."""
        report_decision(self._recorder, config.last_decision, _regarding(config), self._clock.utc())

    def enforced(self, config: VirtPlatformConfig, items: tuple[PlanItem, ...]) -> None:
        """Bypass mode overwrites changes of others, which is always reported."""
        named = ", ".join(map(_target, items))
        note = f"bypassOptimisticLock is set: changes of others are overwritten in {named}"
        self._recorder.again(Occurrence(_regarding(config), "Warning", "LockBypassed", "Enforce", note))

    def overwrote(self, config: VirtPlatformConfig, item: PlanItem) -> None:
        """The same for a plan that is executed though a target has changed since it was made; once for each item."""
        note = f"bypassOptimisticLock is set: {_target(item)} had changed since the plan was made and was overwritten"
        episode = f"{config.status.plan_hash} {item.name}"
        self._recorder.once(Occurrence(_regarding(config), "Warning", "LockBypassed", "Apply", note, episode))

    def tampered(self, config: VirtPlatformConfig, note: str) -> None:
        """Somebody else has changed the status; once for each change."""
        log.warning("status changed by somebody else", config=config.metadata.name, message=note)
        episode = f"{config.metadata.resource_version} tampered"
        self._recorder.once(Occurrence(_regarding(config), "Warning", "PlanTampered", "Restore", note, episode))

    def _phase(self, config: VirtPlatformConfig, after: VirtPlatformConfigStatus, condition: Condition) -> None:
        log.info(
            "phase changed",
            config=config.metadata.name,
            phase=after.phase,
            reason=condition.reason,
            message=condition.message,
        )
        if condition.type in QUIET:
            return
        kind: Literal["Warning", "Normal"] = "Warning" if condition.type in ALARMING else "Normal"
        episode = f"{after.plan_hash} {config.metadata.generation} {condition.reason} {condition.last_transition_time}"
        self._event(config, kind, condition.type, condition.message or condition.reason, episode)
        if condition.type in NOTIFIED:
            self._notification(config, condition.type, condition.message, after)

    def _item(self, config: VirtPlatformConfig, was: PlanItem, item: PlanItem) -> None:
        log.info("item changed", config=config.metadata.name, item=item.name, state=item.state, message=item.message)
        if item.state in ("Completed", "Failed") and config.status.phase == "InProgress":
            self._metrics.ended(config.metadata.name, was, item)
        kind: Literal["Warning", "Normal"] = "Warning" if item.state == "Failed" else "Normal"
        episode = f"{config.status.plan_hash} {item.name} {item.last_transition_time}"
        self._event(config, kind, f"Item{item.state}", f"{item.name}: {item.message}", episode)

    def _event(
        self, config: VirtPlatformConfig, kind: Literal["Warning", "Normal"], reason: str, note: str, episode: str
    ) -> None:
        self._recorder.once(Occurrence(_regarding(config), kind, reason, "Plan", note, episode))

    def _notification(
        self, config: VirtPlatformConfig, reason: str, text: str, after: VirtPlatformConfigStatus
    ) -> None:
        name = config.spec.notify
        if name not in self._notify.endpoints:
            return
        self._notify.send(
            name,
            notification(
                _regarding(config),
                f"{VIRT_PLATFORM_CONFIG.name}.{reason}".lower(),
                f"VirtPlatformConfig {config.metadata.name}: {reason}. {text}",
                episode=(reason, after.plan_hash, config.metadata.resource_version),
                time=self._clock.utc(),
                data={
                    "reason": reason,
                    "profile": config.spec.profile,
                    "phase": after.phase,
                    "planHash": after.plan_hash,
                    "impact": after.impact_severity,
                },
                page=f"/profiles/{config.metadata.name}",
            ),
        )


def _moved(before: VirtPlatformConfigStatus, after: VirtPlatformConfigStatus) -> Iterator[tuple[PlanItem, PlanItem]]:
    """Items of one plan whose state has changed, each with the one before."""
    if before.plan_hash != after.plan_hash:
        return
    known = {item.name: item for item in before.items}
    for item in after.items:
        was = known.get(item.name)
        if was and was.state != item.state:
            yield item, was


def _is_reported(before: VirtPlatformConfigStatus, after: VirtPlatformConfigStatus, condition: Condition) -> bool:
    if after.phase in ABOUT_A_PLAN and after.plan_hash != before.plan_hash:
        return True
    return (after.phase, condition.reason) != (before.phase, _reason(before))


def _condition(status: VirtPlatformConfigStatus, type_: str) -> Condition | None:
    return next((one for one in status.conditions if one.type == type_), None)


def _reason(status: VirtPlatformConfigStatus) -> str:
    condition = _condition(status, status.phase or "")
    return condition.reason if condition else ""


def _target(item: PlanItem) -> str:
    return f"{item.target_ref.kind} {item.target_ref.name}"


def _regarding(config: VirtPlatformConfig) -> Regarding:
    return Regarding(Ref(VIRT_PLATFORM_CONFIG, config.metadata.key), API_VERSION, config.metadata.uid)
