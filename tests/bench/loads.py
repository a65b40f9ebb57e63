"""The same work for any operator: one load for each controller. Each changes an object, and knows when it is done.

A load uses only what all implementations of a controller have in common: kinds, annotations and labels.
"""

import shutil
from abc import ABC, abstractmethod
from contextlib import AsyncExitStack
from functools import partial
from itertools import count, cycle
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, ClassVar

import virt_steward
from tests.audit import AuditLog
from tests.bench.drift import REBOOTING
from tests.controllers.advisor.rig import AdvisorRig, the_config
from tests.controllers.approver.lifecycle import API, Lifecycle, a_lifecycle, an_approver, at_once
from tests.controllers.approver.process import an_installation as an_approvers_installation
from tests.controllers.approver.process import home_of
from tests.controllers.autopilot.everything import SHAPE, ask_for_everything, options_for
from tests.controllers.autopilot.rig import AutopilotRig, an_autopilots_account
from tests.controllers.placement.scene import Scene
from tests.controllers.placement.scene import an_installation as a_placements_installation
from tests.eventually import eventually
from tests.grants import Account, an_account
from tests.installplans import INSTALL_PLAN
from tests.machines import the_machine
from virt_steward.apis.virtplatformconfig import VIRT_PLATFORM_CONFIG_CRD
from virt_steward.catalog.load import MANAGED_BY, MANAGER, Catalog, load
from virt_steward.controllers.advisor.definition import definition
from virt_steward.controllers.advisor.options import AdvisorOptions
from virt_steward.controllers.placement.observation import CONFIG_ANNOTATION
from virt_steward.kube.client import Client
from virt_steward.objects.identity import Key, Ref
from virt_steward.platform.machineconfigs import MACHINE_CONFIG_POOL
from virt_steward.runtime.access import Installation
from virt_steward_demo.local.controlplane import ControlPlane
from virt_steward_demo.simulation.install import install, make_namespace
from virt_steward_demo.simulation.kinds import NAMES
from virt_steward_demo.simulation.nodes import Node
from virt_steward_demo.simulation.platform import NAMESPACES, PlatformShape, SimulatedPlatform
from virt_steward_demo.simulation.pools import WORKER

Object = dict[str, Any]
NAMESPACE = "bench-load"
COPIED = "logging-collector"


class Load(ABC):
    """Prepared once, then provoked again and again."""

    controller: ClassVar[str]
    what: ClassVar[str]
    unit: ClassVar[str]
    """What the size counts."""
    usual_size: ClassVar[int]
    options: ClassVar[tuple[str, ...]] = ()
    """Of `virt-steward run`."""

    def __init__(self, control_plane: ControlPlane, client: Client, stack: AsyncExitStack, size: int) -> None:
        self.control_plane = control_plane
        self.client = client
        self.stack = stack
        """Ends what the load has started."""
        self.size = size
        self.env: dict[str, str] = {}
        """Of `virt-steward run`."""

    @abstractmethod
    async def prepare(self) -> Account:
        """Fill the cluster, and install the rights that our controller declares."""

    @abstractmethod
    async def provoke(self) -> Ref:
        """Change something; the object that the operator has to change in turn."""

    @abstractmethod
    def is_done(self, obj: Object) -> bool:
        """Whether the operator has done it."""

    async def begin(self) -> Ref:
        """The work that an operator finds when it starts."""
        return await self.provoke()


class Approvals(Load):
    controller = "approver"
    what = "InstallPlan waits → approved"
    unit = "older InstallPlans"
    usual_size = 1000

    async def prepare(self) -> Account:
        account = await an_approvers_installation(self.control_plane)
        self._place = await a_lifecycle(self.client, NAMESPACE)
        await an_approver(self.client, home_of(account), targetNamespaces=[NAMESPACE])
        await at_once(partial(self.client.create, old_plan(number)) for number in range(self.size))
        self._numbers = count()
        return account

    async def provoke(self) -> Ref:
        """The phase is written last: whether the Subscription is current by then differs by release of OLM."""
        package = f"op{next(self._numbers)}"
        csv = f"{package}.v1.0.0"
        place: Lifecycle = self._place
        await place.subscribe(package, csv)
        plan = await place.plan(csv)
        await place.catch_up(plan, csv)
        await place.set_phase(plan, "RequiresApproval", csv)
        return Ref(INSTALL_PLAN, plan)

    def is_done(self, obj: Object) -> bool:
        return bool(obj["spec"]["approved"])


def old_plan(number: int) -> Object:
    """Approved long ago. Names are unlike those of the lifecycle."""
    csv = f"old{number}.v1.0.0"
    return {
        "apiVersion": API,
        "kind": "InstallPlan",
        "metadata": {"name": f"old-{number}", "namespace": NAMESPACE},
        "spec": {"approval": "Manual", "approved": True, "clusterServiceVersionNames": [csv], "generation": 1},
        "status": {"phase": "Complete"},
    }


