"""Pools in every state that a rollout passes through, and what a reboot costs."""

from typing import Any

import msgspec
import pytest

from virt_steward.plans.blast_radius import Census, VmiFacts, blast_radius
from virt_steward.platform.health import NotReady, Ready, health_from_conditions
from virt_steward.platform.machineconfigs import ROLE, machine_config_facts
from virt_steward.platform.nodes import NodeFacts
from virt_steward.platform.pools import Pool, rollout_health

OURS = machine_config_facts(
    msgspec.json.encode(
        {
            "metadata": {"name": "99-psi", "labels": {ROLE: "worker"}},
            "spec": {
                "kernelArguments": ["psi=1"],
                "config": {"storage": {"files": [{"path": "/a", "contents": {"source": "data:,x"}}]}},
            },
        }
    )
)


def rendered(*arguments: str, content: str = "data:,x") -> Any:
    files = [{"path": "/a", "mode": 420, "contents": {"source": content}}, {"path": "/b", "contents": {"source": ""}}]
    spec = {"kernelArguments": arguments, "config": {"storage": {"files": files}}}
    return machine_config_facts(msgspec.json.encode({"metadata": {"name": "rendered-new"}, "spec": spec}))


def a_pool(name: str = "worker", *, current: str = "rendered-new", done: int = 3, of: int = 3, **spec: Any) -> Pool:
    roles = ["worker"] if name == "worker" else ["worker", name]
    return msgspec.convert(
        {
            "metadata": {"name": name},
            "spec": {
                "machineConfigSelector": {"matchExpressions": [{"key": ROLE, "operator": "In", "values": roles}]},
                "nodeSelector": {"matchLabels": {f"node-role.kubernetes.io/{name}": ""}},
                "configuration": {"name": "rendered-new"},
                **spec,
            },
            "status": {
                "configuration": {"name": current},
                "machineCount": of,
                "updatedMachineCount": done,
                "readyMachineCount": done,
            },
        },
        Pool,
    )


def seen(pool: Pool, config: Any) -> Any:
    return rollout_health(OURS, [pool], {"rendered-new": config})


def test_rollout_is_ready_once_all_nodes_run_our_content() -> None:
    assert seen(a_pool(), rendered("quiet", "psi=1")) == Ready(
        "MachineConfigPool 'worker' is ready (all 3 nodes updated)"
    )
    assert isinstance(seen(a_pool(done=0, of=0), rendered("psi=1")), Ready)


@pytest.mark.parametrize(
    ("pool", "config", "said"),
    [
        pytest.param(a_pool(), rendered(), "to take up 99-psi", id="is-only-updated-from-before"),
        pytest.param(a_pool(), rendered("psi=1", content="data:,old"), "to take up", id="has-an-older-file-of-ours"),
        pytest.param(a_pool(), None, "to take up", id="refers-to-what-was-not-seen-yet"),
        pytest.param(a_pool(done=2), rendered("psi=1"), "to stabilize (Updated: 2/3, Ready: 2/3)", id="still-rolls"),
        pytest.param(a_pool(current="rendered-old"), rendered("psi=1"), "to stabilize", id="ran-something-else-last"),
        pytest.param(
            a_pool(),
            rendered("psi=1", "psi=0"),
            "has psi=0 from a MachineConfig that comes after 99-psi",
            id="has-another-value-after-ours",
        ),
        pytest.param(a_pool(paused=True), rendered(), "is paused", id="is-paused"),
    ],
)
def test_rollout_is_not_ready(pool: Pool, config: Any, said: str) -> None:
    found = rollout_health(OURS, [pool], {"rendered-new": config} if config else {})
    assert isinstance(found, NotReady)
    assert said in found.message


def test_degradation_gives_the_reason() -> None:
    pool = a_pool(done=1)
    condition = {"type": "Degraded", "status": "True", "message": "Node a: no space"}
    status = {**msgspec.to_builtins(pool.status), "degradedMachineCount": 1, "conditions": [condition]}
    broken = msgspec.convert({**msgspec.to_builtins(pool), "status": status}, Pool)
    found = seen(broken, rendered("psi=1"))
    assert found.message == (
        "MachineConfigPool 'worker' is degraded (1 degraded machines: Node a: no space; Updated: 1/3, Ready: 1/3)"
    )


