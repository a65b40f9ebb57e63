"""What goes out to an approver's endpoint, and what the approver says of itself if nothing can."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import pytest

from tests.controllers.approver.builders import NOON, V1, a_plan, an_approver, an_environment, fold, waiting
from tests.runtime.clocks import ManualClock
from virt_steward.apis.installplanapprover import PENDING_SHOWN, InstallPlanApproverStatus
from virt_steward.controllers.approver.conditions import conditions_of
from virt_steward.controllers.approver.notifications import ApproverNotifications
from virt_steward.controllers.approver.observation import Approver
from virt_steward.controllers.approver.olm import ApprovalStamp, InstallPlan
from virt_steward.controllers.approver.verdicts import PlanReason, WaitForPlan
from virt_steward.runtime.notifications import Notification

UNPINNED = WaitForPlan(PlanReason.NOT_PINNED, "nobody pinned it")
TOO_YOUNG = WaitForPlan(PlanReason.TOO_YOUNG, "not yet", NOON + timedelta(hours=1))
RIDES_ALONG = WaitForPlan(PlanReason.RIDES_ALONG, "nobody pinned what comes with it")


@dataclass
class Outbox:
    endpoints: tuple[str, ...] = ("chat",)
    sent: list[tuple[str, Notification]] = field(default_factory=list)

    def send(self, endpoint: str, notice: Notification) -> None:
        self.sent.append((endpoint, notice))


def notices(outbox: Outbox) -> ApproverNotifications:
    return ApproverNotifications(outbox, ManualClock())


def test_an_approval_goes_to_the_endpoint_that_its_approver_names() -> None:
    outbox = Outbox()
    plan = a_plan(V1, approved=True, stamp=ApprovalStamp(because="db.v1.0.0 is pinned"))
    notices(outbox).approved(plan, an_approver(notify="chat"))
    [(endpoint, notice)] = outbox.sent
    assert endpoint == "chat"
    assert notice.type == "cloud.bapu.operators.installplan.approved"
    assert notice.source == "/apis/operators.bapu.cloud/v1alpha1/namespaces/approvers/installplanapprovers/ann"
    assert notice.subject == "shop/install-1"
    assert notice.text == "InstallPlan shop/install-1 (db.v1.0.0) was approved by approvers/ann: db.v1.0.0 is pinned"
    assert notice.data == {"reason": "Approved", "csvs": (V1,), "approver": "approvers/ann"}


def test_a_refusal_goes_out_once() -> None:
    outbox = Outbox()
    told, ann = notices(outbox), an_approver(notify="chat")
    told.pending(a_plan(V1), ann, UNPINNED)
    told.pending(a_plan(V1), ann, UNPINNED)
    told.pending(a_plan(V1), ann, WaitForPlan(PlanReason.TOO_YOUNG, "not yet"))
    assert [notice.data["reason"] for _, notice in outbox.sent] == ["NotPinned", "TooYoung"]
    assert outbox.sent[0][1].type == "cloud.bapu.operators.installplan.waiting"


def test_a_refusal_that_the_status_tells_already_is_no_news_to_the_next_process() -> None:
    outbox = Outbox()
    plan, ann = a_plan(V1), an_approver(notify="chat")
    status = fold(ann, [plan], [waiting(plan, UNPINNED)], NOON)
    notices(outbox).pending(plan, an_approver(notify="chat", status=status), UNPINNED)
    assert outbox.sent == []


def a_crowd() -> list[InstallPlan]:
    """More plans than a status shows; the last is out of sight."""
    return [a_plan(V1, name=f"install-{number:02}", version=7) for number in range(PENDING_SHOWN + 1)]


def out_of_sight(**then: Any) -> InstallPlan:
    """A plan for which a report of a crowd has no room."""
    return a_plan(V1, **{"name": "install-99", "version": 7, **then})


def after_a_report(plans: Sequence[InstallPlan], **then: Any) -> Approver:
    """An approver as the next process finds it, after a report of all these as waiting."""
    status = fold(an_approver(), plans, [waiting(plan, UNPINNED) for plan in plans], NOON)
    return an_approver(notify="chat", status=status, **{"version": 9, **then})


def test_a_refusal_that_the_status_had_no_room_for_is_no_news_to_the_next_process() -> None:
    outbox = Outbox()
    plans = a_crowd()
    ann, told = after_a_report(plans), notices(outbox)
    for plan in plans:
        told.pending(plan, ann, UNPINNED)
    assert outbox.sent == []


@pytest.mark.parametrize(
    ("plan", "wait", "ann"),
    [
        pytest.param(
            out_of_sight(version=10), UNPINNED, after_a_report(a_crowd()), id="the-plan-came-or-changed-since"
        ),
        pytest.param(
            out_of_sight(version=8, created=NOON + timedelta(seconds=1)),
            UNPINNED,
            after_a_report(a_crowd()),
            id="the-plan-came-since-and-then-a-label-on-the-approver",
        ),
        pytest.param(
            out_of_sight(),
            UNPINNED,
            after_a_report(a_crowd(), generation=2),
            id="the-approver-asks-for-something-else-now",
        ),
        pytest.param(
            out_of_sight(), UNPINNED, after_a_report(a_crowd()[1:]), id="the-status-had-room-for-all-that-waited"
        ),
        pytest.param(a_crowd()[0], RIDES_ALONG, after_a_report(a_crowd()), id="the-status-shows-another-reason"),
        pytest.param(a_crowd()[0], TOO_YOUNG, after_a_report(a_crowd()), id="the-status-shows-one-more-urgent"),
        pytest.param(
            out_of_sight(), RIDES_ALONG, after_a_report(a_crowd()), id="the-status-would-have-shown-this-reason"
        ),
        pytest.param(
            a_plan(V1, name="install-1", version=7),
            UNPINNED,
            after_a_report(a_crowd()),
            id="the-status-would-have-shown-this-plan",
        ),
    ],
)
def test_a_refusal_after_a_restart_is_news_if(plan: InstallPlan, wait: WaitForPlan, ann: Approver) -> None:
    outbox = Outbox()
    notices(outbox).pending(plan, ann, wait)
    assert [notice.subject for _, notice in outbox.sent] == [str(plan.metadata.key)]


def test_once_all_plans_were_looked_at_every_refusal_is_news() -> None:
    outbox = Outbox()
    plans = a_crowd()
    ann, told = after_a_report(plans), notices(outbox)
    told.caught_up(ann.metadata.key)
    told.pending(plans[-1], ann, WaitForPlan(PlanReason.TOO_YOUNG, "not yet"))
    assert [notice.data["reason"] for _, notice in outbox.sent] == ["TooYoung"]


def test_the_same_news_has_the_same_id_whichever_process_tells_it() -> None:
    one, other = Outbox(), Outbox()
    for outbox in (one, other):
        notices(outbox).pending(a_plan(V1), an_approver(notify="chat"), UNPINNED)
    assert one.sent[0][1].id == other.sent[0][1].id


def test_nothing_goes_out_without_an_endpoint_or_to_an_unknown_one() -> None:
    outbox = Outbox()
    for name in ("", "fax"):
        notices(outbox).pending(a_plan(V1), an_approver(notify=name), UNPINNED)
    assert outbox.sent == []


def test_an_unknown_endpoint_is_a_condition() -> None:
    _, condition = conditions_of(an_approver(notify="fax"), an_environment(endpoints=("chat",)), NOON)
    assert (condition.type, condition.status, condition.reason) == ("Notifying", "False", "UnknownEndpoint")
    assert "endpoint fax not found" in condition.message
    assert condition.message.endswith("have: chat")


def test_a_known_endpoint_is_a_condition_too() -> None:
    _, condition = conditions_of(an_approver(notify="chat"), an_environment(endpoints=("chat",)), NOON)
    assert (condition.type, condition.status) == ("Notifying", "True")


def test_a_denied_namespace_concerns_only_approvers_that_look_after_it() -> None:
    abilities = an_environment(denied=("shop",))
    for targets, types in (((), ["PolicyValid", "NamespacesReadable"]), (("bank",), ["PolicyValid"])):
        found = conditions_of(an_approver(target_namespaces=targets), abilities, NOON)
        assert [condition.type for condition in found] == types


def test_a_target_that_is_not_watched_is_said() -> None:
    abilities = an_environment(watched=("shop",))
    condition = conditions_of(an_approver(target_namespaces=("shop", "bank")), abilities, NOON)[-1]
    assert (condition.type, condition.status, condition.reason) == ("NamespacesReadable", "False", "NotWatched")
    assert "does not watch bank: add it to --watch-namespaces" in condition.message
    assert len(conditions_of(an_approver(target_namespaces=("shop",)), abilities, NOON)) == 1


def test_a_namespace_allowed_again_is_said_with_the_time() -> None:
    denied = conditions_of(an_approver(), an_environment(denied=("shop",)), NOON)
    before = an_approver(status=InstallPlanApproverStatus(conditions=denied))
    later = NOON + timedelta(hours=1)
    condition = conditions_of(before, an_environment(), later)[-1]
    assert (condition.type, condition.status) == ("NamespacesReadable", "True")
    assert condition.last_transition_time == later
