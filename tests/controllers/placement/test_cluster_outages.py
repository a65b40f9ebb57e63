"""Clusters that answer, fall silent, come back and go: what is told of them, and what it does to machines."""

from collections.abc import AsyncIterator, Callable
from functools import partial

import pytest
from aiohttp import web

from tests.controllers.placement.conftest import Asked, Start
from tests.controllers.placement.scene import Scene
from tests.controllers.placement.test_placer import has_event
from tests.eventually import eventually
from tests.gateway import Gateway, Interception, a_gateway, a_status
from tests.proxy import FaultProxy
from virt_steward_demo.local.controlplane import ControlPlane

QUICK = ("--probe-interval=0.1", "--cluster-timeout=0.5", "--cluster-retry=0.1", "--search-memory=0.1")
TOKEN = "an-unmistakable-secret"


@pytest.fixture
async def other(control_plane: ControlPlane) -> AsyncIterator[Gateway]:
    """A cluster of its own, as far as VMs are concerned: it has none."""
    async with a_gateway(control_plane) as gateway:
        gateway.intercept = has_vms()
        yield gateway


def has_vms(*names: str) -> Interception:
    async def intercept(request: web.BaseRequest) -> web.StreamResponse | None:
        if not request.path.endswith("/virtualmachines"):
            return None
        namespace = request.path.split("/")[-2]
        items = [{"metadata": {"name": name, "namespace": namespace}} for name in names]
        return web.json_response({"kind": "PartialObjectMetadataList", "metadata": {}, "items": items})

    return intercept


async def tells(scene: Scene, config: str, **expected: str) -> bool:
    conditions = (await scene.status(config)).get("conditions", [])
    return {one["type"]: one["status"] for one in conditions} == expected


async def counts(scene: Scene, config: str, machines: int) -> bool:
    return bool((await scene.status(config)).get("machines", 0) == machines)


def is_asked(gateway: Gateway, path: str, times: int) -> Callable[[], bool]:
    """So many times from now on."""
    before = len(gateway.requests)
    return lambda: sum(one.path.endswith(path) for one in gateway.requests[before:]) >= times


async def test_a_status_tells_what_there_is_and_is_written_only_when_that_changes(
    scene: Scene, start: Start, other: Gateway, asked: Asked
) -> None:
    await scene.join("main", server=other.secure_server)
    await scene.machine("web")
    with start(*QUICK) as process:
        assert await eventually(partial(counts, scene, "main", 1))
        assert await eventually(partial(tells, scene, "main", Reachable="True", CredentialsValid="True"))
        before = await scene.status("main")
        assert await eventually(is_asked(other, "/version", 5))
        assert await scene.status("main") == before
        assert process.troubles == []
    assert before["version"].startswith("v1.")
    assert (before["phase"], before["observedGeneration"]) == ("Ready", 1)
    writes = [one for one in asked() if (one.resource, one.subresource) == ("kubevirtconfigs", "status")]
    assert len(writes) <= 2


async def test_what_others_have_put_into_a_status_stays(scene: Scene, start: Start) -> None:
    await scene.join("main")
    theirs = {"name": "Main Street", "message": "built last year"}
    await scene.client.merge_patch(scene.ref("main"), {"status": theirs}, subresource="status")
    with start():
        assert await eventually(partial(tells, scene, "main", Reachable="True", CredentialsValid="True"))
    assert theirs.items() <= (await scene.status("main")).items()


async def test_a_cluster_that_falls_silent_blocks_by_name_until_it_is_back(
    scene: Scene, start: Start, proxy: FaultProxy
) -> None:
    await scene.join("east", labels={"side": "east"})
    await scene.join("west", server=proxy.server)
    with start(*QUICK, "--placement-strategy=round-robin"):
        assert await eventually(partial(tells, scene, "west", Reachable="True", CredentialsValid="True"))
        await proxy.refuse()
        await proxy.cut()
        assert await eventually(partial(tells, scene, "west", Reachable="False", CredentialsValid="Unknown"))
        await scene.machine("web")
        assert await eventually(partial(scene.waits_for, "web", "ClustersSilent"))
        message = (await scene.condition("web"))["message"]
        await proxy.accept()
        assert await eventually(partial(scene.is_on, "web", "east"))
        assert await eventually(partial(tells, scene, "west", Reachable="True", CredentialsValid="True"))
    assert "VM vm-web may exist in a cluster that is unreachable (cluster west: unreachable: " in message


async def test_a_vm_that_was_found_is_adopted_and_who_was_silent_is_named(
    scene: Scene, start: Start, other: Gateway, proxy: FaultProxy
) -> None:
    await proxy.refuse()
    await scene.join("north", server=other.secure_server)
    await scene.join("south", server=proxy.server)
    other.intercept = has_vms("vm-legacy")
    await scene.machine("legacy")
    with start(*QUICK):
        assert await eventually(partial(scene.is_on, "legacy", "north"))
        assert await eventually(partial(has_note, scene, "legacy", "VM vm-legacy exists there; south unreachable"))


