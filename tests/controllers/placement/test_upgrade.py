"""The placement on what version 0.1 has left: choices stay, and no Machine is written that has one."""

from functools import partial

from tests.controllers.placement.conftest import Asked, Start
from tests.controllers.placement.scene import Scene
from tests.eventually import eventually
from tests.recordings import V01, recording, restore
from virt_steward.kube.client import Object


async def test_upgrade_keeps_choices_and_what_is_blocked(scene: Scene, start: Start, asked: Asked) -> None:
    def written() -> set[str]:
        return {one.name for one in asked() if one.resource == "machines" and one.is_write}

    await scene.install_crds()
    objects = [_moved(obj, scene) for obj in recording("placement", folder=V01)]
    for config in ("east", "west"):
        await scene.join_secret(config, scene.kubeconfig())
    await restore(scene.client, objects)
    before = {name: await scene.annotations(name) for name in ("chosen", "fixed", "blocked")}
    condition = await scene.condition("blocked")
    with start("--default-kubevirt-config=west", election=("--lease-duration=4", "--lease-retry=0.1")) as placement:
        assert await eventually(lambda: placement.said("leading"), within=30)
        await scene.machine("new")
        assert await eventually(partial(scene.is_on, "new", "west"), within=30)
        assert await eventually(lambda: placement.said("machine not placed", machine=f"{scene.namespace}/blocked"))
    assert {name: await scene.annotations(name) for name in before} == before
    after = await scene.condition("blocked")
    assert [after[name] for name in ("status", "reason", "lastTransitionTime")] == [
        condition[name] for name in ("status", "reason", "lastTransitionTime")
    ]
    assert written() <= {"new", "blocked"}
    for config in ("east", "west"):
        assert (await scene.status(config))["phase"] == "Ready"


def _moved(obj: Object, scene: Scene) -> Object:
    """Into the namespaces of this test."""
    metadata = dict(obj["metadata"])
    if "namespace" in metadata:
        metadata["namespace"] = scene.namespace if metadata["namespace"] == "shop" else scene.secrets
    spec = obj.get("spec", {})
    place = {"secretNamespace": scene.secrets} if "secretNamespace" in spec else {}
    return obj | {"metadata": metadata} | ({"spec": spec | place} if spec else {})
