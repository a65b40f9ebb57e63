"""The notifications of an approver: approvals, and plans that are newly pending."""

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
"""In one notification, which should stay below the 64 KiB that every receiver of CloudEvents accepts."""


class ApproverNotifications:
    """Sends each notification once."""

    def __init__(self, notify: NotificationSender, clock: Clock) -> None:
        self._notify = notify
        self._clock = clock
        self._sent: OrderedDict[str, None] = OrderedDict()
        self._caught_up: set[Key] = set()

    @property
    def endpoints(self) -> Collection[str]:
        return self._notify.endpoints

    def approved(self, plan: InstallPlan, approver: Approver) -> None:
        text = f"InstallPlan {_named(plan)} was approved by {approver.metadata.key}: {plan.stamp.because}"
        self._send(approver, _of_plan(plan, "approved", "Approved", text))

    def approved_many(self, plans: Sequence[InstallPlan], approver: Approver, total: int) -> None:
        """One notification for all of them."""
        text = f"{len(plans)} more InstallPlans were approved by {approver.metadata.key}, {total} in total"
        named = [str(plan.metadata.key) for plan in plans[:PLANS_NAMED]]
        data = {"reason": "Approved", "count": len(plans), "plans": named}
        self._send(approver, _Message("installplans.approved", str(approver.metadata.key), str(total), text, data))

    def pending(self, plan: InstallPlan, approver: Approver, wait: WaitForPlan) -> None:
        if self._was_sent(plan, approver, wait):
            return
        text = f"InstallPlan {_named(plan)} is pending: {wait.message}"
        self._send(approver, _of_plan(plan, "waiting", wait.reason, text))

    def caught_up(self, approver: Key) -> None:
        """All its plans are evaluated since this process began: what becomes pending from now on is new."""
        self._caught_up.add(approver)

    def forget(self, approver: Key) -> None:
        self._caught_up.discard(approver)

    def _was_sent(self, plan: InstallPlan, approver: Approver, wait: WaitForPlan) -> bool:
        """Whether an earlier process sent it: its last status lists the plan, or had no room for it."""
        key, status = plan.metadata.key, approver.status
        shown = {one.plan: one.reason for one in status.pending}
        if str(key) in shown:
            return shown[str(key)] == wait.reason
        if approver.metadata.key in self._caught_up or status.pending_count <= len(status.pending):
            return False
        if would_show(status.pending, key, wait):  # so it was not pending then, or for another reason
            return False
        existed = plan.metadata.creation_timestamp <= _reported(
            approver
        )  # by time, since a new label raises the version, too
        is_unchanged = int(plan.metadata.resource_version) < int(approver.metadata.resource_version)
        return existed and is_unchanged and status.observed_generation == approver.metadata.generation

    def _send(self, approver: Approver, message: _Message) -> None:
        name = approver.spec.notify
        if name not in self._notify.endpoints:  # a condition reports it
            return
        notice = notification(
            Regarding(
                Ref(INSTALL_PLAN_APPROVER, approver.metadata.key),
                f"{INSTALL_PLAN_APPROVER.group}/v1alpha1",
                approver.metadata.uid,
            ),
            message.type,
            message.text,
            episode=(message.type, message.episode),
            time=self._clock.utc(),
            data={**message.data, "approver": str(approver.metadata.key)},
            subject=message.subject,
            page=message.page,
        )
        if self._is_new(notice.id):
            self._notify.send(name, notice)

    def _is_new(self, identity: str) -> bool:
        if identity in self._sent:
            return False
        self._sent[identity] = None
        if len(self._sent) > REMEMBERED:
            self._sent.popitem(last=False)
        return True


@dataclass(frozen=True, slots=True)
class _Message:
    type: str
    subject: str
    episode: str
    """Distinguishes it from others of that type."""
    text: str
    data: Mapping[str, Any]
    page: str = "/approvals"


def _of_plan(plan: InstallPlan, what: str, reason: str, text: str) -> _Message:
    episode = "\0".join((plan.metadata.uid, reason, *plan.csvs))
    data = {"reason": reason, "csvs": plan.csvs}
    key = plan.metadata.key
    return _Message(f"installplan.{what}", str(key), episode, text, data, f"/approvals/{key.namespace}/{key.name}")


def _reported(approver: Approver) -> datetime:
    """When its status was last written, by the server's clock; the epoch if unknown."""
    times = (one.time for one in approver.metadata.managed_fields if one.manager == managers.APPROVER_STATUS.name)
    return max(times, default=EPOCH)


def _named(plan: InstallPlan) -> str:
    return f"{plan.metadata.key} ({', '.join(plan.csvs)})"
