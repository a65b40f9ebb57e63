"""What an approver may see, made up. Left alone, the builders make one pinned operator that waits to be installed."""

import re
from collections.abc import Collection, Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from virt_steward.apis.installplanapprover import InstallPlanApproverSpec, InstallPlanApproverStatus, Policy
from virt_steward.controllers.approver import report
from virt_steward.controllers.approver.conditions import ApproverEnvironment
from virt_steward.controllers.approver.decide import decide
from virt_steward.controllers.approver.observation import (
    Approver,
    ApproverMeta,
    ApproverObservation,
    ManagedFieldsEntry,
)
from virt_steward.controllers.approver.observe import ApproverStores
from virt_steward.controllers.approver.olm import (
    ApprovalStamp,
    CsvMeta,
    InstalledCsv,
    InstallPlan,
    InstallPlanMeta,
    Subscription,
    SubscriptionMeta,
    SubscriptionSpec,
    SubscriptionStatus,
)
from virt_steward.controllers.approver.pending import WaitingPlan
from virt_steward.controllers.approver.verdicts import Verdict, WaitForPlan
from virt_steward.controllers.approver.watches import APPROVERS, CSVS, NAMESPACES, PLANS, SUBSCRIPTIONS
from virt_steward.runtime.store import Store
from virt_steward.ssa import managers

NAMESPACE = "shop"
POLICY_NAMESPACES = frozenset({"approvers"})
NOON = datetime(2030, 1, 7, 12, tzinfo=UTC)  # a Monday
V1, V2, V3 = "db.v1.0.0", "db.v2.0.0", "db.v3.0.0"
CACHE, CACHE2 = "cache.v1.0.0", "cache.v2.0.0"
REMEDY = re.compile(
    "manually|approve it with|delete it|correct it|is corrected|set it|pin that|set startingCSV|see the logs"
    "|apply the output"
)
"""Each message on a pending plan says what to do, in some of these words."""


def package_of(csv: str) -> str:
    return csv.partition(".")[0]


def a_plan(
    *csvs: str,
    name: str = "install-1",
    namespace: str = NAMESPACE,
    approval: str = "Manual",
    approved: bool = False,
    phase: str = "RequiresApproval",
    generation: int = 1,
    brings: Iterable[str] = (),
    packages: Mapping[str, str] | None = None,
    created: datetime = NOON,
    stamp: ApprovalStamp | None = None,
    version: int = 1,
    versions: Mapping[str, str] | None = None,
) -> InstallPlan:
    """`brings` are the packages whose Subscriptions are steps of the plan."""
    metadata = InstallPlanMeta(
        name, namespace, f"uid-of-{namespace}-{name}", str(version), created, stamp or ApprovalStamp()
    )
    return InstallPlan(
        metadata,
        csvs=csvs,
        approval=approval,
        approved=approved,
        phase=phase,
        generation=generation,
        packages={csv: package_of(csv) for csv in csvs} if packages is None else dict(packages),
        brings={f"{package}-stable-catalog-olm": package for package in brings},
        versions=dict(versions or {}),
    )


def a_subscription(
    package: str = "db",
    *,
    name: str = "",
    namespace: str = NAMESPACE,
    pin: str = "",
    current: str = "",
    installed: str = "",
    approval: str = "Manual",
    generation: int = 1,
    generated: bool = False,
    labels: Mapping[str, str] | None = None,
) -> Subscription:
    annotations = {"olm.generated-by": "install-0"} if generated else {}
    return Subscription(
        SubscriptionMeta(name or package, namespace, f"uid-of-{package}", "1", dict(labels or {}), annotations),
        SubscriptionSpec(package, pin, approval),
        SubscriptionStatus(current, installed, generation),
    )


def a_csv(name: str, *, mark: str = "") -> InstalledCsv:
    """`mark` is the label by which OLM tells the parts of an operator, `<package>.<namespace>`."""
    labels = {f"operators.coreos.com/{mark}": ""} if mark else {}
    return InstalledCsv(CsvMeta(name, NAMESPACE, f"uid-of-{name}", "1", labels))


def an_approver(
    name: str = "ann",
    *,
    namespace: str = "approvers",
    created: datetime = NOON - timedelta(days=1),
    generation: int = 1,
    version: int = 1,
    policy: Mapping[str, Any] | None = None,
    status: InstallPlanApproverStatus | None = None,
    **spec: Any,
) -> Approver:
    """Its status was written at noon, and a label later."""
    rules = Policy(**policy) if policy is not None else None
    writes = (
        ManagedFieldsEntry(managers.APPROVER_STATUS.name, NOON),
        ManagedFieldsEntry("kubectl-label", NOON + timedelta(days=1)),
    )
    return Approver(
        ApproverMeta(name, namespace, f"uid-of-{name}", str(version), created, generation, writes),
        InstallPlanApproverSpec(policy=rules, **spec),
        status or InstallPlanApproverStatus(),
    )


def seen(
    plan: InstallPlan,
    *subscriptions: Subscription,
    approvers: Iterable[Approver] = (),
    unreadable: Iterable[str] = (),
    siblings: Iterable[InstallPlan] = (),
    installed: Iterable[InstalledCsv] = (),
    labels: Mapping[str, str] | None = None,
) -> ApproverObservation:
    """Judged by one approver with no wishes of its own, unless others are given."""
    return ApproverObservation(
        plan,
        subscriptions=subscriptions,
        unreadable=tuple(unreadable),
        siblings=tuple(siblings),
        installed=tuple(installed),
        namespace_labels=labels or {},
        approvers=tuple(approvers) or (an_approver(),),
        policy_namespaces=POLICY_NAMESPACES,
    )


def a_pinned_install(approver: Approver | None = None, **around: Any) -> ApproverObservation:
    """The plain case: everything says yes but perhaps the approver."""
    approvers = (approver,) if approver else ()
    return seen(a_plan(V1), a_subscription(pin=V1, current=V1), approvers=approvers, **around)


def waiting(plan: InstallPlan, wait: WaitForPlan, since: datetime = NOON) -> WaitingPlan:
    return WaitingPlan(plan, wait, since)


def verdict(around: ApproverObservation, now: datetime = NOON) -> Verdict:
    """What the oldest approver says."""
    return decide(around, now).verdicts[0].verdict


def an_environment(**known: Any) -> ApproverEnvironment:
    """In which approvers of this module cover what their spec says."""
    return ApproverEnvironment(policy_namespaces=POLICY_NAMESPACES, **known)


def fold(
    approver: Approver,
    plans: Collection[InstallPlan],
    waits: Collection[WaitingPlan],
    now: datetime,
    environment: ApproverEnvironment | None = None,
) -> InstallPlanApproverStatus:
    """The next status, in that environment unless another is given."""
    return report.fold(approver, plans, waits, now, environment or an_environment())


def empty_stores() -> ApproverStores:
    """For a test to fill in place of watches."""
    return ApproverStores(
        plans=Store(PLANS.indexes or {}),
        subscriptions=Store(SUBSCRIPTIONS.indexes or {}),
        csvs=Store(CSVS.indexes or {}),
        namespaces=Store(NAMESPACES.indexes or {}),
        approvers=Store(APPROVERS.indexes or {}),
        policy_namespaces=POLICY_NAMESPACES,
    )
