"""The platform as a whole: complete when entered, gone when left."""

from typing import Any

import pytest

from tests.audit import AuditLog
from tests.clients import a_client
from tests.eventually import eventually
from tests.leftovers import delete_all
from virt_steward.kube.client import Caller, Client
from virt_steward.kube.errors import NotServed
from virt_steward.objects.corekinds import NODE
from virt_steward.objects.identity import Key, Ref
from virt_steward_demo.local.controlplane import ControlPlane
from virt_steward_demo.simulation.conditions import is_true
from virt_steward_demo.simulation.kinds import olm
from virt_steward_demo.simulation.kinds.descheduler import KUBE_DESCHEDULER
from virt_steward_demo.simulation.kinds.hyperconverged import HYPER_CONVERGED
from virt_steward_demo.simulation.kinds.machineconfiguration import API_VERSION, MACHINE_CONFIG_POOL
from virt_steward_demo.simulation.kinds.virtualmachines import MIGRATION, VIRTUAL_MACHINE, VIRTUAL_MACHINE_INSTANCE
from virt_steward_demo.simulation.nodes import Node, add_node
from virt_steward_demo.simulation.platform import PlatformShape, SimulatedPlatform
from virt_steward_demo.simulation.rendering import ROLE

SHAPE = PlatformShape(pace=0.02)


async def test_platform_exists_until_end_of_block(admin: Client) -> None:
    gpu = Node("gpu-0", labels={"feature.node.kubernetes.io/pci-present": "true"}, capacity={"nvidia.com/gpu": "2"})
    async with SimulatedPlatform(admin, PlatformShape(masters=2, workers=2, pace=0.02, nodes=(gpu,))):
        nodes = {one["metadata"]["name"]: one for one in await admin.list(NODE)}
        assert sorted(nodes) == ["gpu-0", "master-0", "master-1", "worker-0", "worker-1"]
        assert nodes["gpu-0"]["status"]["capacity"]["nvidia.com/gpu"] == "2"
        assert not any("taints" in one["spec"] for one in nodes.values())
        assert await eventually(lambda: _all_pools_are_updated(admin))
        hco = await admin.get(Ref(HYPER_CONVERGED, Key("openshift-cnv", "kubevirt-hyperconverged")))
        assert is_true(hco["status"]["conditions"], "Available")
        await admin.discovery.resource(KUBE_DESCHEDULER)
    assert await admin.list(NODE) == []
    assert await admin.list(MACHINE_CONFIG_POOL) == []


async def test_platform_vms_migrate_or_stop_during_node_update(admin: Client) -> None:
    async with SimulatedPlatform(admin, SHAPE):
        before = await _places(admin)
        assert await eventually(lambda: _all_pools_are_updated(admin))
        await _configure(admin, "psi=1")
        assert await eventually(lambda: _has_rolled(admin))
        after = await _places(admin)
        assert after.keys() == before.keys()
        assert after["vm-1-0"] == "worker-1"  # it has a device there
        moved = [one["spec"]["vmiName"] for one in await admin.list(MIGRATION)]
        assert set(moved) == before.keys() - {"vm-1-0"}
        assert "vm-1-0" not in moved
        assert {one["status"]["printableStatus"] for one in await admin.list(VIRTUAL_MACHINE)} == {"Running"}


async def test_platform_vm_reports_that_it_cannot_migrate(admin: Client) -> None:
    async with SimulatedPlatform(admin, SHAPE):
        instances = {one["metadata"]["name"]: one["status"] for one in await admin.list(VIRTUAL_MACHINE_INSTANCE)}
        fixed = {name for name, status in instances.items() if not is_true(status["conditions"], "LiveMigratable")}
        assert fixed == {"vm-1-0"}
        assert len(instances) == 6


@pytest.mark.parametrize("first", ["v1", "v1beta1"])
async def test_platform_changes_served_hyperconverged_versions(admin: Client, first: str) -> None:
    second = {"v1": "v1beta1", "v1beta1": "v1"}[first]
    async with SimulatedPlatform(admin, PlatformShape(workers=0, masters=0, hyperconverged=(first,))) as platform:
        assert (await admin.discovery.resource(HYPER_CONVERGED)).version == first
        await platform.serve_hyperconverged("v1", "v1beta1")
        assert (await admin.discovery.resource(HYPER_CONVERGED)).version == "v1"
        await platform.serve_hyperconverged(second)
        assert (await admin.list(HYPER_CONVERGED))[0]["apiVersion"] == f"hco.kubevirt.io/{second}"


async def test_platform_omits_excluded_kinds(admin: Client) -> None:
    async with SimulatedPlatform(admin, PlatformShape(workers=0, masters=0)):
        await admin.discovery.resource(KUBE_DESCHEDULER)
    async with SimulatedPlatform(admin, PlatformShape(workers=0, masters=0, without=("KubeDescheduler",))):
        with pytest.raises(NotServed):
            await admin.discovery.resource(KUBE_DESCHEDULER)


async def test_platform_makes_no_requests_for_unrelated_objects(
    admin: Client, control_plane: ControlPlane, audit_log: AuditLog
) -> None:
    await delete_all(admin, *(stub.kind for stub in olm.STUBS))
    async with a_client(control_plane) as client:
        own = Client(client.connection, client.discovery, Caller(agent="simulation"))
        async with SimulatedPlatform(own, SHAPE):
            assert await eventually(lambda: _all_pools_are_updated(admin))
            mark = audit_log.mark()
            await _configure(admin, "psi=1", role="nobody")
            await add_node(admin, Node("sentinel"))  # it is answered after whatever came before
            assert await eventually(lambda: _counts_workers(admin, 4))
            asked = [one for one in audit_log.since(mark) if one.user_agent == "simulation" and one.verb != "watch"]
            assert asked
            assert {one.name for one in asked} == {"sentinel", "worker"}


async def _counts_workers(client: Client, count: int) -> bool:
    pool = await client.get(Ref(MACHINE_CONFIG_POOL, Key("", "worker")))
    return bool(pool["status"]["machineCount"] == count) and _is_updated(pool)


async def _configure(client: Client, argument: str, *, role: str = "worker") -> None:
    metadata = {"name": f"99-{role}-psi-karg", "labels": {ROLE: role}}
    spec = {"kernelArguments": [argument]}
    config = {"apiVersion": API_VERSION, "kind": "MachineConfig", "metadata": metadata, "spec": spec}
    await client.apply(config, manager="a-person")


async def _all_pools_are_updated(client: Client) -> bool:
    pools = await client.list(MACHINE_CONFIG_POOL)
    return len(pools) == 2 and all(_is_updated(pool) for pool in pools)


def _is_updated(pool: dict[str, Any]) -> bool:
    status = pool.get("status", {})
    return is_true(status.get("conditions", ()), "Updated") and status["configuration"] == pool["spec"]["configuration"]


async def _has_rolled(client: Client) -> bool:
    pool = await client.get(Ref(MACHINE_CONFIG_POOL, Key("", "worker")))
    sources = [one["name"] for one in pool["spec"]["configuration"]["source"]]
    return "99-worker-psi-karg" in sources and _is_updated(pool)


async def _places(client: Client) -> dict[str, str]:
    instances = await client.list(VIRTUAL_MACHINE_INSTANCE)
    return {one["metadata"]["name"]: one["status"]["nodeName"] for one in instances}
