"""The plans that are pending: for which approver, why and since when, as far as this process knows.

Nothing here is stored. After a restart every plan is evaluated again, and what cannot be derived from the cluster is
lost without harm: the status has what people need.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from virt_steward.controllers.approver.watches import ApproverKey

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Hashable, Iterable, Mapping
    from datetime import datetime

    from virt_steward.controllers.approver.observation import Approver
    from virt_steward.controllers.approver.olm import InstallPlan
    from virt_steward.controllers.approver.verdicts import PlanReason, WaitForPlan
    from virt_steward.objects.identity import Key


class Pending:
    """The verdicts on open plans that are not approved, by plan and approver."""

    def __init__(self, wake: Callable[[Hashable], None]) -> None:
        self._wake = wake
        self._waits: dict[Key, Mapping[Key, WaitForPlan]] = {}

    def __contains__(self, plan: Key) -> bool:
        """Whether the plan has been evaluated."""
        return plan in self._waits

    def set(self, plan: Key, waits: Mapping[Key, WaitForPlan]) -> list[Key]:
        """Remember the verdict of each approver; returns the approvers whose verdict is new, and wakes their status."""
        before = self._waits.get(plan, {})
        self._waits[plan] = waits
        changed = [approver for approver in {**before, **waits} if before.get(approver) != waits.get(approver)]
        for approver in changed:
            self._wake(ApproverKey(approver))
        return changed

    def forget(self, plan: Key) -> None:
        for approver in self._waits.pop(plan, {}):
            self._wake(ApproverKey(approver))

    def of(self, approver: Key) -> list[tuple[Key, WaitForPlan]]:
        """The pending plans of one approver."""
        return [(plan, waits[approver]) for plan, waits in self._waits.items() if approver in waits]


@dataclass(frozen=True, slots=True)
class WaitingPlan:
    """A pending plan of one approver."""

    plan: InstallPlan
    wait: WaitForPlan
    since: datetime
    """When this reason came up."""


class StatusMemory:
    """What was known at the last status of each approver, beyond what the status has room for."""

    def __init__(self) -> None:
        self._since: dict[Key, dict[tuple[str, PlanReason], datetime]] = {}
        self._namespaces: dict[Key, dict[str, str]] = {}
        self._left: dict[Key, tuple[tuple[str, ...], frozenset[str]]] = {}

    def with_times(
        self, approver: Approver, pending: Iterable[tuple[InstallPlan, WaitForPlan]], now: datetime
    ) -> list[WaitingPlan]:
        """Add to each since when it is pending: by the status, else by memory."""
        key = approver.metadata.key
        shown = {(one.plan, one.reason): one.since for one in approver.status.pending}
        known, is_first = self._since.get(key, {}), key not in self._since
        found = []
        for plan, wait in pending:
            since = shown.get((str(plan.metadata.key), wait.reason)) or known.get((plan.metadata.uid, wait.reason))
            found.append(WaitingPlan(plan, wait, since or (_earliest(approver, plan, now) if is_first else now)))
        self._since[key] = {(one.plan.metadata.uid, one.wait.reason): one.since for one in found}
        return found

    def namespaces(self, approver: Approver, plans: Collection[InstallPlan]) -> Mapping[str, str]:
        """The namespaces of plans that the approver has approved, by uid; also of plans that were deleted since."""
        key, counted = approver.metadata.key, set(approver.status.counted_plans)
        kept = {uid: namespace for uid, namespace in self._namespaces.get(key, {}).items() if uid in counted}
        present = {
            plan.metadata.uid: plan.metadata.namespace
            for plan in plans
            if plan.stamp.by == approver.metadata.uid or plan.metadata.uid in counted
        }
        self._namespaces[key] = kept | present
        return self._namespaces[key]

    def outdated(self, approver: Approver, versions: Mapping[str, int]) -> frozenset[str]:
        """The namespaces whose watch may be behind the status, by the versions that the watches have reached.

        A namespace that was not behind when we computed the status is not behind it now either, although the status
        is newer than all that has been watched since.
        """
        listed, outdated = self._left.get(approver.metadata.key, (None, frozenset(versions)))
        unknown = outdated if listed == approver.status.counted_plans else versions
        written = int(approver.metadata.resource_version)
        return frozenset(one for one in unknown if versions[one] < written)

    def leaves(self, approver: Key, counted_plans: tuple[str, ...], outdated: frozenset[str]) -> None:
        """Remember what is about to be written as the list of counted plans, and which watches may have been behind."""
        self._left[approver] = (counted_plans, outdated)

    def forget(self, approver: Key) -> None:
        self._left.pop(approver, None)
        self._since.pop(approver, None)
        self._namespaces.pop(approver, None)


def _earliest(approver: Approver, plan: InstallPlan, now: datetime) -> datetime:
    """Since when the plan may be pending, if an earlier process had no room for it in the status.

    An alert that is too early is better than one that every restart puts off.
    """
    if approver.status.pending_count <= len(approver.status.pending):
        return now
    return max(plan.metadata.creation_timestamp, approver.metadata.creation_timestamp)
