"""What the controller does, what its debug pages say and what the command line prints: one answer."""

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest
import yaml

from tests.cli.commands import steward
from tests.controllers.autopilot.everything import RIVALS, SHAPE, ask_for_everything, expected
from tests.controllers.autopilot.rig import AutopilotRig, at_work
from tests.eventually import eventually
from virt_steward.objects.coverage import lacking
from virt_steward.objects.extract import extract
from virt_steward.objects.ownership import owned_by
from virt_steward.runtime.addresses import Address
from virt_steward.runtime.probes import Addresses
from virt_steward.ssa.managers import AUTOPILOT
from virt_steward_demo.local.controlplane import ControlPlane, ReservedPort
from virt_steward_demo.simulation.platform import PlatformShape

COMPLETED_BY_THE_SERVER = {"kubevirt-metrics-exporter-daemonset": "a fieldRef is undivided, and gets its apiVersion"}


@pytest.fixture
def shape() -> PlatformShape:
    return SHAPE


class Debug:
    """The debug pages of the autopilot at work."""

    def __init__(self, session: aiohttp.ClientSession) -> None:
        self._session = session

    async def get(self, path: str, method: str = "GET") -> tuple[int, str, str]:
        async with self._session.request(method, f"/debug/{path}") as answer:
            return answer.status, answer.content_type, await answer.text()

    async def idle(self, path: str) -> str:
        async with self._session.get(f"/debug/{path}") as answer:
            return answer.headers.get("X-Autopilot-Idle", "")

    async def records(self, path: str) -> Any:
        status, media, text = await self.get(path)
        assert (status, media) == (200, "application/json"), text
        return json.loads(text)


@pytest.fixture
async def debug(rig: AutopilotRig, control_plane: ControlPlane, tmp_path: Path) -> AsyncIterator[Debug]:
    free = ReservedPort()
    address = Address("--debug-bind-address", "127.0.0.1", free.number)
    free.release()
    async with (
        at_work(rig, control_plane, tmp_path, addresses=Addresses(None, address, None)),
        aiohttp.ClientSession(f"http://{address}") as session,
    ):
        found = Debug(session)
        assert await eventually(lambda: _is_up(found), within=60)
        yield found


async def _is_up(debug: Debug) -> bool:
    try:
        return (await debug.get("health"))[0] == 200
    except aiohttp.ClientConnectionError:
        return False


def images(rig: AutopilotRig) -> dict[str, str]:
    return {f"RELATED_IMAGE_{key.upper().replace('-', '_')}": image for key, image in rig.options.images.items()}


async def test_controller_debug_page_and_cli_agree(
    rig: AutopilotRig, debug: Debug, control_plane: ControlPlane
) -> None:
    await ask_for_everything(rig)

    async def all_there() -> bool:
        return all([await rig.is_there(name) for name in expected(rig.catalog)])

    assert await eventually(all_there, within=90)
    page = await debug.records("render?format=json&show-excluded=true")
    command = ("render", "--show-excluded", "--output=json")
    ended = await steward(*command, kubeconfig=control_plane.kubeconfig, **images(rig))
    assert ended.stderr == ""
    assert [one["asset"] for one in page] == [asset.name for asset in rig.catalog.assets]
    assert json.loads(ended.stdout) == page
    assert {one["asset"] for one in page if "object" not in one} == RIVALS.keys()
    wanted = {one["asset"]: one["object"] for one in page if "object" in one}
    sent = {name: await _sent(rig, name) for name in wanted}
    assert [name for name in wanted if any(lacking(wanted[name], sent[name]))] == []
    assert {name for name in wanted if any(lacking(sent[name], wanted[name]))} == COMPLETED_BY_THE_SERVER.keys()


async def _sent(rig: AutopilotRig, asset: str) -> dict[str, Any]:
    """What the controller has applied, as the server remembers it."""
    live = await rig.live(asset)
    assert live
    part = extract(live, owned_by(live, AUTOPILOT.name))
    metadata = {name: live["metadata"][name] for name in ("name", "namespace") if name in live["metadata"]}
    identity = {"apiVersion": live["apiVersion"], "kind": live["kind"]}
    return {**identity, **part, "metadata": metadata | part.get("metadata", {})}


