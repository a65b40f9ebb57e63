"""The autopilot on a crowded cluster, in long wars and under kills. STRESS_SCALE=0.1 tries it with a tenth of all."""

import asyncio
import os
import random
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from tests.audit import AuditLog, Mark, Request
from tests.bench.bare import Bare
from tests.bench.drift import asked, is_at_rest, is_ours, round_of_drifts, writes
from tests.bench.figures import Figure
from tests.clients import a_client
from tests.controllers.approver.lifecycle import at_once
from tests.controllers.approver.process import Process, a_process
from tests.controllers.autopilot.everything import SHAPE, ask_for_everything, options_for
from tests.controllers.autopilot.rig import AutopilotRig, an_autopilots_account
from tests.eventually import eventually
from virt_steward.apis.virtplatformconfig import VIRT_PLATFORM_CONFIG_CRD
from virt_steward.catalog.load import MANAGED_BY, load
from virt_steward.controllers.autopilot.options import HCO
from virt_steward.kube.client import Client
from virt_steward_demo.local.controlplane import ControlPlane
from virt_steward_demo.simulation.install import install
from virt_steward_demo.simulation.platform import SimulatedPlatform

SCALE = float(os.environ.get("STRESS_SCALE", "1"))
DEFINITIONS = int(400 * SCALE)
KILOBYTES = (60, 100)
IDLE = 120.0 * SCALE
MOST_MIB = 70
ROUNDS = 3
KILLS = int(20 * SCALE) or 2
QUICK, SLOW = 2.0, 20.0 * SCALE
PAUSED = "platform.kubevirt.io/reconcile-paused"

Object = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Range:
    """A platform on a cluster of its own, and the autopilot's rights on it."""

    rig: AutopilotRig
    audit_log: AuditLog
    kubeconfig: Path

    def process(self) -> AbstractContextManager[Process]:
        return a_process(self.kubeconfig, HCO.namespace, controller="autopilot", measured=True)

    async def is_at_rest(self) -> bool:
        return await is_at_rest(self.rig, self.audit_log)

    def asked(self, mark: Mark) -> list[Request]:
        return asked(self.rig, self.audit_log, mark)

    async def present(self) -> list[str]:
        return [one.name for one in self.rig.catalog.assets if await self.rig.is_there(one.name)]


@pytest.fixture
async def range_(empty_cluster: ControlPlane, tmp_path: Path) -> AsyncIterator[Range]:
    catalog = load()
    audit_log = AuditLog(empty_cluster.audit_log)
    async with a_client(empty_cluster) as client, SimulatedPlatform(client, SHAPE) as platform:
        await install(client, VIRT_PLATFORM_CONFIG_CRD.manifest())
        account = await an_autopilots_account(client, catalog)
        rig = AutopilotRig(client, platform, catalog, account, options_for(catalog), audit_log.mark())
        yield Range(rig, audit_log, account.write_kubeconfig(tmp_path / "kubeconfig", empty_cluster))


def a_definition(number: int, rng: random.Random) -> Object:
    """A CRD with as many described fields as real ones have."""
    size = rng.randint(*KILOBYTES) * 1024
    words = "This says how the component behaves when the cluster is large, and what it costs to change it later. "
    properties = {
        f"section{section}": {
            "type": "object",
            "description": words,
            "properties": {
                f"field{field}": {"type": "string", "description": words * 2, "maxLength": 253} for field in range(10)
            },
        }
        for section in range(size // 2900)
    }
    plural, group = f"things{number}", f"crowd{number % 20}.example.org"
    schema = {"type": "object", "properties": {"spec": {"type": "object", "properties": properties}}}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    names = {"plural": plural, "singular": f"thing{number}", "kind": f"Thing{number}"}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{group}"},
        "spec": {"group": group, "scope": "Cluster", "names": names, "versions": [version]},
    }


