"""Kinds that differ from cluster to cluster, and change while the autopilot runs."""

import asyncio
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from tests.controllers.autopilot.pair import ASSET, BOTH, OTHER, activate_two, is_corrected
from tests.controllers.autopilot.rig import AutopilotRig, at_work, spec_of
from tests.eventually import eventually
from tests.gateway import Gateway, a_status, no_streaming_list
from virt_steward.controllers.autopilot.options import HCO
from virt_steward.kube.discovery import CUSTOM_RESOURCE_DEFINITION
from virt_steward.objects.identity import Key, Kind, Ref
from virt_steward.platform.hco import HYPERCONVERGED
from virt_steward_demo.local.controlplane import ControlPlane
from virt_steward_demo.simulation.install import install
from virt_steward_demo.simulation.kinds.descheduler import RELEASES, kube_descheduler
from virt_steward_demo.simulation.nodes import Node, add_node
from virt_steward_demo.simulation.platform import PlatformShape

GOLDEN = "hco-golden-config"
LOKI = "logging-lokistack"
LABEL = "platform.kubevirt.io/managed-by"
NODE = Kind("", "Node", "nodes")
DESCHEDULERS = Ref(CUSTOM_RESOURCE_DEFINITION, Key("", "kubedeschedulers.operator.openshift.io"))

DEV = "DevKubeVirtRelieveAndMigrate"
PROFILES = {"v510": "LongLifecycle", "v514": DEV, "v521": DEV, "v532": "KubeVirtRelieveAndMigrate"}
LIMITS = {"v532": {"total": 5, "node": 1}}


@pytest.fixture
def shape(request: pytest.FixtureRequest) -> PlatformShape:
    """Whatever a test asks for."""
    asked: dict[str, Any] = getattr(request, "param", {})
    return PlatformShape(machines_per_worker=0, packages=(), **asked)


async def allow(rig: AutopilotRig, version: str, number: int) -> None:
    """Set how many migrations may run, where this version has that."""
    setting = {"liveMigrationConfig": {"parallelMigrationsPerCluster": number}}
    intent = {
        "apiVersion": f"{HYPERCONVERGED.group}/{version}",
        "kind": HYPERCONVERGED.name,
        "metadata": {"name": HCO.name, "namespace": HCO.namespace},
        "spec": setting if version == "v1beta1" else {"virtualization": setting},
    }
    await rig.client.apply(intent, manager="settings", force=True)


async def follows(rig: AutopilotRig, version: str, number: int) -> bool:
    """Whether the limit of the descheduler becomes that of the HyperConverged."""
    await allow(rig, version, number)

    async def is_so() -> bool:
        return bool(spec_of(await rig.live(ASSET))["evictionLimits"]["total"] == number)

    return await eventually(is_so, within=30)


async def is_marked(rig: AutopilotRig) -> bool:
    hco = await rig.live(GOLDEN)
    return hco is not None and hco["metadata"].get("labels", {}).get(LABEL) == "virt-platform-autopilot"


async def is_kept(rig: AutopilotRig) -> bool:
    """Whether the mark of the HyperConverged is set right after a change."""
    await rig.edit(GOLDEN, {"metadata": {"labels": {LABEL: "somebody"}}})
    return await eventually(partial(is_marked, rig), within=30)


@pytest.mark.parametrize(
    ("shape", "steps"),
    [
        pytest.param(
            {"hyperconverged": ("v1",)}, ["v1", "v1 v1beta1", "v1beta1"], id="v1 alone, then both, then not v1"
        ),
        pytest.param(
            {"hyperconverged": ("v1beta1", "v1")}, ["v1 v1beta1", "v1", "v1beta1"], id="both, then one by one"
        ),
        pytest.param({"hyperconverged": ("v1beta1",)}, ["v1beta1"], id="v1beta1 alone"),
    ],
    indirect=["shape"],
)
async def test_hyperconverged_is_managed_in_any_served_version(running_rig: AutopilotRig, steps: list[str]) -> None:
    await running_rig.activate(f"{GOLDEN},{ASSET},{OTHER}")
    assert await eventually(partial(is_marked, running_rig), within=30)
    assert await eventually(partial(running_rig.is_there, ASSET), within=30)
    for number, step in enumerate(steps, start=10):
        versions = step.split()
        if number > 10:
            await running_rig.platform.serve_hyperconverged(*versions)
        for turn, version in enumerate(versions):
            assert await follows(running_rig, version, 10 * number + turn)
        assert await is_marked(running_rig)
        assert await is_kept(running_rig)
    for reason in ("ApplyFailed", "RenderFailed", "ThrashingDetected"):
        assert await running_rig.events(reason) == []
    await is_corrected(running_rig)


