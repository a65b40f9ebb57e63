"""Removes a whole installation, after the work of all four controllers, from a control plane of its own.

Of its own, since the command finds roles by their label, and other tests have installed such roles.
"""

from collections.abc import AsyncIterator, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.audit import AuditLog, Mark
from tests.cli.commands import Ended, steward
from tests.clients import a_client
from tests.cluster import a_control_plane
from tests.controllers.advisor.rig import AdvisorRig, no_reboots
from tests.controllers.approver.lifecycle import a_lifecycle, an_approver
from tests.controllers.approver.process import a_process
from tests.controllers.autopilot.staging_rig import workers_are_settled
from tests.controllers.placement.scene import Scene
from tests.eventually import eventually
from tests.howtos import Follower
from tests.widgets import install_crd
from virt_steward.controllers.autopilot.annotation_keys import SCOPE
from virt_steward.controllers.autopilot.options import HCO
from virt_steward.kube.client import EVERYTHING, Client, Object
from virt_steward.kube.errors import NotFound
from virt_steward.kube.faults import VARIABLE
from virt_steward.objects.identity import Key, Kind, Ref, ref_of
from virt_steward.packaging.parts import InstallOptions, installed, together
from virt_steward.platform.hco import HYPERCONVERGED
from virt_steward.platform.machineconfigs import MACHINE_CONFIG
from virt_steward.removal.decide import RECORDED
from virt_steward.removal.found import is_ours
from virt_steward.removal.observe import DEPLOYMENT
from virt_steward.ssa.managers import INSTALL
from virt_steward_demo.local.controlplane import ControlPlane
from virt_steward_demo.simulation.platform import PlatformShape, SimulatedPlatform

HOME = "virt-steward"
ALL = "advisor,autopilot,approver,placement"
KILLS = (
    "uninstall.delete.before",
    "uninstall.delete.after#4",
    "uninstall.release.before#2",
    "uninstall.release.after#3",
    "uninstall.delete.before#9",
    "uninstall.delete.after#20",
)
UNIMPORTANT = ("resourceVersion", "managedFields", "annotations")


@pytest.fixture(scope="module")
def control_plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    with a_control_plane(tmp_path_factory.mktemp("removal")) as started:
        yield started


@pytest.fixture
async def cluster(control_plane: ControlPlane) -> AsyncIterator[Client]:
    """The installation on a platform, with its Deployments: one for each controller, and one for all of them."""
    shape = PlatformShape(workers=1, machines_per_worker=0, pace=0.02)
    async with a_client(control_plane) as client, SimulatedPlatform(client, shape):
        apart = InstallOptions(console=True)
        both = [obj for one in (apart, together(apart)) for objects in installed(one).values() for obj in objects]
        for obj in {ref_of(obj): obj for obj in both}.values():
            await (install_crd(client, obj) if obj["kind"].startswith("Custom") else client.create(obj))
        yield client


async def work(client: Client, control_plane: ControlPlane, folder: Path) -> None:
    """Have each controller write to targets, and stop."""
    activation = {"metadata": {"annotations": {SCOPE: "true"}}}
    olm = await a_lifecycle(client, "operators")
    await olm.subscribe("etcd", "etcd.v1")
    await an_approver(client, "operators", "all")
    plan = await olm.offer("etcd.v1")
    scene = Scene(client, control_plane, "operators", HOME)
    await scene.install_crds()
    await scene.join("east")
    await scene.machine("web")
    rig = AdvisorRig(client)
    kubeconfig = folder / "kubeconfig"
    kubeconfig.write_bytes(control_plane.kubeconfig.read_bytes())
    with a_process(kubeconfig, HOME, "--lease-duration=4", "--lease-retry=0.2", controller=ALL) as process:
        await rig.ask("Apply", options=no_reboots())
        assert await rig.reaches("Completed", within=60), (await rig.status(), process.log()[-3:])
        await client.merge_patch(Ref(HYPERCONVERGED, HCO), activation, manager="admin")
        assert await eventually(partial(olm.is_approved, plan), within=30)
        assert await eventually(partial(scene.is_on, "web", "east"), within=30)
        assert await eventually(partial(has_swap, client), within=60)
        assert await eventually(partial(workers_are_settled, client), within=60)
        refused = await uninstall(control_plane, "--yes")
        assert (refused.code, "renews Lease virt-steward/virt-steward-advisor" in refused.stderr) == (1, True)


async def has_swap(client: Client) -> bool:
    found = await client.list(MACHINE_CONFIG, EVERYTHING)
    return any(one["metadata"]["name"] == "90-worker-swap-online" for one in found)


async def uninstall(control_plane: ControlPlane, *options: str, **env: str) -> Ended:
    return await steward("uninstall", *options, kubeconfig=control_plane.kubeconfig, **env)


async def is_expired(control_plane: ControlPlane) -> bool:
    """Whether the Leases of the killed process no longer count."""
    return "renews" not in (await uninstall(control_plane, "--dry-run")).stdout


