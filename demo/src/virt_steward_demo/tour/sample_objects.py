"""The objects of the demo, as an admin would write them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from virt_steward.apis.installplanapprover import INSTALL_PLAN_APPROVER
from virt_steward.controllers.advisor.profiles.load_aware_rebalancing import DESCHEDULER
from virt_steward.controllers.autopilot.annotation_keys import SCOPE
from virt_steward.controllers.autopilot.options import HCO
from virt_steward.controllers.placement.observation import MACHINE
from virt_steward.objects.identity import Key, Ref
from virt_steward.platform.hco import HYPERCONVERGED
from virt_steward.runtime.access import NAMESPACE
from virt_steward.ssa import managers
from virt_steward_demo.simulation.install import make_namespace
from virt_steward_demo.simulation.installplans import a_subscription
from virt_steward_demo.tour.members import MACHINES

if TYPE_CHECKING:
    from virt_steward.kube.client import Client, Object

OPERATOR = "backup-operator"
PINNED = Key("team-backup", OPERATOR)
APPROVER = Key(NAMESPACE, "everywhere")
ASSETS = ("hco-golden-config", "metrics-servicemonitor", "prometheus-alerts", "mtv-operator")
"""The assets that the autopilot manages in the demo; none of them reboots a node."""


async def create_pinned_operator(client: Client) -> None:
    """Create an InstallPlanApprover for all namespaces, and the Subscription of a pinned operator."""
    approver = {
        "apiVersion": f"{INSTALL_PLAN_APPROVER.group}/v1alpha1",
        "kind": INSTALL_PLAN_APPROVER.name,
        "metadata": {"name": APPROVER.name, "namespace": APPROVER.namespace},
    }
    await client.apply(approver, manager=managers.INSTALL.name)
    await make_namespace(client, PINNED.namespace)
    await client.apply(a_subscription(PINNED, pin=f"{OPERATOR}.v2.0.0"), manager=managers.INSTALL.name)


async def create_machine(client: Client, name: str, **annotations: str) -> Ref:
    """Create a Machine with annotations of placement: `cluster_selector` means vitistack.io/cluster-selector."""
    prefixed = {f"vitistack.io/{key.replace('_', '-')}": value for key, value in annotations.items()}
    machine = {
        "apiVersion": f"{MACHINE.group}/v1alpha1",
        "kind": MACHINE.name,
        "metadata": {"name": name, "namespace": MACHINES, "annotations": prefixed},
        "spec": {"name": name, "providerConfig": {"name": "kubevirt"}, "cpu": {"cores": 2}},
    }
    await client.apply(machine, manager="team-a")
    return Ref(MACHINE, Key(MACHINES, name))


async def enable_autopilot(client: Client) -> None:
    """Turn the autopilot on for some assets."""
    annotations = {SCOPE: ",".join(ASSETS), "platform.kubevirt.io/enable-mtv": "true"}
    await client.merge_patch(
        Ref(HYPERCONVERGED, HCO), {"metadata": {"annotations": annotations}}, manager="kubectl-annotate"
    )


async def create_descheduler(client: Client) -> None:
    """Create a KubeDescheduler as it was configured before load-aware rebalancing."""
    key = DESCHEDULER.key
    descheduler: Object = {
        "apiVersion": f"{DESCHEDULER.kind.group}/v1",
        "kind": DESCHEDULER.kind.name,
        "metadata": {"name": key.name, "namespace": key.namespace},
        "spec": {
            "managementState": "Managed",
            "deschedulingIntervalSeconds": 3600,
            "mode": "Predictive",
            "profiles": ["AffinityAndTaints"],
            "logLevel": "Normal",
        },
    }
    await client.apply(descheduler, manager="kubectl")
