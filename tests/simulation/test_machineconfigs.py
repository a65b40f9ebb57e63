"""Pools of the simulated platform: rendered, rolled node by node, and honest about it."""

from typing import Any

import pytest

from tests.eventually import eventually
from tests.runtime.informers import running
from tests.simulation.cluster import PACE, Cluster, a_cluster, nodes_and_a_pool
from virt_steward.kube.client import Client
from virt_steward.objects.identity import Key, Ref
from virt_steward_demo.simulation import faults
from virt_steward_demo.simulation.conditions import find, is_true
from virt_steward_demo.simulation.kinds.machineconfiguration import API_VERSION, KUBELET_CONFIG, MACHINE_CONFIG
from virt_steward_demo.simulation.machineconfigs import MachineConfigController
from virt_steward_demo.simulation.nodes import Node, add_base_config, add_node, add_pool
from virt_steward_demo.simulation.pools import CURRENT, DESIRED, STATE


@pytest.mark.parametrize(
    ("max_unavailable", "at_once"), [(1, 1), (2, 2), ("67%", 2)], ids=["one-by-one", "two-by-two", "two-of-three"]
)
async def test_pool_rolls_out_configuration(admin: Client, max_unavailable: int | str, at_once: int) -> None:
    async with a_cluster(admin, max_unavailable=max_unavailable) as cluster:
        before = await cluster.boots()
        await cluster.configure("99-psi", kernelArguments=["psi=1"])
        assert await eventually(lambda: cluster.has_rolled("psi=1"))
        after = await cluster.boots()
        assert all(after[name] != boot for name, boot in before.items())
        assert max(map(len, cluster.away)) == at_once
        assert frozenset().union(*cluster.away) == set(before)


async def test_node_update_cordons_reboots_and_uncordons(admin: Client) -> None:
    async with a_cluster(admin) as cluster:
        seen: list[tuple[bool, str, bool]] = []

        def look(key: Key, _before: Any, after: Any) -> None:
            if key.name == "worker-1" and after:
                ready = is_true(after.status["conditions"], "Ready")
                seen.append((bool(after.spec.get("unschedulable")), after.metadata.annotations[STATE], ready))

        cluster.nodes.tell(look)
        await cluster.configure("99-psi", kernelArguments=["psi=1"])
        assert await eventually(lambda: cluster.has_rolled("psi=1"))
        steps = [step for number, step in enumerate(seen) if number == 0 or step != seen[number - 1]]
        assert steps == [
            (False, "Done", True),
            (True, "Working", True),
            (True, "Working", False),
            (True, "Working", True),
            (False, "Done", True),
        ]
        notes = (await cluster.node("worker-1"))["metadata"]["annotations"]
        assert notes[CURRENT] == notes[DESIRED] == (await cluster.status())["configuration"]["name"]


async def test_pool_is_not_updated_while_nodes_run_old_configuration(admin: Client) -> None:
    """The moment after a change: rendered and asked for, but run by nobody."""
    async with a_cluster(admin) as cluster:
        await faults.pause_pool(admin, "worker")
        before = (await cluster.status())["configuration"]
        await cluster.configure("99-psi", kernelArguments=["psi=1"])
        assert await eventually(lambda: _is_asked_for_another(cluster, before))
        assert await eventually(lambda: _says_it_is_paused(cluster))
        status = await cluster.status()
        assert status["configuration"] == before
        assert (status["machineCount"], status["updatedMachineCount"]) == (3, 0)
        assert not is_true(status["conditions"], "Updated")
        assert not cluster.away[-1]
        await faults.resume_pool(admin, "worker")
        assert await eventually(lambda: cluster.has_rolled("psi=1"))


async def test_pool_stops_at_failed_node_until_repair(admin: Client) -> None:
    async with a_cluster(admin) as cluster:
        await faults.break_node(admin, "worker-1", "no space left on the boot partition")
        await cluster.configure("99-psi", kernelArguments=["psi=1"])
        assert await eventually(lambda: _is_degraded(cluster))
        status = await cluster.status()
        counts = [status[f"{name}MachineCount"] for name in ("updated", "unavailable", "degraded")]
        assert counts == [1, 1, 1]
        degraded = find(status["conditions"], "Degraded")
        assert degraded
        assert degraded.message == "Node worker-1: no space left on the boot partition"
        await faults.repair_node(admin, "worker-1")
        assert await eventually(lambda: cluster.has_rolled("psi=1"))
        assert not await _is_degraded(cluster)


async def test_invalid_configuration_degrades_only_its_pool(admin: Client) -> None:
    async with a_cluster(admin) as cluster:
        await add_base_config(admin, "master")
        await add_pool(admin, "master")
        await cluster.configure("99-bad", config={"storage": {"files": [{"contents": "of a file without a path"}]}})
        assert await eventually(lambda: _is_degraded(cluster))
        assert is_true((await cluster.status())["conditions"], "RenderDegraded")
        assert await eventually(lambda: cluster.is_updated("master"))
        await admin.delete(Ref(MACHINE_CONFIG, Key("", "99-bad")))
        assert await eventually(lambda: _is_sound(cluster))


async def test_slow_pool_does_not_delay_other_pool(admin: Client) -> None:
    async with a_cluster(admin) as cluster:
        await add_pool(admin, "infra")
        await add_node(admin, Node("infra-0", roles=("worker", "infra")))
        await faults.set_pace(admin, "worker", 600)
        await cluster.configure("99-psi", kernelArguments=["psi=1"])
        for argument in ("a", "b", "c", "d", "e"):
            await cluster.configure("99-infra", role="infra", kernelArguments=[argument])
            assert await eventually(lambda: cluster.has_rolled(argument, "infra"))  # noqa: B023 - awaited before the next
        assert await _has_one_away(cluster)
        assert (await cluster.status())["updatedMachineCount"] == 0