def test_rollout_considers_every_selecting_pool() -> None:
    pools = [a_pool(), a_pool("gpu", paused=True, current="rendered-old")]
    found = rollout_health(OURS, pools, {"rendered-new": rendered("psi=1")})
    assert isinstance(found, NotReady)
    assert "'gpu' is paused" in found.message
    assert rollout_health(OURS, [], {}) == Ready("No MachineConfigPool selects it, so no node changes")


def a_node(name: str, *roles: str) -> NodeFacts:
    labels = {f"node-role.kubernetes.io/{role}": "" for role in roles}
    return msgspec.convert({"metadata": {"name": name, "labels": labels}}, NodeFacts)


def a_machine(name: str, node: str, *, migratable: bool = True) -> VmiFacts:
    condition = {"type": "LiveMigratable", "status": str(migratable)}
    status = {"nodeName": node, "conditions": [condition]}
    return msgspec.convert({"metadata": {"name": name, "namespace": "ns"}, "status": status}, VmiFacts)


def test_node_belongs_to_its_custom_pool_first() -> None:
    census = Census(
        nodes=(
            a_node("m", "master", "worker"),
            a_node("w1", "worker"),
            a_node("w2", "worker"),
            a_node("w3", "worker"),
            a_node("g", "worker", "gpu"),
        ),
        machines=(a_machine("a", "w1"), a_machine("b", "g", migratable=False), a_machine("c", "m")),
    )
    master = msgspec.convert(
        {
            "metadata": {"name": "master"},
            "spec": {"nodeSelector": {"matchLabels": {"node-role.kubernetes.io/master": ""}}},
        },
        Pool,
    )
    found = blast_radius({ROLE: "worker"}, [a_pool(maxUnavailable=2), a_pool("gpu"), master], census)
    assert [(one.name, one.nodes, one.rounds) for one in found.pools] == [("gpu", 1, 1), ("worker", 3, 2)]
    assert found.nodes == ("g", "w1", "w2", "w3")
    assert (found.virtual_machines, found.immovable) == (1, ("ns/b",))
    assert "1 cannot migrate and stops instead: ns/b" in found.message


@pytest.mark.parametrize(
    ("most", "nodes", "rounds"),
    [
        (None, 5, 5),
        (2, 5, 3),
        (0, 3, 3),
        ("50%", 4, 2),
        ("10%", 5, 5),
        ("3", 6, 2),
        (9, 0, 0),
        ("9" * 5000, 2, 2),
        ("²", 2, 2),
    ],
)
def test_rounds_follow_max_unavailable(most: Any, nodes: int, rounds: int) -> None:
    assert a_pool(maxUnavailable=most).rounds(nodes) == rounds


@pytest.mark.parametrize(
    ("live", "works"),
    [
        pytest.param({"metadata": {}}, True, id="that-says-nothing"),
        pytest.param({"metadata": {"generation": 2}, "status": {"observedGeneration": 1}}, False, id="not-seen-yet"),
        pytest.param(
            {"metadata": {}, "status": {"conditions": [{"type": "Available", "status": "True"}]}}, True, id="available"
        ),
        pytest.param(
            {"metadata": {}, "status": {"conditions": [{"type": "Available", "status": "False"}]}}, False, id="not-yet"
        ),
        pytest.param(
            {"metadata": {}, "status": {"conditions": [{"type": "TargetDegraded", "status": "True"}]}},
            False,
            id="degraded",
        ),
        pytest.param(
            {"metadata": {}, "status": {"conditions": [{"type": "Progressing", "status": "True"}]}},
            False,
            id="progressing",
        ),
        pytest.param(None, False, id="that-is-gone"),
    ],
)
def test_health_follows_conditions(live: Any, *, works: bool) -> None:
    assert isinstance(health_from_conditions(live), Ready) == works
