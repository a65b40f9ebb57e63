from datetime import timedelta

from prometheus_client import CollectorRegistry

from tests.controllers.approver.builders import NOON
from virt_steward.apis.installplanapprover import InstallPlanApproverStatus, PendingPlan
from virt_steward.controllers.approver.gauges import PendingGauges
from virt_steward.objects.identity import Key

ANN = Key("approvers", "ann")


def waiting(*reasons: str) -> InstallPlanApproverStatus:
    """Plans that wait, each since a minute after the one before."""
    plans = tuple(
        PendingPlan(f"shop/install-{n}", ("db.v1",), reason, "", NOON + timedelta(minutes=n))
        for n, reason in enumerate(reasons)
    )
    return InstallPlanApproverStatus(pending=plans, pending_count=len(plans))


def oldest(registry: CollectorRegistry, reason: str) -> float | None:
    labels = {"namespace": "approvers", "approver": "ann", "reason": reason}
    return registry.get_sample_value("installplan_approver_oldest_pending_timestamp_seconds", labels)


def test_the_longest_waiting_plan_counts_for_each_reason() -> None:
    registry = CollectorRegistry()
    PendingGauges(registry).show(ANN, waiting("NotPinned", "TooYoung", "NotPinned"))
    assert oldest(registry, "NotPinned") == NOON.timestamp()
    assert oldest(registry, "TooYoung") == NOON.timestamp() + 60


def test_a_reason_that_no_longer_holds_has_no_series() -> None:
    registry = CollectorRegistry()
    gauges = PendingGauges(registry)
    gauges.show(ANN, waiting("NotPinned", "TooYoung"))
    gauges.show(ANN, waiting("NotPinned"))
    assert oldest(registry, "TooYoung") is None
    assert oldest(registry, "NotPinned") is not None


def test_an_approver_that_is_gone_has_no_series() -> None:
    registry = CollectorRegistry()
    gauges = PendingGauges(registry)
    gauges.show(ANN, waiting("NotPinned"))
    gauges.remove(ANN)
    gauges.remove(ANN)
    assert [sample for family in registry.collect() for sample in family.samples] == []