class Corrections(Load):
    controller = "autopilot"
    what = "drift → reverted"
    unit = "assets"
    usual_size = len(load().assets)

    async def prepare(self) -> Account:
        catalog = self._catalog()
        platform = await self.stack.enter_async_context(SimulatedPlatform(self.client, SHAPE))
        await install(self.client, VIRT_PLATFORM_CONFIG_CRD.manifest())
        account = await an_autopilots_account(self.client, catalog)
        begin = AuditLog(self.control_plane.audit_log).mark()
        self._rig = AutopilotRig(self.client, platform, catalog, account, options_for(catalog), begin)
        await ask_for_everything(self._rig)
        self.stack.push_async_callback(self._rig.clear)
        names = [one.name for one in catalog.assets if one.object.kind.name not in REBOOTING]
        self._turns = cycle(names)
        return account

    def _catalog(self) -> Catalog:
        if self.size <= self.usual_size:
            return load()
        folder = Path(self.stack.enter_context(TemporaryDirectory(prefix="virt-steward-assets-")))
        self.env = {"PYTHONPATH": str(folder)}
        return load(package_with_assets(folder, self.size - self.usual_size) / "assets")

    async def provoke(self) -> Ref:
        asset = next(self._turns)
        while not await self._rig.is_there(asset):
            asset = next(self._turns)
        await self._rig.edit(asset, {"metadata": {"labels": {MANAGED_BY: "somebody"}}})
        return self._rig.ref(asset)

    def is_done(self, obj: Object) -> bool:
        return bool(obj["metadata"].get("labels", {}).get(MANAGED_BY) == MANAGER)

    async def begin(self) -> Ref:
        """An object that is created, or has drifted while no operator ran."""
        ref = self._rig.ref("metrics-service")
        if await self._rig.is_there("metrics-service"):
            await self._rig.edit("metrics-service", {"metadata": {"labels": {MANAGED_BY: "somebody"}}})
        return ref


def package_with_assets(folder: Path, more: int) -> Path:
    """A copy of virt-steward with so many assets more, each of them a ServiceAccount like one of the catalog."""
    package = Path(shutil.copytree(Path(virt_steward.__file__).parent, folder / "virt_steward"))
    model = package / "assets" / "logging" / COPIED
    for number in range(more):
        copy = Path(shutil.copytree(model, model.with_name(f"{COPIED}-{number}")))
        for file in copy.iterdir():
            text = file.read_text().replace(f"name: {COPIED}\n", f"name: {COPIED}-{number}\n")
            file.write_text(text.replace("name: collector\n", f"name: collector-{number}\n"))
    return package


class Placements(Load):
    controller = "placement"
    what = "Machine created → placed"
    unit = "clusters"
    usual_size = 1
    options = ("--placement-strategy=round-robin",)

    async def prepare(self) -> Account:
        account = await a_placements_installation(self.control_plane)
        await self.client.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})
        self.scene = Scene(self.client, self.control_plane, NAMESPACE, home_of(account))
        await self.scene.join(*(f"c{number:03}" for number in range(self.size)))
        self._numbers = count()
        return account

    async def provoke(self) -> Ref:
        name = f"m{next(self._numbers):05}"
        await self.scene.machine(name)
        return the_machine(NAMESPACE, name)

    def is_done(self, obj: Object) -> bool:
        return bool(obj["metadata"].get("annotations", {}).get(CONFIG_ANNOTATION))


class Plans(Load):
    controller = "advisor"
    what = "option changed → plan to review"
    unit = "nodes"
    usual_size = 10

    async def prepare(self) -> Account:
        needed = ("HyperConverged", "KubeDescheduler", "KubeletConfig", "MachineConfig", "MachineConfigPool")
        vms = ("VirtualMachine", "VirtualMachineInstance", "VirtualMachineInstanceMigration")
        nodes = tuple(Node(f"bench-{number:04}") for number in range(self.size))
        without = tuple(name for name in NAMES if name not in needed + vms)
        shape = PlatformShape(pace=0.02, machines_per_worker=0, packages=(), nodes=nodes, without=without)
        account = await self._rights()
        await self.stack.enter_async_context(SimulatedPlatform(self.client, shape))
        assert await eventually(partial(self._is_rolled_out, len(nodes)), within=600)
        self._rig = AdvisorRig(self.client)
        self._intervals = count(60)
        return account

    async def provoke(self) -> Ref:
        await self._rig.ask("DryRun", options=psi_and(next(self._intervals)))
        return the_config(self._rig.profile)

    async def _is_rolled_out(self, nodes: int) -> bool:
        """Else the simulation would write to nodes while the advisor is measured."""
        pool = await self.client.get(Ref(MACHINE_CONFIG_POOL, Key("", WORKER)))
        return bool(pool.get("status", {}).get("updatedMachineCount", 0) >= nodes)

    async def _rights(self) -> Account:
        await install(self.client, VIRT_PLATFORM_CONFIG_CRD.manifest())
        for name in (NAMESPACE, *NAMESPACES):
            await make_namespace(self.client, name)
        access = definition(AdvisorOptions()).access
        return await an_account(self.client, access, Installation(NAMESPACE, prefix=NAMESPACE))

    def is_done(self, obj: Object) -> bool:
        status = obj.get("status", {})
        return bool(
            status.get("phase") == "ReviewRequired"
            and status.get("observedGeneration", obj["metadata"]["generation"]) == obj["metadata"]["generation"]
        )


def psi_and(interval: int) -> Object:
    """With the item that reboots nodes, whose blast radius is part of the plan."""
    return {"loadAware": {"deschedulingIntervalSeconds": interval}}


LOADS: dict[str, type[Load]] = {one.controller: one for one in (Approvals, Corrections, Placements, Plans)}
