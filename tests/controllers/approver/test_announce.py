"""Who hears of approvals, and how often: each by itself, a flood by its number, nothing twice, nothing never."""

from collections.abc import Iterable
from datetime import timedelta

import msgspec

from tests.controllers.approver.builders import NOON, V1, a_plan, an_approver, fold
from tests.controllers.approver.test_notices import Outbox
from tests.controllers.approver.test_tell import Listener
from tests.eventually import eventually
from tests.runtime.clocks import ManualClock
from virt_steward.controllers.approver.events import EACH, ApprovalEvents
from virt_steward.controllers.approver.notifications import PLANS_NAMED, ApproverNotifications
from virt_steward.controllers.approver.olm import ApprovalStamp, InstallPlan
from virt_steward.controllers.approver.report import newly_counted
from virt_steward.objects.wallclock import rfc3339

ANN = an_approver(notify="chat")
FLOOD = EACH.capacity + 100


def approved(*numbers: int) -> list[InstallPlan]:
    """Plans with the stamp of ann, a second apart, in two namespaces."""
    return [
        a_plan(
            V1,
            name=f"install-{number}",
            namespace=f"shop-{number % 2}",
            approved=True,
            stamp=ApprovalStamp(ANN.metadata.uid, rfc3339(NOON + timedelta(seconds=number)), f"because of {number}"),
        )
        for number in numbers
    ]


class Rig:
    """One process that announces what ann has approved."""

    def __init__(self) -> None:
        self.clock = ManualClock()
        self.events = Listener()
        self.outbox = Outbox()
        self._announcer = ApprovalEvents(self.events, ApproverNotifications(self.outbox, self.clock), self.clock)  # type: ignore[arg-type]

    def report(self, plans: Iterable[InstallPlan], total: int = 0) -> None:
        plans = list(plans)
        self._announcer.report(ANN, plans, total or len(plans))

    @property
    def is_sending(self) -> bool:
        return self._announcer.is_sending(ANN.metadata.key)

    @property
    def notes(self) -> list[str]:
        return [one.note for one in self.events.heard]

    @property
    def texts(self) -> list[str]:
        return [notice.text for _, notice in self.outbox.sent]


async def test_an_approval_is_an_event_on_its_plan_and_a_notice() -> None:
    rig = Rig()
    rig.report(approved(1))
    [event] = rig.events.heard
    assert (event.type, event.reason, event.regarding.uid) == ("Normal", "Approved", "uid-of-shop-1-install-1")
    assert event.note == "approved by InstallPlanApprover approvers/ann: because of 1"
    assert rig.texts == [f"InstallPlan shop-1/install-1 ({V1}) was approved by approvers/ann: because of 1"]


async def test_a_flood_is_told_by_its_number() -> None:
    rig = Rig()
    rig.report(approved(*range(FLOOD)))
    *each, sum_of_all = rig.events.heard
    assert [one.regarding.ref.key.name for one in each] == [f"install-{number}" for number in range(len(each))]
    assert len(each) == EACH.capacity
    assert (sum_of_all.reason, sum_of_all.regarding.uid) == ("ApprovedMany", ANN.metadata.uid)
    assert sum_of_all.note.startswith(
        f"approved 100 more InstallPlans in 2 namespaces, {FLOOD} in total, "
        f"the last of them shop-0/install-{FLOOD - 1};"
    )
    assert rig.texts[-1] == f"100 more InstallPlans were approved by approvers/ann, {FLOOD} in total"
    assert len(rig.texts) == EACH.capacity + 1


async def test_the_notice_of_a_flood_names_its_plans() -> None:
    rig = Rig()
    rig.report(approved(*range(EACH.capacity + PLANS_NAMED + 1)))
    notice = rig.outbox.sent[-1][1]
    assert (notice.type, notice.subject) == ("cloud.bapu.operators.installplans.approved", "approvers/ann")
    assert notice.data["count"] == PLANS_NAMED + 1
    assert notice.data["plans"][0] == f"shop-1/install-{EACH.capacity}"
    assert len(notice.data["plans"]) == PLANS_NAMED
    assert len(msgspec.json.encode(notice)) < 2**16


async def test_after_a_flood_people_can_follow_again() -> None:
    rig = Rig()
    rig.report(approved(*range(FLOOD)))
    await rig.clock.advance(1 / EACH.per_second)
    rig.report(approved(1000), FLOOD + 1)
    assert rig.notes[-1].endswith("because of 1000")


async def test_what_is_told_is_not_told_again_while_the_status_cannot_be_written() -> None:
    rig = Rig()
    rig.report(approved(1, 2))
    rig.report(approved(1, 2, 3))
    rig.report(approved(1, 2, 3))
    assert [note[-1] for note in rig.notes] == ["1", "2", "3"]
    assert len(rig.texts) == 3


async def test_the_next_process_tells_the_same_under_the_same_names() -> None:
    killed, heir = Rig(), Rig()
    for rig in (killed, heir):
        rig.report(approved(*range(FLOOD)))
    assert [one.key for one in killed.events.heard] == [one.key for one in heir.events.heard]
    assert [one.id for _, one in killed.outbox.sent] == [one.id for _, one in heir.outbox.sent]


async def test_a_second_flood_is_told_too() -> None:
    rig = Rig()
    rig.report(approved(*range(FLOOD)))
    rig.report(approved(*range(1000, 1010)), FLOOD + 10)
    first, second = rig.events.heard[-2:]
    assert second.note.startswith("approved 10 more")
    assert first.key != second.key


async def test_it_says_whether_events_are_still_on_their_way() -> None:
    rig = Rig()
    rig.events.arrived.clear()
    rig.report([])
    assert not rig.is_sending
    rig.report(approved(1, 2))
    rig.report(approved(1, 2))
    assert rig.is_sending
    rig.events.arrived.set()
    assert await eventually(lambda: not rig.is_sending)


def test_what_is_announced_is_what_the_status_counts_anew_the_oldest_first() -> None:
    plans = approved(3, 1, 2)
    before = fold(ANN, plans[:1], [], NOON)
    after = fold(an_approver(status=before), plans, [], NOON)
    assert [plan.stamp.because[-1] for plan in newly_counted(before, after, plans)] == ["1", "2"]
    assert newly_counted(after, after, plans) == []
