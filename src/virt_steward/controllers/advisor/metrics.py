"""The state of each profile as metrics: its phase, whether it has drifted, how long items took."""

from __future__ import annotations

from typing import TYPE_CHECKING

from prometheus_client import Gauge, Histogram

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry

    from virt_steward.apis.virtplatformconfig import PlanItem, VirtPlatformConfigStatus

_SECONDS = (1, 10, 60, 300, 900, 1800, 3600, 7200, 14400, 43200)


class AdvisorMetrics:
    """Follow the status of each profile. While one is ignored or gone, it has no series."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._drift = Gauge(
            "virt_advisor_drift", "1 if others have changed what the profile has set.", ["profile"], registry=registry
        )
        self._phase = Gauge("virt_advisor_phase", "1 for the phase it is in.", ["profile", "phase"], registry=registry)
        self._since = Gauge(
            "virt_advisor_phase_timestamp_seconds",
            "Since when it is in its phase, in Unix time.",
            ["profile", "phase"],
            registry=registry,
        )
        self._durations = Histogram(
            "virt_advisor_item_duration_seconds",
            "Seconds from applying an item until it worked or failed.",
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
        """An item was completed or has failed; one that was not seen to wait did so at once."""
        if before.state != "InProgress":
            self._durations.labels(profile, after.name).observe(0)
        elif before.last_transition_time and after.last_transition_time:
            took = after.last_transition_time - before.last_transition_time
            self._durations.labels(profile, after.name).observe(took.total_seconds())