@pytest.mark.parametrize("shape", [{"descheduler": "v510"}], indirect=True, ids=["from the oldest"])
async def test_descheduler_follows_its_installed_release(
    running_rig: AutopilotRig,
) -> None:
    await activate_two(running_rig)
    for release in (*RELEASES, RELEASES[0]):
        await install(running_rig.client, kube_descheduler(release.name).definition())
        assert await eventually(partial(has_profile, running_rig, PROFILES[release.name]), within=30)
        spec = spec_of(await running_rig.live(ASSET))
        assert spec["evictionLimits"] == LIMITS.get(release.name, {"total": 5})
        assert ("profileCustomizations" in spec) is (PROFILES[release.name] == "LongLifecycle"), release.name
        assert await running_rig.events("ApplyFailed", ASSET) == [], release.name
    assert await running_rig.events("ThrashingDetected") == []


class LateServer:
    """A server of which no watch of CRDs tells a change, or that validates by the earlier schema for a while."""

    def __init__(self, *, is_silent: bool, refusals: int) -> None:
        self.refusals = 0
        self._is_silent = is_silent
        self._left = refusals

    async def intercept(self, request: web.BaseRequest) -> web.StreamResponse | None:
        if request.path.endswith("/customresourcedefinitions") and self._is_silent:
            if "watch" in request.query and "sendInitialEvents" not in request.query:
                await web.StreamResponse().prepare(request)
                await asyncio.Event().wait()
            return await no_streaming_list(request)
        if request.method == "PATCH" and "/kubedeschedulers/" in request.path and self.refusals < self._left:
            body = await request.read()
            if b"LongLifecycle" in body:
                self.refusals += 1
                return a_status(422, "Invalid", 'spec.profiles[0]: Unsupported value: "LongLifecycle"')
        return None


@pytest.mark.parametrize(
    ("is_silent", "refusals"), [pytest.param(True, 0, id="watch is late"), pytest.param(False, 2, id="server is late")]
)
async def test_replaced_crd_is_no_failure(
    rig: AutopilotRig, control_plane: ControlPlane, gateway: Gateway, tmp_path: Path, *, is_silent: bool, refusals: int
) -> None:
    server = LateServer(is_silent=is_silent, refusals=refusals)
    gateway.intercept = server.intercept
    async with at_work(rig, control_plane, tmp_path, server=gateway.server):
        await activate_two(rig)
        await install(rig.client, kube_descheduler(RELEASES[0].name).definition())
        await rig.edit(ASSET, {"metadata": {"labels": {"wakes": "it"}}})
        assert await eventually(partial(has_profile, rig, PROFILES[RELEASES[0].name]), within=30)
        assert await rig.events("ApplyFailed", ASSET) == []
        assert server.refusals == refusals


async def has_profile(rig: AutopilotRig, name: str) -> bool:
    return bool(spec_of(await rig.live(ASSET))["profiles"] == [name])


async def test_field_unknown_to_the_crd_is_reported(running_rig: AutopilotRig) -> None:
    fields = "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties"
    await running_rig.client.json_patch(DESCHEDULERS, [{"op": "remove", "path": f"{fields}/managementState"}])
    await running_rig.activate(BOTH)
    assert await eventually(partial(running_rig.has_event, "ApplyFailed", ASSET), within=30)
    [event] = await running_rig.events("ApplyFailed", ASSET)
    assert ".spec.managementState" in event["note"]
    await install(running_rig.client, "KubeDescheduler")
    assert await eventually(partial(running_rig.is_there, ASSET), within=30)


async def test_log_store_size_follows_the_number_of_nodes(running_rig: AutopilotRig) -> None:
    await running_rig.activate(f"{LOKI},{OTHER}", enable_logging="true", logging_storage_class="fast")
    assert await eventually(partial(running_rig.is_there, LOKI), within=30)
    assert await eventually(partial(has_size, running_rig, "1x.extra-small"), within=30)
    for number in range(8):
        await add_node(running_rig.client, Node(f"more-{number}"))
    assert await eventually(partial(has_size, running_rig, "1x.medium"), within=30)
    for number in range(8):
        await running_rig.client.delete(Ref(NODE, Key("", f"more-{number}")))
    await running_rig.client.delete(Ref(NODE, Key("", "worker-0")))
    assert await eventually(partial(has_size, running_rig, "1x.pico"), within=30)
    assert await running_rig.events("DriftDetected", LOKI) == []


async def has_size(rig: AutopilotRig, size: str) -> bool:
    return bool(spec_of(await rig.live(LOKI))["size"] == size)
