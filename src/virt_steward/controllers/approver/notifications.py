"""What an approver tells the endpoint that it names: approvals, and refusals that are news."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from virt_steward.apis.installplanapprover import INSTALL_PLAN_APPROVER
from virt_steward.controllers.approver.olm import EPOCH
from virt_steward.controllers.approver.report import would_show
from virt_steward.objects.identity import Ref, Regarding
from virt_steward.runtime.notifications import notification
from virt_steward.ssa import managers

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence
    from datetime import datetime

    from virt_steward.controllers.approver.observation import Approver
    from virt_steward.controllers.approver.olm import InstallPlan
    from virt_steward.controllers.approver.verdicts import WaitForPlan
    from virt_steward.objects.identity import Key
    from virt_steward.runtime.clock import Clock
    from virt_steward.runtime.notifications import NotificationSender

REMEMBERED = 2048
PLANS_NAMED = 1000
"""In one notice, which should stay below the 64 KiB that every receiver of CloudEvents takes."""


class ApproverNotifications:
    """Each piece of news goes out once."""

    def __init__(self, notify: NotificationSender, clock: Clock) -> None:
        self._notify = notify
        self._clock = clock
        self._told: OrderedDict[str, None] = OrderedDict()
        self._caught_up: set[Key] = set()

    @property
    def endpoints(self) -> Collection[str]:
        return self._notify.endpoints

    def approved(self, plan: InstallPlan, approver: Approver) -> None:
        text = f"InstallPlan {_named(plan)} was approved by {approver.metadata.key}: {plan.stamp.because}"
        self._send(approver, _of_plan(plan, "approved", "Approved", text))

    def approved_many(self, plans: Sequence[InstallPlan], approver: Approver, total: int) -> None:
        """One notice for all of them."""
        text = f"{len(plans)} more InstallPlans were approved by {approver.metadata.key}, {total} by now"
        named = [str(plan.metadata.key) for plan in plans[:PLANS_NAMED]]
        data = {"reason": "Approved", "count": len(plans), "plans": named}
        self._send(approver, _News("installplans.approved", str(approver.metadata.key), str(total), text, data))

    def waits(self, plan: InstallPlan, approver: Approver, wait: WaitForPlan) -> None:
        if self._was_told(plan, approver, wait):
            return
        text = f"InstallPlan {_named(plan)} waits: {wait.message}"
        self._send(approver, _of_plan(plan, "waiting", wait.reason, text))

    def caught_up(self, approver: Key) -> None:
        """All its plans have been looked at since we began: what waits from now on is news."""
        self._caught_up.add(approver)

    def gone(self, approver: Key) -> None:
        self._caught_up.discard(approver)

    def _was_told(self, plan: InstallPlan, approver: Approver, wait: WaitForPlan) -> bool:
        """By a process before us: its last status shows the wait, or had no room for one that was there already."""
        key, status = plan.metadata.key, approver.status
        shown = {one.plan: one.reason for one in status.pending}
        if str(key) in shown:
            return shown[str(key)] == wait.reason
        if approver.metadata.key in self._caught_up or status.pending_count <= len(status.pending):
            return False
        if would_show(status.pending, key, wait):  # so it was not there, or waited for something else
            return False
        was_there = plan.metadata.creation_timestamp <= _reported(approver)  # its version rises with a label, too
        is_unchanged = int(plan.metadata.resource_version) < int(approver.metadata.resource_version)
        return was_there and is_unchanged and status.observed_generation == approver.metadata.generation

    def _send(self, approver: Approver, news: _News) -> None:
        name = approver.spec.notify
        if name not in self._notify.endpoints:  # a condition says so
            return
        notice = notification(
            Regarding(
                Ref(INSTALL_PLAN_APPROVER, approver.metadata.key),
                f"{INSTALL_PLAN_APPROVER.group}/v1alpha1",
                approver.metadata.uid,
            ),
            news.type,
            news.text,
            episode=(news.type, news.episode),
            time=self._clock.utc(),
            data={**news.data, "approver": str(approver.metadata.key)},
            subject=news.subject,
        )
        if self._is_news(notice.id):
            self._notify.send(name, notice)

    def _is_news(self, identity: str) -> bool:
        if identity in self._told:
            return False
        self._told[identity] = None
        if len(self._told) > REMEMBERED:
            self._told.popitem(last=False)
        return True


@dataclass(frozen=True, slots=True)
class _News:
    type: str
    subject: str
    episode: str
    """Tells it from other news of that type."""
    text: str
    data: Mapping[str, Any]


def _of_plan(plan: InstallPlan, what: str, reason: str, text: str) -> _News:
    episode = "\0".join((plan.metadata.uid, reason, *plan.csvs))
    data = {"reason": reason, "csvs": plan.csvs}
    return _News(f"installplan.{what}", str(plan.metadata.key), episode, text, data)


def _reported(approver: Approver) -> datetime:
    """When its status was last written, by the server's clock; long ago if that cannot be told."""
    times = (one.time for one in approver.metadata.managed_fields if one.manager == managers.APPROVER_STATUS.name)
    return max(times, default=EPOCH)


def _named(plan: InstallPlan) -> str:
    return f"{plan.metadata.key} ({', '.join(plan.csvs)})"
