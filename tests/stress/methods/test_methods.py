"""Each method installs the same; with exactly its rights, the controllers work through the tour; alerts arrive."""

import asyncio
import os
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pytest
from rich.console import Console

from tests.audit import AuditLog
from tests.clients import a_client
from tests.cluster import a_control_plane
from tests.controllers.autopilot.everything import HARDWARE
from tests.eventually import eventually
from tests.olm.lifecycle_manager import CATALOG, a_lifecycle_manager
from tests.olm.namespaces import OperatorNamespace
from tests.stress.methods.installers import METHODS, Admin
from tests.stress.methods.more_steps import more_steps
from tests.stress.methods.objects import (
    Name,
    Object,
    content,
    differences,
    is_role_of_controller,
    is_role_of_olm,
    live_objects,
)
from tests.stress.methods.rights import Right, anywhere, denied, granted, in_vain, unused
from tests.stress.monitoring.installation import PROMETHEUS, MonitoredInstallation
from virt_steward.controllers import NAMES
from virt_steward.kube.client import Client
from virt_steward_demo.local.binaries import find_or_build
from virt_steward_demo.local.controlplane import ControlPlane
from virt_steward_demo.local.progress import ProgressPrinter
from virt_steward_demo.simulation.install import install, make_namespace
from virt_steward_demo.simulation.kinds.monitoring import STUBS as MONITORING
from virt_steward_demo.simulation.packages import CATALOG as TOUR_CATALOG
from virt_steward_demo.simulation.platform import PlatformShape, SimulatedPlatform
from virt_steward_demo.tour.environment import DemoCluster
from virt_steward_demo.tour.members import DemoFleet
from virt_steward_demo.tour.narrator import Narrator
from virt_steward_demo.tour.sample_objects import PINNED, create_machine
from virt_steward_demo.tour.walkthroughs import WALKTHROUGHS

PACE = 0.3
"""Seconds that the update of a node takes."""
PATIENCE = 120.0
IMAGE = "RELATED_IMAGE_KUBEVIRT_METRICS_EXPORTER"
"""The variable that turns some assets on."""
SECURE, OURS = "pod-security.kubernetes.io~1", "app.kubernetes.io~1"
DIFFERENCES = {
    "chart": dict.fromkeys(
        (f"Namespace /metadata/labels/{SECURE}{mode}" for mode in ("enforce", "warn")),
        "Helm sets no labels of namespaces; the how-to adds that for monitoring",
    ),
    "bundle": {
        **dict.fromkeys(
            (f"ServiceAccount /metadata/labels/{OURS}{label}" for label in ("component", "name")),
            "OLM makes them itself",
        ),
        "Deployment /spec/revisionHistoryLimit": "OLM keeps one",
    },
}
"""Values that differ by method, each with its reason."""
OF_OLM = {Right(verb, "", "namespaces") for verb in ("get", "list", "watch")}
"""OLM lets every operator that it installs for all namespaces read them."""


@dataclass(frozen=True, slots=True)
class Installed:
    """What an installation has brought."""

    objects: dict[Name, Object]
    rights: dict[str, set[Right]]


async def installed_by(method: str, admin: Admin) -> Installed:
    before = await live_objects(admin.client)
    await METHODS[method](admin)
    after = await live_objects(admin.client)
    new = {name: content(obj) for name, obj in after.items() if name not in before}
    return Installed(new, {name: await granted(admin.client, name) for name in NAMES})


@pytest.fixture(scope="module")
def reference(tmp_path_factory: pytest.TempPathFactory) -> Installed:
    """As `virt-steward manifests` installs it."""

    async def run(control_plane: ControlPlane) -> Installed:
        async with a_client(control_plane) as client:
            await install(client, *(stub.definition() for stub in MONITORING))
            await make_namespace(client, PROMETHEUS.namespace)
            return await installed_by("manifests", Admin(client, control_plane))

    with a_control_plane(tmp_path_factory.mktemp("reference")) as control_plane:
        return asyncio.run(run(control_plane))


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DemoFleet]:
    """The member clusters of the tour."""
    with DemoFleet(find_or_build(os.environ, ProgressPrinter()), tmp_path_factory.mktemp("fleet")) as started:
        yield started


