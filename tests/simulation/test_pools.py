"""What a pool says of its nodes, without any cluster."""

import pytest

from virt_steward_demo.simulation.control_loop import SimulatedMeta, SimulatedObject
from virt_steward_demo.simulation.pools import PoolMachine, most_unavailable, next_machines, pool_of


def a_pool(name: str, **spec: object) -> SimulatedObject:
    selector = {"matchLabels": {f"node-role.kubernetes.io/{name}": ""}}
    return SimulatedObject(SimulatedMeta(name=name), {"nodeSelector": selector, **spec})


def a_node(*roles: str) -> SimulatedObject:
    return SimulatedObject(SimulatedMeta(name="node", labels={f"node-role.kubernetes.io/{role}": "" for role in roles}))


def a_machine(name: str, runs: str = "old", *, wants: str = "", ready: bool = True, state: str = "Done") -> PoolMachine:
    return PoolMachine(name, runs, wants or runs, state, ready=ready, schedulable=True, reason="")


POOLS = [a_pool("infra"), a_pool("master"), a_pool("worker")]


@pytest.mark.parametrize(
    ("roles", "pool"),
    [
        (("worker",), "worker"),
        (("master", "worker"), "master"),
        (("infra", "worker"), "infra"),
        ((), None),
    ],
    ids=["a-worker", "a-compact-node", "a-custom-one", "nobody"],
)
def test_pool_of_node_is_unique(roles: tuple[str, ...], pool: str | None) -> None:
    assert pool_of(a_node(*roles), POOLS) == pool


@pytest.mark.parametrize(
    ("value", "count", "most"),
    [(1, 3, 1), (2, 3, 2), ("50%", 5, 2), ("10%", 3, 1), (0, 3, 1)],
    ids=["one", "two", "half-rounded-down", "never-none", "zero-means-one"],
)
def test_most_unavailable_follows_spec(value: int | str, count: int, most: int) -> None:
    assert most_unavailable(a_pool("worker", maxUnavailable=value), count) == most


@pytest.mark.parametrize(
    ("machines", "busy", "chosen"),
    [
        ([a_machine("a"), a_machine("b")], [], ["a"]),
        ([a_machine("a", "new"), a_machine("b")], [], ["b"]),
        ([a_machine("a", wants="new"), a_machine("b")], [], []),
        ([a_machine("a", "new", ready=False), a_machine("b")], [], []),
        ([a_machine("a", "new"), a_machine("b")], ["a"], []),
        ([a_machine("a", state="Degraded"), a_machine("b")], [], []),
        ([a_machine("a", "new"), a_machine("b", "new")], [], []),
    ],
    ids=["the-first", "the-next", "none-while-one-is-away", "none-while-one-is-down", "none-while-one-is-busy",
         "none-while-one-has-failed", "none-when-all-are-done"],
)  # fmt: skip
def test_next_machines_respect_max_unavailable(machines: list[PoolMachine], busy: list[str], chosen: list[str]) -> None:
    found = next_machines(a_pool("worker"), "new", machines, busy)
    assert [machine.name for machine in found] == chosen


def test_next_machines_of_paused_pool_is_empty() -> None:
    assert next_machines(a_pool("worker", paused=True), "new", [a_machine("a")], []) == []