async def test_autopilot_with_400_crds_is_small_fast_and_idle(range_: Range) -> None:
    rig, rng = range_.rig, random.Random(5)
    crowd = [a_definition(number, rng) for number in range(DEFINITIONS)]
    await at_once(partial(rig.client.apply, one, manager="crowd") for one in crowd)
    assert await eventually(partial(_are_served, rig.client, crowd), within=300)
    await ask_for_everything(rig)
    bare = await Bare.on(rig.client)
    with range_.process() as process:
        assert await eventually(range_.is_at_rest, within=180)
        rounds = [await round_of_drifts(rig, range_.audit_log, bare) for _ in range(ROUNDS)]
        assert await eventually(range_.is_at_rest, within=60)
        rss, used, mark = process.rss, process.cpu, range_.audit_log.mark()
        await asyncio.sleep(IDLE)  # what is measured is that nothing happens
        asked, cpu = range_.asked(mark), process.cpu - used
        troubles = process.troubles
    drift = Figure("drift", "ms", "a bare PATCH", tuple(rounds))
    print(
        f"\nmemory with {len(await range_.present())} managed objects and {DEFINITIONS} other CRDs: {rss:.1f} MiB RSS"
        f"\nidle for {IDLE:.0f} s: {len(asked)} requests, {cpu:.2f} s CPU"
        f"\nmedian time from drift to revert: {drift.median:.1f} ms, {drift.ratio:.2f} times a bare PATCH"
    )
    assert [one for one in troubles if one["event"] != "annotation not followed"] == []
    assert [(one.verb, one.uri) for one in asked] == []
    assert rss <= MOST_MIB
    assert drift.ratio <= 5


async def _are_served(client: Client, definitions: list[Object]) -> bool:
    await client.discovery.refresh()
    served = [client.discovery.serves(one["spec"]["group"], one["spec"]["names"]["plural"]) for one in definitions]
    await asyncio.sleep(0 if all(served) else 2)  # so many are a burden to the server as it is
    return all(served)


async def test_autopilot_pauses_fast_and_slow_edit_war_only(range_: Range) -> None:
    rig = range_.rig
    await rig.activate("true")
    wars = {"descheduler-loadaware": QUICK, "metrics-service": SLOW}
    with range_.process() as process:
        assert await eventually(range_.is_at_rest, within=120)
        async with asyncio.TaskGroup() as fights:
            for asset, every in wars.items():
                fights.create_task(_fight(rig, asset, every))
            calm = fights.create_task(_drift_calmly(range_, "prometheus-alerts"))
        pauses = [one["asset"] for one in process.log() if one["event"] == "edit war: object paused"]
    print(f"\nedits every {QUICK:g} s and every {SLOW:g} s: paused {pauses}; other drifts reverted: {calm.result()}")
    assert sorted(pauses) == sorted(wars)
    told = await rig.events("ThrashingDetected")
    assert sorted(one["related"]["name"] for one in told) == sorted(rig.ref(asset).key.name for asset in wars)
    assert calm.result() >= 3


async def _fight(rig: AutopilotRig, asset: str, every: float) -> None:
    """Change a label at fixed times until it is left alone, and twice more."""
    after = 0
    for turn in count(1):
        await rig.edit(asset, {"metadata": {"labels": {MANAGED_BY: "opponent"}}}, manager="opponent")
        await asyncio.sleep(every)  # the pace is what is tried
        obj = await rig.live(asset)
        assert obj
        after += obj["metadata"].get("annotations", {}).get(PAUSED) == "true"
        if after == 3:
            return
        assert turn < 20, f"{asset} is fought for ever"


async def _drift_calmly(range_: Range, asset: str) -> int:
    """Change another object now and then; gives how often it was set right."""
    for turn in range(4):
        await range_.rig.edit(asset, {"metadata": {"labels": {MANAGED_BY: "somebody"}}})
        if not await eventually(partial(is_ours, range_.rig, asset), within=30):
            return turn
        await asyncio.sleep(SLOW / 2)
    return 4


async def test_autopilot_creates_each_object_once_despite_kills(range_: Range) -> None:
    rng = random.Random(6)
    await ask_for_everything(range_.rig)
    for _ in range(KILLS):
        begin = range_.audit_log.mark()
        with range_.process() as process:
            assert await eventually(partial(_has_asked, range_, process, begin), within=60)
            await asyncio.sleep(rng.uniform(0.0, 0.2))  # a kill at any moment is what is tried
    with range_.process():
        assert await eventually(range_.is_at_rest, within=180)
    written = writes(range_.rig, range_.audit_log, range_.rig.begin)
    created = Counter(one.uri for one in written if one.code == 201)
    present = await range_.present()
    print(f"\n{KILLS} kills: {len(created)} objects created, {len(present)} exist")
    assert set(created.values()) == {1}
    for reason in ("ThrashingDetected", "DriftDetected", "ApplyFailed"):
        assert await range_.rig.events(reason) == []


async def _has_asked(range_: Range, process: Process, begin: Mark) -> bool:
    return bool(range_.asked(begin)) or not process.alive