async def has_note(scene: Scene, name: str, text: str) -> bool:
    return any(text in one["note"] for one in await scene.events(name))


async def test_a_strict_search_waits_for_those_who_are_silent(
    scene: Scene, start: Start, other: Gateway, proxy: FaultProxy
) -> None:
    await proxy.refuse()
    await scene.join("north", server=other.secure_server)
    await scene.join("south", server=proxy.server)
    other.intercept = has_vms("vm-legacy")
    await scene.machine("legacy")
    with start(*QUICK, "--search=strict"):
        assert await eventually(partial(scene.waits_for, "legacy", "ClustersSilent"))
        await proxy.accept()
        assert await eventually(partial(scene.is_on, "legacy", "north"))


@pytest.mark.parametrize(
    ("code", "reason", "says", "remedy"),
    [
        pytest.param(401, "Unauthorized", ": unauthorized (401): ", "get a new kubeconfig", id="our user"),
        pytest.param(403, "Forbidden", ": forbidden (403) to list", "grant its kubeconfig user", id="to answer"),
        pytest.param(
            400, "ClusterRefuses", ": request refused (HTTP 400): ", "check that its kubeconfig has", id="all"
        ),
    ],
)
async def test_a_cluster_is_not_called_silent_that_refuses(
    scene: Scene, start: Start, other: Gateway, *, code: int, reason: str, says: str, remedy: str
) -> None:
    async def refuses(request: web.BaseRequest) -> web.StreamResponse | None:
        return a_status(code, reason) if request.path.endswith("/virtualmachines") else None

    other.intercept = refuses
    await scene.join("east")
    await scene.join("west", server=other.secure_server)
    await scene.machine("web")
    with start(*QUICK, "--placement-strategy=round-robin"):
        assert await eventually(partial(scene.waits_for, "web", reason))
        assert await eventually(partial(has_event, scene, "web", reason))
        message = (await scene.condition("web"))["message"]
        other.intercept = has_vms()
        assert await eventually(partial(scene.is_on, "web", "east"))
    assert message.startswith(f"VM vm-web may exist in a cluster that cannot be searched (cluster west{says}")
    assert remedy in message


async def test_a_vm_in_two_clusters_is_a_conflict_until_one_is_gone(scene: Scene, start: Start, other: Gateway) -> None:
    await scene.join("north", server=other.secure_server)
    await scene.join("south")
    await scene.vm("vm-twin")
    other.intercept = has_vms("vm-twin")
    await scene.machine("twin")
    with start(*QUICK):
        assert await eventually(partial(scene.waits_for, "twin", "FoundTwice"))
        assert "vm-twin exists in north and south" in (await scene.condition("twin"))["message"]
        other.intercept = has_vms()
        assert await eventually(partial(scene.is_on, "twin", "south"))


async def test_a_vm_that_somebody_makes_ends_an_ambiguity(scene: Scene, start: Start, other: Gateway) -> None:
    await scene.join("north", server=other.secure_server)
    await scene.join("south")
    await scene.machine("web")
    with start(*QUICK):
        assert await eventually(partial(scene.waits_for, "web", "AmbiguousPlacement"))
        await scene.vm("vm-web")
        assert await eventually(partial(scene.is_on, "web", "south"))


async def test_nothing_that_a_run_produces_shows_a_secret(
    scene: Scene, start: Start, control_plane: ControlPlane, other: Gateway
) -> None:
    async def repeats_the_token(request: web.BaseRequest) -> web.StreamResponse | None:
        return a_status(403, "Forbidden", f"{request.headers['Authorization']} may not")

    other.intercept = repeats_the_token
    await scene.join("rejected", token=TOKEN)
    await scene.join("repeated", server=other.secure_server)
    await scene.join_secret("garbage", f"users: [{TOKEN}")
    await scene.configure("garbage")
    await scene.machine("web")
    await scene.machine("bad", annotations={"vitistack.io/kubevirt-config": "garbage"})
    with start(*QUICK, "--log-level=debug") as process:
        assert await eventually(partial(scene.waits_for, "web", "BadKubeconfig"))
        assert await eventually(partial(scene.waits_for, "bad", "BadKubeconfig"))
        assert await eventually(partial(tells, scene, "rejected", Reachable="True", CredentialsValid="False"))
        produced = [process.log(), *[await scene.status(name) for name in ("rejected", "repeated", "garbage")]]
    produced += [await scene.condition("web"), await scene.condition("bad")]
    produced += [await scene.events("web"), await scene.events("bad")]
    text = str(produced)
    assert "unauthorized (401)" in text
    for secret in (TOKEN, control_plane.token):
        assert secret not in text
