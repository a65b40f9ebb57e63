"""InstallPlans with the size and shape of those of OLM, and a small CRD for them."""

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
    """The fields of a plan that the approver reads."""

    metadata: Meta
    spec: Spec = Spec()
    status: Status = Status()


def an_install_plan(
    name: str, namespace: str, *, size: int = 4_000, csv: str = "demo-operator.v1.0.0"
) -> dict[str, Any]:
    """A plan of `size` bytes, most of them in the manifest of a step."""
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
    """Create a plan like OLM: the object first, and in a second write its status, which has most of its bytes."""
    await client.create(plan)
    await client.merge_patch(ref_of(plan), {"status": plan["status"]}, subresource="status")


def sizes(count: int, rng: random.Random) -> Iterator[int]:
    """From 4 to 300 KB: most are small, a few contain large CRDs."""
    for _ in range(count):
        yield min(int(4_000 * rng.paretovariate(1.2)), 300_000)