async def test_debug_pages_answer_in_yaml_and_json(rig: AutopilotRig, debug: Debug) -> None:
    assert (await debug.get("render"))[1] == "application/x-yaml"
    assert (await debug.get("render", method="POST"))[0] == 405
    assert (await debug.get("render?format=xml"))[::2] == (400, "there is no format xml: use yaml or json\n")
    assert (await debug.get("render/"))[0] == 400
    assert (await debug.get("render/gone"))[::2] == (404, "there is no asset gone; /debug/features lists them\n")
    assert await debug.get("health") == (200, "text/plain", "OK\n")
    features = {one["name"]: one for one in await debug.records("features?format=json")}
    assert (features["SWAP"]["maturity"], features["SWAP"]["install"]) == ("GA", "always")
    stones = await debug.records("tombstones?format=json")
    assert [one["path"] for one in stones] == [stone.path for stone in rig.catalog.tombstones]
    assert yaml.safe_load((await debug.get("tombstones"))[2]) == stones

    assert "no annotation platform.kubevirt.io/autopilot" in (await debug.idle("render"))
    rules = "[{kind: MachineConfig, name: '*psi*'}]"
    await rig.activate("descheduler-loadaware,metallb-operator", disabled_resources=rules)
    assert await eventually(lambda: rig.is_there("descheduler-loadaware"), within=30)
    assert await debug.idle("render") == ""
    left = {one["asset"]: one for one in await debug.records("exclusions?format=json")}
    assert left["metallb-operator"]["details"] == {
        "platform.kubevirt.io/enable-metallb": "expected=true, actual=absent"
    }
    assert left["psi-enable"]["reason"] == "Root exclusion"
    assert left["psi-enable"]["details"]["annotation"] == "platform.kubevirt.io/disabled-resources"
    assert left["swap-enable"].keys() == {"asset", "path", "component", "reason", "details"}
    (shown,) = await debug.records("render/descheduler-loadaware?format=json")
    assert (shown["status"], shown["component"]) == ("INCLUDED", "KubeDescheduler")

    await rig.client.delete(rig.ref("hco-golden-config"))
    assert await eventually(lambda: _fails(debug), within=30)
    assert (await debug.get("render"))[2].endswith("there is no HyperConverged openshift-cnv/kubevirt-hyperconverged\n")


async def _fails(debug: Debug) -> bool:
    return (await debug.get("render"))[0] == 500


async def test_patch_shows_in_debug_page_and_cli(rig: AutopilotRig, debug: Debug, control_plane: ControlPlane) -> None:
    asset = "descheduler-loadaware"
    await rig.activate(asset)
    assert await eventually(lambda: rig.is_there(asset), within=30)
    operation = {"op": "replace", "path": "/spec/deschedulingIntervalSeconds", "value": 1800}
    await rig.annotate(asset, patch=json.dumps([operation]))
    assert await eventually(lambda: rig.has_event("PatchApplied", asset), within=30)
    (page,) = await debug.records(f"render/{asset}?format=json")
    command = ("render", f"--asset={asset}", "--output=json")
    ended = await steward(*command, kubeconfig=control_plane.kubeconfig, **images(rig))
    assert json.loads(ended.stdout) == [page]
    assert page["object"]["spec"]["deschedulingIntervalSeconds"] == 1800
    why = await explained(asset, control_plane, rig)
    assert why["state"] == "In place"
    assert why["overrides"]["platform.kubevirt.io/patch"] == json.dumps([operation])
    assert why["remarks"] == ["PatchApplied: 1 operation(s) of platform.kubevirt.io/patch applied"]
    assert {check["result"] for check in why["checks"]} == {"pass"}
    assert why["live"]["madeByUs"] is True
    assert why["live"]["others"] == ["admin"]


async def explained(asset: str, control_plane: ControlPlane, rig: AutopilotRig) -> Any:
    ended = await steward("explain", "asset", asset, "-o", "json", kubeconfig=control_plane.kubeconfig, **images(rig))
    assert (ended.code, ended.stderr) == (0, "")
    return json.loads(ended.stdout)