def writes(control_plane: ControlPlane, mark: Mark) -> list[str]:
    requests = AuditLog(control_plane.audit_log).since(mark)
    ours = (one for one in requests if one.user_agent.startswith("virt-steward/") and one.is_write)
    return [f"{one.verb} {one.resource} {one.name}" for one in ours]


async def test_uninstall_leaves_what_it_said_and_reboots_nothing(
    cluster: Client, control_plane: ControlPlane, tmp_path: Path
) -> None:
    await work(cluster, control_plane, tmp_path)
    mark = AuditLog(control_plane.audit_log).mark()
    assert await eventually(partial(is_expired, control_plane), within=30)
    running = await uninstall(control_plane, "--yes")
    assert running.code == 1
    assert "Deployment virt-steward/virt-steward-advisor has 2 replicas" in running.stderr
    assert "scale deployment -l app.kubernetes.io/name=virt-steward --replicas=0" in running.stderr
    assert writes(control_plane, mark) == []
    for one in await cluster.list(DEPLOYMENT):
        await cluster.merge_patch(Ref(DEPLOYMENT, Key(HOME, one["metadata"]["name"])), {"spec": {"replicas": 0}})

    howto = Follower("remove", cluster, control_plane.kubeconfig)
    planned = await howto.steward("uninstall --dry-run", "-o", "json")
    assert planned.code == 2, planned.stderr
    steps = msgspec.json.decode(planned.stdout)["steps"]
    assert writes(control_plane, mark) == []
    asked = await howto.steward("uninstall")
    assert (asked.code, "Add --yes" in asked.stderr) == (1, True)
    before = {ref: await cluster.get(ref) for ref in refs(steps, "release")}
    for point in KILLS:
        killed = await uninstall(control_plane, "--yes", **{VARIABLE: f"{point}:kill"})
        assert killed.code == -9, (point, killed)
    done = await uninstall(control_plane, "--yes")
    assert (done.code, done.stderr) == (0, ""), done.stdout

    for ref in refs(steps, "delete"):
        with pytest.raises(NotFound):
            await cluster.get(ref)
    for ref, obj in before.items():
        assert essence(await cluster.get(ref)) == essence(obj), ref
    kept = {ref for action in ("keep", "release") for ref in refs(steps, action)}
    assert [one async for one in leftovers(cluster, kept)] == []
    mark = AuditLog(control_plane.audit_log).mark()
    again = await uninstall(control_plane, "--yes")
    assert (again.code, again.stdout.splitlines()[-1].partition(":")[0]) == (0, "nothing to do")
    assert writes(control_plane, mark) == []
    assert await workers_are_settled(cluster)


def refs(steps: list[Object], action: str) -> list[Ref]:
    chosen = [one for one in steps if one["action"] == action]
    return [Ref(Kind(one["group"], one["kind"]), Key(one["namespace"], one["name"])) for one in chosen]


def essence(obj: Object) -> Object:
    """With the generation, which every change of a spec raises; without what a release changes."""
    metadata = {name: value for name, value in obj["metadata"].items() if name not in UNIMPORTANT}
    notes = {name: value for name, value in obj["metadata"].get("annotations", {}).items() if name not in RECORDED}
    return obj | {"metadata": metadata | {"annotations": notes}}


async def leftovers(client: Client, kept: set[Ref]) -> AsyncIterator[str]:
    """What is still ours, of all kinds that the server serves."""
    async for kind in served(client):
        for one in await client.list(kind, EVERYTHING):
            metadata: dict[str, Any] = one["metadata"]
            ref = Ref(kind, Key(metadata.get("namespace", ""), metadata["name"]))
            if kind.name in ("VirtPlatformConfig", "InstallPlanApprover", "Event", "Pod", "ReplicaSet"):
                continue
            if (metadata.get("labels") or {}).get("app.kubernetes.io/name") == "virt-steward":
                yield f"{ref} is labelled"
            if ref not in kept and metadata["name"].startswith("virt-steward"):
                yield f"{ref} is there"
            entries = metadata.get("managedFields") or ()
            if any(is_ours(entry) and entry["manager"] != INSTALL.name for entry in entries):  # the simulation's
                yield f"{ref} has a field manager of ours"
            if RECORDED & (metadata.get("annotations") or {}).keys():
                yield f"{ref} has an annotation of ours"


async def served(client: Client) -> AsyncIterator[Kind]:
    groups = msgspec.json.decode(await client.raw("/apis"))["groups"]
    paths = {"": "/api/v1"} | {one["name"]: f"/apis/{one['preferredVersion']['groupVersion']}" for one in groups}
    for group, path in paths.items():
        for one in msgspec.json.decode(await client.raw(path))["resources"]:
            if "list" in one["verbs"] and "/" not in one["name"] and group != "metrics.k8s.io":
                yield Kind(group, one["kind"], one["name"])
