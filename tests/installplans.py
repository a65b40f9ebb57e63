"""InstallPlans as OLM makes them, as far as size and shape matter here, under a small definition of our own."""

import random
from collections.abc import Iterator
from typing import Any

import msgspec

from virt_steward.controllers.approver.olm import INSTALL_PLAN
from virt_steward.kube.client import Client
from virt_steward.objects.identity import ref_of
from virt_steward.objects.meta import Meta
from virt_steward_demo.simulation.kinds import definition

GROUP = INSTALL_PLAN.group
DEFINITION = definition("InstallPlan")


class Spec(msgspec.Struct, frozen=True, rename="camel"):
    approved: bool = False
    cluster_service_version_names: tuple[str, ...] = ()


class Status(msgspec.Struct, frozen=True, rename="camel"):
    phase: str = ""


class InstallPlan(msgspec.Struct, frozen=True):
    """The few bytes of a plan that an approver reads."""

    metadata: Meta
    spec: Spec = Spec()
    status: Status = Status()


def an_install_plan(
    name: str, namespace: str, *, size: int = 4_000, csv: str = "demo-operator.v1.0.0"
) -> dict[str, Any]:
    """`size` bytes, most of them a manifest in a step, as in life."""
    step = {
        "resolving": csv,
        "resource": {"group": "apiextensions.k8s.io", "kind": "CustomResourceDefinition", "manifest": "x" * size},
        "status": "Unknown",
    }
    return {
        "apiVersion": f"{GROUP}/v1alpha1",
        "kind": "InstallPlan",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"approval": "Manual", "approved": False, "clusterServiceVersionNames": [csv]},
        "status": {"phase": "RequiresApproval", "plan": [step]},
    }


async def create_install_plan(client: Client, plan: dict[str, Any]) -> None:
    """Do as OLM does: the plan first, and in a second write its status, which holds nearly all of its bytes."""
    await client.create(plan)
    await client.merge_patch(ref_of(plan), {"status": plan["status"]}, subresource="status")


def sizes(count: int, rng: random.Random) -> Iterator[int]:
    """From 4 to 300 KB: most are small, a few carry large definitions."""
    for _ in range(count):
        yield min(int(4_000 * rng.paretovariate(1.2)), 300_000)
