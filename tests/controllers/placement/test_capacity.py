"""Free memory and CPU of clusters: measured where it can be, and not given away twice."""

import asyncio
from collections.abc import AsyncIterator
from functools import partial
from typing import Any

import msgspec
import pytest
from aiohttp import web

from tests.clients import a_client
from tests.controllers.placement.builders import a_cluster
from tests.controllers.placement.conftest import Start
from tests.controllers.placement.scene import Scene
from tests.eventually import eventually
from tests.gateway import Gateway, a_status
from tests.runtime.clocks import ManualClock
from tests.turns import counted_turns
from tests.widgets import install_crd
from virt_steward.apis.kubevirtconfig import Capacity, KubevirtConfigSpec
from virt_steward.controllers.placement.assignments import Assignments
from virt_steward.controllers.placement.capacity import CapacityCache, FreeCapacity, capacity_request
from virt_steward.controllers.placement.observation import CapacityFree, Unreachable
from virt_steward.controllers.placement.observe import KubevirtConfig, KubevirtConfigMeta
from virt_steward.controllers.placement.options import PlacementRules
from virt_steward.controllers.placement.strategies import STRATEGIES
from virt_steward.kube.answers import PORTION
from virt_steward.kube.client import Client, ListPage
from virt_steward.kube.errors import Unavailable
from virt_steward.objects.identity import Key, ref_of
from virt_steward.runtime.store import Store
from virt_steward_demo.local.controlplane import ControlPlane
from virt_steward_demo.tour.members import METRICS_CRD


@pytest.fixture
async def measured(admin: Client) -> AsyncIterator[None]:
    """Two nodes of 8 GiB and 4 cores, of which 4 GiB and 4 cores are used."""
    await install_crd(admin, METRICS_CRD)
    made = []
    for name, memory, cpu in (("one", "3Gi", "3500m"), ("two", "1048576Ki", "500000000n")):
        node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}}
        metrics = {"apiVersion": "metrics.k8s.io/v1beta1", "kind": "NodeMetrics", "metadata": {"name": name}}
        await admin.create(node)
        offered = {"status": {"allocatable": {"memory": "8Gi", "cpu": "4"}}}
        await admin.merge_patch(ref_of(node), offered, subresource="status")
        await admin.create(metrics | {"usage": {"memory": memory, "cpu": cpu}})
        made += [node, metrics]
    yield
    for one in made:
        await admin.delete(ref_of(one))


async def free(client: Client, **capacity: str) -> CapacityFree | None:
    spec = KubevirtConfigSpec(capacity=Capacity(**capacity) if capacity else None)
    return await capacity_request(spec)(client)


@pytest.mark.usefixtures("measured")
async def test_free_is_what_nodes_have_and_nobody_uses(admin: Client) -> None:
    assert await free(admin) == CapacityFree(pytest.approx(0.75), pytest.approx(0.5))


@pytest.mark.usefixtures("measured")
@pytest.mark.parametrize(
    ("capacity", "memory", "cpu"),
    [
        pytest.param({"memory": "5Gi"}, 0.2, 0.5, id="memory"),
        pytest.param({"memory": "1Gi"}, 0.0, 0.5, id="less-memory-than-is-used"),
        pytest.param({"cpu": "5"}, 0.75, 0.2, id="cpu"),
        pytest.param({"memory": "16Gi", "cpu": "16"}, 0.75, 0.75, id="both"),
    ],
)
async def test_what_a_config_says_of_its_capacity_counts_more(
    admin: Client, capacity: dict[str, str], memory: float, cpu: float
) -> None:
    assert await free(admin, **capacity) == CapacityFree(pytest.approx(memory), pytest.approx(cpu))


async def test_a_cluster_in_which_nobody_measures_has_no_figure(admin: Client) -> None:
    assert await free(admin) is None


@pytest.mark.usefixtures("measured")
@pytest.mark.parametrize(
    ("path", "code"),
    [
        pytest.param("/api/v1/nodes", 403, id="nodes-that-we-may-not-see"),
        pytest.param("/metrics.k8s.io/v1beta1/nodes", 403, id="metrics-that-we-may-not-see"),
        pytest.param("/metrics.k8s.io/v1beta1/nodes", 503, id="metrics-that-are-out-of-order"),
    ],
)
async def test_there_is_no_figure_with(control_plane: ControlPlane, gateway: Gateway, path: str, code: int) -> None:
    gateway.intercept = refusing(path, code)
    async with a_client(control_plane, server=gateway.server) as client:
        assert await free(client) is None


@pytest.mark.usefixtures("measured")
async def test_a_cluster_that_fails_to_list_its_nodes_is_not_taken_for_one_that_answers(
    control_plane: ControlPlane, gateway: Gateway
) -> None:
    gateway.intercept = refusing("/api/v1/nodes", 503)
    async with a_client(control_plane, server=gateway.server) as client:
        with pytest.raises(Unavailable):
            await free(client)


def refusing(path: str, code: int) -> Any:
    async def intercept(request: web.BaseRequest) -> web.StreamResponse | None:
        return a_status(code, "Refused") if request.path.endswith(path) else None

    return intercept


class CrowdedReader:
    """A cluster that claims to have thousands of nodes."""

    nodes = 3 * PORTION

    async def pages(self, *_: Any, **__: Any) -> AsyncIterator[ListPage]:
        node = msgspec.Raw(b'{"status": {"allocatable": {"memory": "4Gi", "cpu": "4"}}}')
        yield ListPage(kind="NodeList", listed=[node] * self.nodes)

    async def list(self, _kind: object, _selection: object, into: Any) -> list[Any]:
        return [msgspec.convert({"usage": {"memory": "1Gi", "cpu": "1"}}, into)] * self.nodes


