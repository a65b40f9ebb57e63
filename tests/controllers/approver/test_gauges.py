from datetime import timedelta

from prometheus_client import CollectorRegistry

from tests.controllers.approver.builders import NOON, V1, a_plan, waiting
from tests.controllers.approver.conftest import Start
from tests.controllers.approver.lifecycle import an_approver
from tests.controllers.approver.process import SHORT_LEASE
from tests.other_leader import Scraped, deleting, let_another_lead
from tests.ports import a_free_port
from virt_steward.apis.installplanapprover import INSTALL_PLAN_APPROVER, PENDING_SHOWN
from virt_steward.controllers.approver.definition import ACCESS
from virt_steward.controllers.approver.pending import WaitingPlan
from virt_steward.controllers.approver.reporter import ApproverMetrics
from virt_steward.controllers.approver.verdicts import PlanReason, WaitForPlan
from virt_steward.kube.client import Client
from virt_steward.objects.identity import Key, Ref
from virt_steward.runtime.access import LEASE

ANN = Key("approvers", "ann")


def plans_for(*reasons: PlanReason) -> list[WaitingPlan]:
    """Plans that wait, each since a minute after the one before."""
    return [
        waiting(a_plan(V1, name=f"install-{n}"), WaitForPlan(reason, ""), NOON + timedelta(minutes=n))
        for n, reason in enumerate(reasons)
    ]


def oldest(registry: CollectorRegistry, reason: str) -> float | None:
    labels = {"namespace": "approvers", "approver": "ann", "reason": reason}
    return registry.get_sample_value("installplan_approver_oldest_pending_timestamp_seconds", labels)


def test_the_longest_waiting_plan_counts_for_each_reason() -> None:
    registry = CollectorRegistry()
    ApproverMetrics(registry).set(ANN, plans_for(PlanReason.NOT_PINNED, PlanReason.TOO_YOUNG, PlanReason.NOT_PINNED))
    assert oldest(registry, "NotPinned") == NOON.timestamp()
    assert oldest(registry, "TooYoung") == NOON.timestamp() + 60


def test_a_plan_beyond_what_a_status_shows_counts_too() -> None:
    registry = CollectorRegistry()
    ApproverMetrics(registry).set(ANN, plans_for(*[PlanReason.RIDES_ALONG] * PENDING_SHOWN, PlanReason.NO_SUBSCRIPTION))
    labels = {"namespace": "approvers", "approver": "ann"}
    assert registry.get_sample_value("installplan_approver_pending", labels) == PENDING_SHOWN + 1
    assert oldest(registry, "NoSubscription") == NOON.timestamp() + 60 * PENDING_SHOWN


def test_a_reason_that_no_longer_holds_has_no_series() -> None:
    registry = CollectorRegistry()
    gauges = ApproverMetrics(registry)
    gauges.set(ANN, plans_for(PlanReason.NOT_PINNED, PlanReason.TOO_YOUNG))
    gauges.set(ANN, plans_for(PlanReason.NOT_PINNED))
    assert oldest(registry, "TooYoung") is None
    assert oldest(registry, "NotPinned") is not None


def test_an_approver_that_is_gone_has_no_series() -> None:
    registry = CollectorRegistry()
    gauges = ApproverMetrics(registry)
    gauges.set(ANN, plans_for(PlanReason.NOT_PINNED))
    gauges.remove(ANN)
    gauges.remove(ANN)
    assert [sample for family in registry.collect() for sample in family.samples] == []


async def test_an_approver_that_is_deleted_while_another_process_leads_has_no_series(
    cluster: Client, home: str, start: Start
) -> None:
    """Else the process would show it again when it leads again, until it restarts: an alert that nothing ends."""
    port, series = a_free_port(), f'installplan_approver_pending{{approver="ann",namespace="{home}"}}'
    metrics = Scraped(port)
    await an_approver(cluster, home)
    async with deleting(cluster, Ref(LEASE, Key(home, ACCESS.lease))) as lease:
        with start(*SHORT_LEASE, f"--metrics-bind-address=127.0.0.1:{port}"):
            assert await metrics.shows(series)
            await let_another_lead(cluster, lease)
            assert await metrics.shows(series, 'leader_election_master_status{name="approver"} 0.0')
            await cluster.delete(Ref(INSTALL_PLAN_APPROVER, Key(home, "ann")))
            assert await metrics.shows_no_more(series)