@pytest.fixture(params=METHODS)
def method(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def fresh(method: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """A control plane on which nothing was installed yet but, for the bundle, OLM."""
    folder = tmp_path_factory.mktemp(method)
    if method == "bundle":
        with a_lifecycle_manager(folder) as olm:
            yield olm.control_plane
            olm.check()
    else:
        with a_control_plane(folder) as started:
            yield started


@asynccontextmanager
async def a_platform(method: str, control_plane: ControlPlane) -> AsyncIterator[SimulatedPlatform]:
    shape = PlatformShape(pace=PACE, nodes=(HARDWARE,), simulates_olm=method != "bundle")
    async with a_client(control_plane) as client, SimulatedPlatform(client, shape) as platform:
        yield platform


@pytest.fixture
def _exporter(monkeypatch: pytest.MonkeyPatch) -> None:
    """As an admin sets it in the Deployment."""
    monkeypatch.setenv(IMAGE, "registry.example/exporter:1")


@pytest.mark.usefixtures("_exporter")
async def test_installation_works_through_tour_with_exactly_its_rights(
    method: str,
    fresh: ControlPlane,
    fleet: DemoFleet,
    reference: Installed,
    tmp_path: Path,
) -> None:
    log = AuditLog(fresh.audit_log)
    async with a_platform(method, fresh) as platform:
        found = await installed_by(method, Admin(platform.client, fresh))
        has_same_rights(found, reference, method)
        has_same_objects(found, reference, method)
        begin = log.mark()
        if method == "bundle":
            await offer_operator_of_tour(platform.client)
        await fleet.join(platform.client)
        installation = MonitoredInstallation(platform.client, fresh, tmp_path)
        try:
            await tour(installation, DemoCluster(platform.client, platform, fleet, NAMES))
        finally:
            installation.stop()
        requests = log.since(begin)
    refused = [one for name in NAMES for one in denied(requests, name)]
    left = [(name, right) for name in NAMES for right in unused(reference.rights[name], requests, name)]
    assert (refused, in_vain(left)) == ([], [])


def has_same_rights(found: Installed, reference: Installed, method: str) -> None:
    for name in NAMES:
        mine, theirs = found.rights[name], reference.rights[name]
        if method == "bundle":  # it grants in the whole cluster what others grant in our namespace
            assert anywhere(mine) | OF_OLM == anywhere(theirs) | OF_OLM, name
        else:
            assert mine == theirs, name


def has_same_objects(found: Installed, reference: Installed, method: str) -> None:
    mine = {name: obj for name, obj in found.objects.items() if not is_role_of_controller(name)}
    theirs = {name: obj for name, obj in reference.objects.items() if not is_role_of_controller(name)}
    assert theirs.keys() - mine.keys() == set()
    more = mine.keys() - theirs.keys()
    assert {name for name in more if method != "bundle" or not is_role_of_olm(name)} == set()
    assert differences(mine, theirs) == DIFFERENCES.get(method, {}).keys()


async def offer_operator_of_tour(client: Client) -> None:
    """The catalog of the real OLM has it. The Subscription of the tour names the catalog of the simulated one."""
    catalog = await client.get(CATALOG)
    metadata = {"name": TOUR_CATALOG, "namespace": CATALOG.key.namespace}
    await client.create({**catalog, "metadata": metadata, "status": {}})
    await OperatorNamespace.create(client, PINNED.namespace)


async def tour(installation: MonitoredInstallation, cluster: DemoCluster) -> None:
    """The demo's tour, more steps for rights that it does not need, and a fault that Prometheus reports."""
    await installation.serve_certificates()
    for name in NAMES:
        await installation.start(name, "--probe-interval=3")
    narrator = Narrator(Console(), timeout=PATIENCE)
    for walkthrough in WALKTHROUGHS:
        await walkthrough(cluster, narrator)
    await more_steps(cluster)
    await alerts_arrive(installation, cluster)


async def alerts_arrive(installation: MonitoredInstallation, cluster: DemoCluster) -> None:
    """A member cluster goes down, and a Machine cannot be placed because of it."""
    async with installation.scraped() as server:
        assert not await server.fires("KubevirtClusterUnreachable")
        cluster.fleet.fail("south")
        try:
            await create_machine(cluster.client, "late", placement_strategy="round-robin")
            for alert, labels in (("KubevirtClusterUnreachable", {"cluster": "south"}), ("MachineUnplaced", {})):
                fires = partial(server.fires, alert, namespace="virt-steward", **labels)
                assert await eventually(fires, within=PATIENCE), (alert, await server.firing(), await server.troubles())
        finally:
            cluster.fleet.recover("south")
