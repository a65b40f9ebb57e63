"""What people are notified of: Machines without a cluster, clusters that do not answer, and the end of both."""

from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.controllers.placement.conftest import Asked, Start
from tests.controllers.placement.scene import Scene
from tests.eventually import eventually
from tests.runtime.receiver import Receiver, receiving
from virt_steward.controllers.placement.notifications import FAULTY, READY, RULES, cluster_reason
from virt_steward.kube.errors import NotFound
from virt_steward.objects.corekinds import CONFIG_MAP
from virt_steward.objects.identity import Key, Ref
from virt_steward.runtime.matters import ClosesMatters, OpensMatter, memory_name

DEAD = "https://127.0.0.1:1"


@pytest.fixture
async def receiver(tmp_path: Path) -> AsyncIterator[Receiver]:
    async with receiving() as started:
        (tmp_path / "notify.yaml").write_text(f"team: {{url: '{started.url}'}}\n")
        yield started


def told(receiver: Receiver, subject: str) -> list[str]:
    bodies: list[Any] = [body for _, body in receiver.got if body["subject"] == subject]
    return [f"{body['data']['state']} {body['data']['reason']}" for body in bodies]


async def remembered(scene: Scene) -> list[str]:
    """What the memory of notifications has of this test."""
    memory = Ref(CONFIG_MAP, Key(scene.secrets, memory_name("placement")))
    try:
        found = await scene.client.get(memory)
    except NotFound:
        return []
    return [one for one in (found.get("data") or {}).values() if scene.namespace in one or " east:" in one]


async def remembers_only(scene: Scene, text: str) -> bool:
    """It is written after the delivery, and the end of a block kills the process."""
    found = await remembered(scene)
    return bool(found) and all(one.endswith(text) for one in found)


async def is_remembered(scene: Scene, text: str) -> bool:
    return any(one.endswith(text) for one in await remembered(scene))


async def test_people_are_notified_once_of_what_blocks_and_of_its_end(
    scene: Scene, start: Start, receiver: Receiver, tmp_path: Path, asked: Asked
) -> None:
    options = (
        f"--notify-config={tmp_path / 'notify.yaml'}",
        "--notify=placement=team",
        "--console-url=https://console.example",
    )
    web = f"{scene.namespace}/web"
    await scene.machine("web")
    with start(*options):
        assert await eventually(lambda: told(receiver, web) == ["open NoConfigs"])
        await scene.join("east", server=DEAD)
        assert await eventually(lambda: told(receiver, "east") == ["open ClusterUnreachable"])
        assert await eventually(lambda: told(receiver, web)[-1:] == ["resolved Placed"]), "it is the only cluster"
        assert await eventually(partial(remembers_only, scene, "east: ClusterUnreachable"))
    with start(*options) as process:  # a restart repeats nothing that is remembered
        await scene.rotate("east", scene.kubeconfig())
        assert await eventually(lambda: told(receiver, "east") == ["open ClusterUnreachable", "resolved ClusterReady"])
        assert await eventually(partial(scene.is_on, "web", "east"))
        await scene.machine("next")
        assert await eventually(partial(scene.is_on, "next", "east"))
        assert process.troubles == []
    assert told(receiver, web) == ["open NoConfigs", "resolved Placed"]
    assert told(receiver, f"{scene.namespace}/next") == []
    [link] = {body["data"]["url"] for _, body in receiver.got if body["subject"] == web}
    assert link == f"https://console.example/placement/machines/{scene.namespace}/web"
    assert [one.uri for one in asked() if one.code == 403] == []


async def test_end_is_notified_after_kill_between_placement_and_event(
    scene: Scene, start: Start, receiver: Receiver, tmp_path: Path
) -> None:
    options = (f"--notify-config={tmp_path / 'notify.yaml'}", "--notify=placement=team")
    web = f"{scene.namespace}/web"
    await scene.machine("web")
    with start(*options, fault="placement.record.after:kill") as cut:
        assert await eventually(lambda: told(receiver, web) == ["open NoConfigs"])
        assert await eventually(partial(is_remembered, scene, f"{web}: NoConfigs"))
        await scene.join("east", server=DEAD)
        assert await eventually(lambda: cut.was_killed)
    assert await scene.is_on("web", "east")
    assert told(receiver, web) == ["open NoConfigs"]
    with start(*options):
        assert await eventually(lambda: told(receiver, web) == ["open NoConfigs", "resolved Placed"])


async def test_end_is_notified_after_kill_before_its_delivery(
    scene: Scene, start: Start, receiver: Receiver, tmp_path: Path
) -> None:
    """The receiver is down while the Machine is placed, and the process does not live until it is back."""
    options = (f"--notify-config={tmp_path / 'notify.yaml'}", "--notify=placement=team")
    web = f"{scene.namespace}/web"
    await scene.machine("web")
    with start(*options) as process:
        assert await eventually(lambda: told(receiver, web) == ["open NoConfigs"])
        assert await eventually(partial(is_remembered, scene, f"{web}: NoConfigs"))
        receiver.answers = [503] * 1000
        await scene.join("east")
        assert await eventually(lambda: told(receiver, web)[-1:] == ["resolved Placed"]), "it is refused"
        process.kill()
    receiver.answers, receiver.got = [], []
    with start(*options):
        assert await eventually(lambda: told(receiver, web) == ["resolved Placed"])


def test_every_faulty_phase_opens_a_matter_that_ready_closes() -> None:
    topics = {RULES.by_reason[cluster_reason(phase)] for phase in FAULTY}
    assert topics == {OpensMatter("cluster")}
    assert RULES.by_reason[READY] == ClosesMatters(("cluster",))