async def test_custom_pool_node_is_updated_once(admin: Client) -> None:
    async with a_cluster(admin) as cluster:
        await add_pool(admin, "infra")
        await add_node(admin, Node("infra-0", roles=("worker", "infra")))
        assert await eventually(lambda: cluster.is_updated("infra"))
        await cluster.configure("99-psi", kernelArguments=["psi=1"])
        await cluster.configure("99-infra", role="infra", kernelArguments=["quiet"])
        assert await eventually(lambda: cluster.has_rolled("psi=1"))
        assert await eventually(lambda: cluster.has_rolled("quiet", "infra"))
        assert await cluster.has_rolled("psi=1", "infra")
        assert (await cluster.status("infra"))["machineCount"] == 1
        assert (await cluster.status("worker"))["machineCount"] == 3
        assert "quiet" not in (await cluster.rendered())["kernelArguments"]


async def test_pool_without_nodes_is_updated_at_once(admin: Client) -> None:
    async with a_cluster(admin) as cluster:
        await add_base_config(admin, "master")
        await add_pool(admin, "master")
        await cluster.configure("99-master-psi", role="master", kernelArguments=["psi=1"])
        assert await eventually(lambda: cluster.has_rolled("psi=1", "master"))
        assert (await cluster.status("master"))["machineCount"] == 0


async def test_render_merges_files_and_units_by_name(admin: Client) -> None:
    async with a_cluster(admin) as cluster:
        for name, text in (("50-first", "one"), ("60-second", "two")):
            files = [{"path": "/etc/swap.conf", "contents": {"source": f"data:,{text}"}}]
            units = [{"name": "swap.service", "dropins": [{"name": f"{text}.conf"}]}]
            config = {"ignition": {"version": "3.2.0"}, "storage": {"files": files}, "systemd": {"units": units}}
            await cluster.configure(name, config=config, kernelArguments=[text])
        assert await eventually(lambda: cluster.has_rolled("two"))
        rendered = await cluster.rendered()
        files = {one["path"]: one["contents"]["source"] for one in rendered["config"]["storage"]["files"]}
        assert files["/etc/swap.conf"] == "data:,two"
        (unit,) = rendered["config"]["systemd"]["units"]
        assert [one["name"] for one in unit["dropins"]] == ["one.conf", "two.conf"]
        assert rendered["kernelArguments"] == ["one", "two"]


async def test_kubelet_config_is_rolled_out_and_removed(admin: Client) -> None:
    async with a_cluster(admin) as cluster:
        before = (await cluster.status())["configuration"]
        selector = {"matchLabels": {"pools.operator.machineconfiguration.openshift.io/worker": ""}}
        spec = {"machineConfigPoolSelector": selector, "kubeletConfig": {"maxPods": 500}}
        metadata = {"name": "virt-perf"}
        await admin.create({"apiVersion": API_VERSION, "kind": "KubeletConfig", "metadata": metadata, "spec": spec})
        assert await eventually(lambda: _runs_a_file(cluster, "/etc/kubernetes/kubelet.conf"))
        ref = Ref(KUBELET_CONFIG, Key("", "virt-perf"))
        assert is_true((await admin.get(ref))["status"]["conditions"], "Success")
        await admin.delete(ref)
        assert await eventually(lambda: _runs(cluster, before))


async def test_interrupted_rollout_is_continued(admin: Client) -> None:
    async with nodes_and_a_pool(admin) as cluster:
        async with running(MachineConfigController(admin, pace=600)):
            assert await eventually(cluster.is_updated)
            await cluster.configure("99-psi", kernelArguments=["psi=1"])
            assert await eventually(lambda: _has_one_away(cluster))
        async with running(MachineConfigController(admin, PACE)):
            assert await eventually(lambda: cluster.has_rolled("psi=1"))


async def test_unrelated_change_updates_no_node(admin: Client) -> None:
    async with a_cluster(admin) as cluster:
        versions = await _versions(cluster)
        await cluster.configure("99-other", role="nobody", kernelArguments=["psi=1"])
        await add_node(admin, Node("worker-3"))
        assert await eventually(lambda: _has_joined(cluster, "worker-3"))
        assert await _versions(cluster) == versions


async def _is_asked_for_another(cluster: Cluster, before: dict[str, Any]) -> bool:
    return (await cluster.pool())["spec"]["configuration"]["name"] != before["name"]


async def _says_it_is_paused(cluster: Cluster) -> bool:
    updating = find((await cluster.status())["conditions"], "Updating")
    return updating is not None and updating.status == "False" and "paused" in updating.message


async def _is_degraded(cluster: Cluster) -> bool:
    return is_true((await cluster.status())["conditions"], "Degraded")


async def _is_sound(cluster: Cluster) -> bool:
    return not await _is_degraded(cluster) and await cluster.is_updated()


async def _has_one_away(cluster: Cluster) -> bool:
    return (await cluster.status())["unavailableMachineCount"] == 1


async def _runs_a_file(cluster: Cluster, path: str) -> bool:
    files = (await cluster.rendered())["config"]["storage"]["files"]
    return path in [one["path"] for one in files] and await cluster.is_updated()


async def _runs(cluster: Cluster, configuration: dict[str, Any]) -> bool:
    return (await cluster.status())["configuration"] == configuration and await cluster.is_updated()


async def _has_joined(cluster: Cluster, name: str) -> bool:
    return CURRENT in (await cluster.node(name))["metadata"].get("annotations", {})


async def _versions(cluster: Cluster) -> list[str]:
    nodes = [await cluster.node(f"worker-{number}") for number in range(3)]
    return [one["metadata"]["resourceVersion"] for one in nodes]
