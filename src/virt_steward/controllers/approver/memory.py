"""What a process knows of an approver's plans beyond what the status has room for. Lost with it, without harm."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping
    from datetime import datetime

    from virt_steward.controllers.approver.observation import Approver
    from virt_steward.controllers.approver.olm import InstallPlan
    from virt_steward.controllers.approver.verdicts import PlanReason, WaitForPlan
    from virt_steward.objects.identity import Key


@dataclass(frozen=True, slots=True)
class WaitingPlan:
    """A plan that an approver lets wait."""

    plan: InstallPlan
    wait: WaitForPlan
    since: datetime
    """When this reason came up."""


class Memory:
    """Of each approver, from one report to the next."""

    def __init__(self) -> None:
        self._since: dict[Key, dict[tuple[str, PlanReason], datetime]] = {}
        self._places: dict[Key, dict[str, str]] = {}

    def since(
        self, approver: Approver, waiting: Iterable[tuple[InstallPlan, WaitForPlan]], now: datetime
    ) -> list[WaitingPlan]:
        """Say since when each of them waits: as the status tells, else as we remember."""
        key = approver.metadata.key
        shown = {(one.plan, one.reason): one.since for one in approver.status.pending}
        known, first_look = self._since.get(key, {}), key not in self._since
        found = []
        for plan, wait in waiting:
            since = shown.get((str(plan.metadata.key), wait.reason)) or known.get((plan.metadata.uid, wait.reason))
            found.append(WaitingPlan(plan, wait, since or (_at_most(approver, plan, now) if first_look else now)))
        self._since[key] = {(one.plan.metadata.uid, one.wait.reason): one.since for one in found}
        return found

    def places(self, approver: Approver, plans: Collection[InstallPlan]) -> Mapping[str, str]:
        """The namespaces of plans that the approver has approved, by uid, also of those that have gone meanwhile."""
        key, counted = approver.metadata.key, set(approver.status.counted_plans)
        kept = {uid: place for uid, place in self._places.get(key, {}).items() if uid in counted}
        seen = {
            plan.metadata.uid: plan.metadata.namespace
            for plan in plans
            if plan.stamp.by == approver.metadata.uid or plan.metadata.uid in counted
        }
        self._places[key] = kept | seen
        return self._places[key]

    def forget(self, approver: Key) -> None:
        self._since.pop(approver, None)
        self._places.pop(approver, None)


def _at_most(approver: Approver, plan: InstallPlan, now: datetime) -> datetime:
    """What a process before us may have let wait unseen: better an alert too early than one put off by each restart."""
    if approver.status.pending_count <= len(approver.status.pending):
        return now
    return max(plan.metadata.creation_timestamp, approver.metadata.creation_timestamp)