async def test_capacity_of_thousands_of_nodes_lets_others_run() -> None:
    async with counted_turns() as turns:
        found = await capacity_request(KubevirtConfigSpec())(CrowdedReader())  # type: ignore[arg-type]
    assert found == CapacityFree(pytest.approx(0.75), pytest.approx(0.75))
    assert turns.count == 2 + 3 + 3, "after each portion of what is decoded and of both sums"


def test_machines_that_came_since_take_what_those_before_take_on_average() -> None:
    room = FreeCapacity(CapacityFree(0.6, 0.8), machines=4)
    assert room.with_machines(4) == CapacityFree(0.6, 0.8)
    assert room.with_machines(6) == CapacityFree(pytest.approx(0.4), pytest.approx(0.7))
    assert room.with_machines(3) == CapacityFree(pytest.approx(0.7), pytest.approx(0.85))
    assert FreeCapacity(CapacityFree(0.6), machines=4).with_machines(6).cpu is None


def test_an_empty_cluster_does_not_take_all_machines_of_a_burst() -> None:
    rooms = {"large": FreeCapacity(CapacityFree(1.0), machines=0), "small": FreeCapacity(CapacityFree(0.9), machines=0)}
    machines = dict.fromkeys(rooms, 0)
    for _ in range(40):
        clusters = [
            a_cluster(name, machines=machines[name], free=room.with_machines(machines[name]))
            for name, room in rooms.items()
        ]
        machines[STRATEGIES["least-loaded"].rank(tuple(clusters), PlacementRules())[0].cluster] += 1
    assert machines["large"] == pytest.approx(25, abs=1)


class Measured:
    """Clusters that tell what a test wants, and how often they were asked."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.editions = {"east": 1, "west": 1}

    def edition(self, config: str) -> int:
        return self.editions.get(config, 0)

    async def ask(self, config: str, _question: object) -> Any:
        self.asked.append(config)
        await asyncio.sleep(0)
        return CapacityFree(0.5) if config == "east" else Unreachable("no")


async def test_rooms_are_measured_together_and_not_again_for_a_while() -> None:
    clusters, clock = Measured(), ManualClock()
    configs: Store[KubevirtConfig] = Store({})
    for name in clusters.editions:
        configs.put(KubevirtConfig(KubevirtConfigMeta(name=name)))
    rooms = CapacityCache(clusters, configs, Assignments(), clock, lasting=60)
    await asyncio.gather(*(rooms.refresh() for _ in range(10)))
    assert clusters.asked == ["east", "west"]
    assert (rooms.of("east"), rooms.of("west")) == (FreeCapacity(CapacityFree(0.5), 0), None)
    clusters.editions["east"] = 2
    assert rooms.of("east") is None
    await rooms.refresh()
    assert clusters.asked == ["east", "west", "east"]
    await clock.advance(60)
    configs.remove(Key("", "west"))
    await rooms.refresh()
    assert clusters.asked[3:] == ["east"]


LEAST_LOADED = "vitistack.io/placement-strategy"


async def is_because(scene: Scene, machine: str, because: str) -> bool:
    return any(because in one["note"] for one in await scene.events(machine))


@pytest.mark.usefixtures("measured")
@pytest.mark.parametrize("whose", ["the installation's", "its own"])
async def test_the_cluster_with_more_room_is_chosen_though_it_has_more_machines_by_a_strategy_of(
    scene: Scene, start: Start, gateway: Gateway, whose: str
) -> None:
    async def is_full(request: web.BaseRequest) -> web.StreamResponse | None:
        if not request.path.endswith("/metrics.k8s.io/v1beta1/nodes"):
            return None
        usage = {"memory": "1Gi", "cpu": "6"}
        return web.json_response({"items": [{"metadata": {"name": "one"}, "usage": usage}]})

    gateway.intercept = is_full
    await scene.join("east", server=gateway.secure_server)
    await scene.join("west")
    await scene.machine("old", annotations={"vitistack.io/kubevirt-config": "west"})
    own = whose == "its own"
    await scene.machine("web", annotations={LEAST_LOADED: "least-loaded"} if own else {})
    with start(*([] if own else ["--placement-strategy=least-loaded"])):
        because = "least-loaded: 75% of its memory and 50% of its CPU are free, 1 machine"
        assert await eventually(partial(is_because, scene, "web", because))
    assert await scene.cluster_of("web") == "west"


async def test_clusters_that_do_not_tell_are_compared_by_their_machines(scene: Scene, start: Start) -> None:
    await scene.join("east", "west")
    await scene.machine("old", annotations={"vitistack.io/kubevirt-config": "east"})
    await scene.machine("web")
    with start("--placement-strategy=least-loaded"):
        assert await eventually(partial(is_because, scene, "web", "least-loaded: 0 machines"))
    assert await scene.cluster_of("web") == "west"


async def test_nodes_are_listed_only_where_a_choice_goes_by_them(scene: Scene, start: Start, gateway: Gateway) -> None:
    await scene.join("east", server=gateway.secure_server)
    await scene.join("west")
    await scene.machine("web")
    with start("--placement-strategy=round-robin", "--probe-interval=0.1"):
        assert await eventually(partial(scene.is_on, "web", "east"))
        assert await eventually(lambda: sum(one.path == "/version" for one in gateway.requests) > 3)
    assert not any(one.path.endswith("/nodes") for one in gateway.requests)
