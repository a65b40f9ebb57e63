"""What waits, as gauges: alerts ask how many, for which reason, and since when."""

from __future__ import annotations

from typing import TYPE_CHECKING

from prometheus_client import Gauge

if TYPE_CHECKING:
    from collections.abc import Collection

    from prometheus_client import CollectorRegistry

    from virt_steward.controllers.approver.memory import WaitingPlan
    from virt_steward.objects.identity import Key


class ApproverMetrics:
    """Follow what each approver lets wait, shown in its status or not; a series that no longer holds goes away."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._count = Gauge(
            "installplan_approver_pending", "InstallPlans that wait.", ["namespace", "approver"], registry=registry
        )
        self._oldest = Gauge(
            "installplan_approver_oldest_pending_timestamp_seconds",
            "Since when the longest waiting InstallPlan waits for this reason, in Unix time.",
            ["namespace", "approver", "reason"],
            registry=registry,
        )
        self._shown: dict[Key, frozenset[str]] = {}

    def show(self, approver: Key, waiting: Collection[WaitingPlan]) -> None:
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
        """Forget an approver that is gone."""
        if approver in self._shown:
            self._forget(approver, self._shown.pop(approver))
            self._count.remove(approver.namespace, approver.name)

    def _forget(self, approver: Key, reasons: frozenset[str]) -> None:
        for reason in reasons:
            self._oldest.remove(approver.namespace, approver.name, reason)
