"""What others do while a choice is on its way, and a process that ends in the middle of it."""

from collections.abc import Awaitable, Callable
from functools import partial

import pytest
from aiohttp import web

from tests.controllers.placement.conftest import Asked, Start
from tests.controllers.placement.scene import Scene
from tests.controllers.placement.test_placer import has_event, is_placed
from tests.eventually import eventually
from tests.gateway import Gateway
from tests.machines import the_machine


def before_the_choice(gateway: Gateway, deed: Callable[[], Awaitable[object]]) -> list[str]:
    """Do it once, when a choice is about to reach the server; gives the paths of all choices."""
    seen: list[str] = []

    async def meddle(request: web.BaseRequest) -> web.StreamResponse | None:
        if request.method == "PATCH" and "/machines/" in request.path and not request.path.endswith("/status"):
            seen.append(request.path)
            if len(seen) == 1:
                await deed()
        return None

    gateway.intercept = meddle
    return seen


async def test_a_choice_that_somebody_makes_meanwhile_stands(
    scene: Scene, start: Start, gateway: Gateway, asked: Asked
) -> None:
    await scene.join("east", "west")
    seen = before_the_choice(gateway, partial(scene.annotate, "web", kubevirt_config="west"))
    await scene.machine("web")
    with start("--default-kubevirt-config=east", server=gateway.server):
        assert await eventually(lambda: bool(seen))
        await scene.machine("next")
        assert await eventually(partial(scene.is_on, "next", "east"))
        assert await eventually(partial(counts, scene, west=1, east=1))
    assert await scene.cluster_of("web") == "west"
    codes = {one.code for one in asked() if (one.resource, one.verb, one.name) == ("machines", "patch", "web")}
    assert codes == {409}


async def counts(scene: Scene, **machines: int) -> bool:
    return {name: (await scene.status(name)).get("machines", 0) for name in machines} == machines


async def test_a_change_that_is_no_choice_only_delays_ours(scene: Scene, start: Start, gateway: Gateway) -> None:
    await scene.join("east")
    touch = {"metadata": {"labels": {"touched": "yes"}}}
    deed = partial(scene.client.merge_patch, the_machine(scene.namespace, "web"), touch)
    seen = before_the_choice(gateway, deed)
    await scene.machine("web")
    with start(server=gateway.server) as process:
        assert await eventually(partial(scene.is_on, "web", "east"))
        assert process.troubles == []
    assert len(seen) == 2


async def test_a_machine_that_goes_meanwhile_is_not_made_anew(scene: Scene, start: Start, gateway: Gateway) -> None:
    await scene.join("east")
    seen = before_the_choice(gateway, partial(scene.client.delete, the_machine(scene.namespace, "web")))
    await scene.machine("web")
    with start(server=gateway.server):
        assert await eventually(lambda: bool(seen))
        await scene.machine("next")
        assert await eventually(partial(scene.is_on, "next", "east"))
        assert await eventually(partial(counts, scene, east=1))
    assert not await scene.exists("web")


@pytest.mark.parametrize("point", ["placement.record.before", "placement.record.after", "placement.status.after"])
async def test_a_machine_is_placed_once_though_the_process_is_killed_at(scene: Scene, start: Start, point: str) -> None:
    await scene.join("east", "west")
    await scene.machine("web")
    options = ("--placement-strategy=round-robin",)
    with start(*options, fault=f"{point}:kill") as first:
        assert await eventually(lambda: first.was_killed)
    chosen = await scene.cluster_of("web")
    with start(*options):
        await scene.machine("next")
        assert await eventually(partial(is_somewhere, scene, "next"))
        assert await eventually(partial(is_somewhere, scene, "web"))
        assert await eventually(partial(has_event, scene, "web", "Placed"))
    assert chosen in ("", await scene.cluster_of("web"))
    [event] = await scene.events("web")
    assert event["note"] == f"placed on cluster {await scene.cluster_of('web')}: round-robin: number 1 in turn"
    assert {await scene.cluster_of("web"), await scene.cluster_of("next")} == {"east", "west"}


async def is_somewhere(scene: Scene, name: str) -> bool:
    return bool(await scene.cluster_of(name))


@pytest.mark.parametrize("point", ["placement.condition.before", "placement.condition.after"])
async def test_what_blocks_a_machine_is_said_once_though_the_process_is_killed_at(
    scene: Scene, start: Start, point: str
) -> None:
    await scene.machine("web")
    with start(fault=f"{point}:kill") as first:
        assert await eventually(lambda: first.was_killed)
    with start():
        assert await eventually(partial(scene.waits_for, "web", "NoConfigs"))
        assert await eventually(partial(has_event, scene, "web", "NoConfigs"))
        await scene.join("east")
        assert await eventually(partial(is_placed, scene, "web"))
    machine = await scene.client.get(the_machine(scene.namespace, "web"))
    assert len(machine["status"]["conditions"]) == 1


async def test_placer_reports_no_ambiguity_for_a_machine_made_right_after_its_vm(scene: Scene, start: Start) -> None:
    """Both configs lead to the same API server, so a VM that is found at all is found twice."""
    await scene.join("east", "west")
    with start():
        await scene.machine("db")
        assert await eventually(partial(scene.waits_for, "db", "AmbiguousPlacement"))
        await scene.vm("vm-web")
        await scene.machine("web")
        assert await eventually(partial(has_event, scene, "web", "FoundTwice"))
    assert {one["reason"] for one in await scene.events("web")} == {"FoundTwice"}
