"""The definition of the approver controller: its access, and how it is built."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from virt_steward.apis.installplanapprover import INSTALL_PLAN_APPROVER
from virt_steward.controllers.approver.notifications import ApproverNotifications
from virt_steward.controllers.approver.observe import ApproverStores
from virt_steward.controllers.approver.olm import CLUSTER_SERVICE_VERSION, INSTALL_PLAN, SUBSCRIPTION
from virt_steward.controllers.approver.pending import Pending
from virt_steward.controllers.approver.policy import ADMISSION_POLICY
from virt_steward.controllers.approver.reconcile import ApproverController
from virt_steward.controllers.approver.reporter import ApproverReporter
from virt_steward.controllers.approver.watches import APPROVERS, CSVS, NAMESPACES, PLANS, SUBSCRIPTIONS
from virt_steward.holds.gate_board import grants_for
from virt_steward.holds.gate_settings import READY_MADE_ONLY
from virt_steward.holds.installation import FREEZE_GRANT, follow_freeze
from virt_steward.objects.corekinds import NAMESPACE
from virt_steward.runtime.access import PATCH, WATCH, Access, Grant, Reach
from virt_steward.runtime.controller import ControllerDefinition
from virt_steward.runtime.enforcement import grants_to_check

if TYPE_CHECKING:
    from virt_steward.controllers.approver.options import ApproverOptions
    from virt_steward.holds.gate_settings import GateSettings
    from virt_steward.runtime.controller import Toolbox

NAME: Final = "approver"
GO_LEASE = "08a05259.bapu.cloud"
"""The Lease by which the Go operator of this name elects its leader."""

GRANTS = (
    Grant(INSTALL_PLAN, (*WATCH, *PATCH), "to see which plans wait, and to approve them", Reach.TARGETS),
    Grant(SUBSCRIPTION, WATCH, "to know which versions are pinned", Reach.TARGETS),
    Grant(CLUSTER_SERVICE_VERSION, WATCH, "to tell new dependencies from upgrades", Reach.TARGETS),
    Grant(NAMESPACE, WATCH, "to select namespaces by their labels"),
    Grant(INSTALL_PLAN_APPROVER, WATCH, "to know what may be approved", Reach.TARGETS),
    Grant(INSTALL_PLAN_APPROVER, PATCH, "to report", Reach.TARGETS, subresource="status"),
    *grants_to_check(ADMISSION_POLICY),
    FREEZE_GRANT,
)


def access_for(gates: GateSettings) -> Access:
    return Access(NAME, (*GRANTS, *grants_for(gates, NAME)), other_lease=GO_LEASE)


ACCESS = access_for(READY_MADE_ONLY)


def definition(options: ApproverOptions) -> ControllerDefinition:
    return ControllerDefinition(NAME, access_for(options.gates), partial(_build, options), concurrency=10)


def _build(options: ApproverOptions, tools: Toolbox) -> ApproverController:
    plans = tools.store(PLANS)

    def requeue_open() -> None:
        for plan in plans:
            if plan.is_open:
                tools.wake(plan.metadata.key)

    stores = ApproverStores(
        plans=plans,
        subscriptions=tools.store(SUBSCRIPTIONS),
        csvs=tools.store(CSVS),
        namespaces=tools.store(NAMESPACES),
        approvers=tools.store(APPROVERS),
        watched=tools.informers.namespaces,
        policy_namespaces=options.policy_namespaces,
        freezes=follow_freeze(tools, options.namespace, NAME, requeue_open),
        gates=options.gates,
    )
    reporter = ApproverReporter(
        tools.recorder, ApproverNotifications(tools.notify, tools.clock), tools.clock, tools.registry
    )
    controller = ApproverController(tools.client, stores, Pending(tools.wake), reporter, tools.clock)
    tools.informers.of(PLANS).tell(reporter.plan_changed)
    tools.informers.of(PLANS).tell(controller.plan_changed)
    tools.informers.of(APPROVERS).tell(controller.approver_changed)
    tools.informers.of(NAMESPACES).tell(reporter.namespace_changed)
    return controller
