"""Tells people and machines what has become of a config: log, events, metrics, notices."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import structlog

from virt_steward.apis.virtplatformconfig import API_VERSION, VIRT_PLATFORM_CONFIG
from virt_steward.controllers.advisor.decide import INPUT_DRIFT
from virt_steward.controllers.advisor.metrics import AdvisorMetrics
from virt_steward.kube.events import Occurrence
from virt_steward.objects.identity import Ref, Regarding
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
"""While these last, another plan is news."""
QUIET = frozenset({"Pending", "Drafting"})


class AdvisorReporter:
    """Each change of a status is told once, when it has been written."""

    def __init__(
        self, recorder: Recorder, notify: NotificationSender, clock: Clock, registry: CollectorRegistry
    ) -> None:
        self._recorder = recorder
        self._notify = notify
        self._clock = clock
        self._gauges = AdvisorMetrics(registry)

    def shows(self, profile: str, status: VirtPlatformConfigStatus) -> None:
        """Metrics follow what is there, also what another process wrote."""
        self._gauges.show(profile, status)

    def gone(self, key: Key) -> None:
        self._gauges.remove(key.name)

    def tell(self, config: VirtPlatformConfig, after: VirtPlatformConfigStatus) -> None:
        before = config.status
        self.shows(config.metadata.name, after)
        for item, was in _moved(before, after):
            self._item(config, was, item)
        said = _condition(after, after.phase or "")
        if said and _is_news(before, after, said):
            self._phase(config, after, said)
        drift = _condition(after, INPUT_DRIFT)
        if drift and drift.status == "True" and not config.is_true(INPUT_DRIFT):
            self._event(config, "Warning", "InputDependencyDrift", drift.message, after.plan_hash)
            self._notice(config, "InputDependencyDrift", drift.message, after)

    def enforced(self, config: VirtPlatformConfig, items: tuple[PlanItem, ...]) -> None:
        """Bypass mode overwrites others: that is never silent."""
        named = ", ".join(map(_target, items))
        note = f"bypassOptimisticLock is set: what others changed is overwritten in {named}"
        self._recorder.again(Occurrence(_regarding(config), "Warning", "LockBypassed", "Enforce", note))

    def overwrote(self, config: VirtPlatformConfig, item: PlanItem) -> None:
        """The same when a plan is carried out though a target has changed since it was made; once for each item."""
        note = f"bypassOptimisticLock is set: {_target(item)} had changed since the plan was made, and was overwritten"
        episode = f"{config.status.plan_hash} {item.name}"
        self._recorder.once(Occurrence(_regarding(config), "Warning", "LockBypassed", "Apply", note, episode))

    def _phase(self, config: VirtPlatformConfig, after: VirtPlatformConfigStatus, said: Condition) -> None:
        log.info(
            "config moved on", config=config.metadata.name, phase=after.phase, reason=said.reason, why=said.message
        )
        if said.type in QUIET:
            return
        kind: Literal["Warning", "Normal"] = "Warning" if said.type in ALARMING else "Normal"
        episode = f"{after.plan_hash} {config.metadata.generation} {said.reason} {said.last_transition_time}"
        self._event(config, kind, said.type, said.message or said.reason, episode)
        if said.type in NOTIFIED:
            self._notice(config, said.type, said.message, after)

    def _item(self, config: VirtPlatformConfig, was: PlanItem, item: PlanItem) -> None:
        log.info("item moved on", config=config.metadata.name, item=item.name, state=item.state, why=item.message)
        if item.state in ("Completed", "Failed") and config.status.phase == "InProgress":
            self._gauges.ended(config.metadata.name, was, item)
        kind: Literal["Warning", "Normal"] = "Warning" if item.state == "Failed" else "Normal"
        episode = f"{config.status.plan_hash} {item.name} {item.last_transition_time}"
        self._event(config, kind, f"Item{item.state}", f"{item.name}: {item.message}", episode)

    def _event(
        self, config: VirtPlatformConfig, kind: Literal["Warning", "Normal"], reason: str, note: str, episode: str
    ) -> None:
        self._recorder.once(Occurrence(_regarding(config), kind, reason, "Plan", note, episode))

    def _notice(self, config: VirtPlatformConfig, reason: str, text: str, after: VirtPlatformConfigStatus) -> None:
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
            ),
        )


def _moved(before: VirtPlatformConfigStatus, after: VirtPlatformConfigStatus) -> Iterator[tuple[PlanItem, PlanItem]]:
    """Items of one plan whose state has changed, with what they were."""
    if before.plan_hash != after.plan_hash:
        return
    known = {item.name: item for item in before.items}
    for item in after.items:
        was = known.get(item.name)
        if was and was.state != item.state:
            yield item, was


def _is_news(before: VirtPlatformConfigStatus, after: VirtPlatformConfigStatus, said: Condition) -> bool:
    if after.phase in ABOUT_A_PLAN and after.plan_hash != before.plan_hash:
        return True
    return (after.phase, said.reason) != (before.phase, _reason(before))


def _condition(status: VirtPlatformConfigStatus, type_: str) -> Condition | None:
    return next((one for one in status.conditions if one.type == type_), None)


def _reason(status: VirtPlatformConfigStatus) -> str:
    said = _condition(status, status.phase or "")
    return said.reason if said else ""


def _target(item: PlanItem) -> str:
    return f"{item.target_ref.kind} {item.target_ref.name}"


def _regarding(config: VirtPlatformConfig) -> Regarding:
    return Regarding(Ref(VIRT_PLATFORM_CONFIG, config.metadata.key), API_VERSION, config.metadata.uid)
