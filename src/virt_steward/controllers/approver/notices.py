"""What an approver tells the endpoint that it names: approvals, and refusals that are news."""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from typing import TYPE_CHECKING

from virt_steward.apis.installplanapprover import INSTALL_PLAN_APPROVER
from virt_steward.runtime.notify import Notice

if TYPE_CHECKING:
    from collections.abc import Collection

    from virt_steward.controllers.approver.olm import Plan
    from virt_steward.controllers.approver.seen import Approver
    from virt_steward.controllers.approver.verdicts import Wait
    from virt_steward.runtime.clock import Clock
    from virt_steward.runtime.notify import Notify

TYPE = "cloud.bapu.operators.installplan"
REMEMBERED = 2048


class Notices:
    """Each piece of news goes out once."""

    def __init__(self, notify: Notify, clock: Clock) -> None:
        self._notify = notify
        self._clock = clock
        self._told: OrderedDict[str, None] = OrderedDict()

    @property
    def endpoints(self) -> Collection[str]:
        return self._notify.endpoints

    def approved(self, plan: Plan, approver: Approver, because: str) -> None:
        text = f"InstallPlan {_named(plan)} was approved by {approver.metadata.key}: {because}"
        self._send(plan, approver, "Approved", text)

    def waits(self, plan: Plan, approver: Approver, wait: Wait) -> None:
        known = {(one.plan, one.reason) for one in approver.status.pending}
        if (str(plan.metadata.key), wait.reason) in known:
            return  # told by a process before us
        self._send(plan, approver, wait.reason, f"InstallPlan {_named(plan)} waits: {wait.message}")

    def _send(self, plan: Plan, approver: Approver, reason: str, text: str) -> None:
        name = approver.spec.notify
        if name not in self._notify.endpoints:  # a condition says so
            return
        story = "\0".join((plan.metadata.uid, approver.metadata.uid, reason, *plan.csvs))
        notice = Notice(
            id=hashlib.blake2b(story.encode(), digest_size=16).hexdigest(),
            type=f"{TYPE}.{'approved' if reason == 'Approved' else 'waiting'}",
            source=_path(approver),
            subject=str(plan.metadata.key),
            time=self._clock.utc(),
            text=text,
            data={"reason": reason, "csvs": plan.csvs, "approver": str(approver.metadata.key)},
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


def _named(plan: Plan) -> str:
    return f"{plan.metadata.key} ({', '.join(plan.csvs)})"


def _path(approver: Approver) -> str:
    group, plural = INSTALL_PLAN_APPROVER.group, INSTALL_PLAN_APPROVER.plural
    return f"/apis/{group}/v1alpha1/namespaces/{approver.metadata.namespace}/{plural}/{approver.metadata.name}"
