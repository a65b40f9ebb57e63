"""The advisor at work in this process, under its own rights, and an admin who asks it for things."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

import msgspec

from tests.clients import a_client
from tests.controllers.approver.process import home_of
from tests.eventually import eventually
from tests.grants import Account
from virt_steward.apis.profiles import LOAD_AWARE
from virt_steward.apis.virtplatformconfig import API_VERSION, VIRT_PLATFORM_CONFIG, PlanItem, VirtPlatformConfigStatus
from virt_steward.controllers.advisor.definition import of_profiles
from virt_steward.controllers.advisor.observation import VirtPlatformConfig
from virt_steward.controllers.advisor.options import AdvisorOptions
from virt_steward.controllers.advisor.phases import PHASES
from virt_steward.controllers.advisor.profiles import profiles
from virt_steward.controllers.advisor.profiles.load_aware_rebalancing import DESCHEDULER, PSI
from virt_steward.controllers.advisor.profiles.profile import Profile
from virt_steward.kube.client import Client, Object, Selection
from virt_steward.kube.errors import AlreadyExists, NotFound
from virt_steward.kube.watch import Put, Watch, projection
from virt_steward.objects.identity import Key, Ref
from virt_steward.platform.hco import HYPERCONVERGED
from virt_steward.runtime.clock import Clock, SystemClock
from virt_steward.runtime.manager import Environment, Manager
from virt_steward.runtime.metrics import Metrics
from virt_steward.runtime.notifications import Notification
from virt_steward_demo.local.controlplane import ControlPlane

V1, V2 = "v0.1.30", "v0.1.31"
HCO = Ref(HYPERCONVERGED, AdvisorOptions().hco)


def the_config(profile: str = LOAD_AWARE) -> Ref:
    return Ref(VIRT_PLATFORM_CONFIG, Key("", profile))


@dataclass(slots=True)
class AdvisorRig:
    """An admin's client, and questions to ask of what the advisor has said."""

    client: Client
    profile: str = LOAD_AWARE

    async def ask(self, action: str = "", **spec: Any) -> None:
        """Create the config, or change it."""
        wish = {**({"action": action} if action else {}), **spec}
        try:
            await self._change(wish)
        except NotFound:
            config = {
                "apiVersion": API_VERSION,
                "kind": VIRT_PLATFORM_CONFIG.name,
                "metadata": {"name": self.profile},
                "spec": {"profile": self.profile, **wish},
            }
            try:
                await self.client.create(config)
            except AlreadyExists:  # the advisor has offered it meanwhile
                await self._change(wish)

    async def _change(self, wish: Object) -> None:
        await self.client.merge_patch(the_config(self.profile), {"spec": wish})

    async def annotate(self, **notes: str | None) -> None:
        annotations = {f"advisor.kubevirt.io/{name.replace('_', '-')}": value for name, value in notes.items()}
        await self.client.merge_patch(the_config(self.profile), {"metadata": {"annotations": annotations}})

    async def config(self) -> Object:
        return await self.client.get(the_config(self.profile))

    async def status(self) -> VirtPlatformConfigStatus:
        try:
            found = await self.config()
        except NotFound:
            return VirtPlatformConfigStatus()
        return msgspec.convert(found.get("status", {}), VirtPlatformConfigStatus)

    async def item(self, name: str) -> PlanItem:
        return next(one for one in (await self.status()).items if one.name == name)

    async def condition(self, type_: str) -> tuple[str, str]:
        """Its status and reason."""
        found = next((one for one in (await self.status()).conditions if one.type == type_), None)
        return (found.status, found.reason) if found else ("", "")

    async def message(self, type_: str) -> str:
        return next((one.message for one in (await self.status()).conditions if one.type == type_), "")

    async def reaches(self, phase: str, *, reason: str = "", within: float = 15) -> bool:
        """With the present generation, and for that reason if one is given."""

        async def is_there() -> bool:
            found = await self.config()
            status = found.get("status", {})
            said = next((one for one in status.get("conditions", ()) if one["type"] == phase), {})
            return bool(
                status.get("phase") == phase
                and status.get("observedGeneration") == found["metadata"]["generation"]
                and (not reason or said.get("reason") == reason)
            )

        return await eventually(is_there, within=within)

    async def says(self, item: str, text: str) -> bool:
        """Whether an item comes to say something."""

        async def is_said() -> bool:
            return any(one.name == item and text in one.message for one in (await self.status()).items)

        return await eventually(is_said, within=20)

    async def descheduler(self) -> Object:
        return await self.client.get(DESCHEDULER)

    async def exists(self, ref: Ref) -> bool:
        try:
            await self.client.get(ref)
        except NotFound:
            return False
        return True

    async def has_psi(self) -> bool:
        return await self.exists(PSI)


def no_reboots(**options: Any) -> Object:
    """Options of load-aware-rebalancing that leave the nodes alone."""
    return {"loadAware": {"enablePSIMetrics": False, **options}}


def a_descheduler(**spec: Any) -> Object:
    """As somebody might have set it up before."""
    wanted = {"deschedulingIntervalSeconds": 30, "profiles": ["LongLifecycle"], "mode": "Predictive", **spec}
    return {
        "apiVersion": "operator.openshift.io/v1",
        "kind": "KubeDescheduler",
        "metadata": {"name": DESCHEDULER.key.name, "namespace": DESCHEDULER.key.namespace},
        "spec": wanted,
    }


@dataclass(slots=True)
class Listener:
    """An endpoint of notifications that keeps what it hears."""

    heard: list[Notification] = field(default_factory=list)
    endpoints: tuple[str, ...] = ("ops",)

    def send(self, _endpoint: str, notice: Notification) -> None:
        self.heard.append(notice)


@dataclass(frozen=True, slots=True)
class Advisor:
    """At work."""

    metrics: Metrics
    listener: Listener

    def sample(self, name: str, **labels: str) -> float | None:
        return self.metrics.registry.get_sample_value(name, labels)

    async def shows_drift(self, value: float | None) -> bool:
        """Whether the metric comes to this: it follows the status, a moment later."""
        return await eventually(lambda: self.sample("virt_advisor_drift", profile=LOAD_AWARE) == value)

    async def has_told(self, *reasons: str) -> bool:
        return await eventually(lambda: [one.data["reason"] for one in self.listener.heard] == list(reasons))


@asynccontextmanager
async def advising(
    control_plane: ControlPlane,
    account: Account,
    *,
    version: str = V1,
    known: Sequence[Profile] | None = None,
    server: str = "",
    clock: Clock | None = None,
) -> AsyncIterator[Advisor]:
    """Run the advisor of some version with some profiles until the end of the block."""
    options = AdvisorOptions(operator_version=version, namespace=home_of(account), example_profile=True)
    definition = of_profiles(known or profiles(options), options)
    async with a_client(control_plane, account.token, server=server) as client:
        metrics, listener = Metrics(), Listener()
        time = clock or SystemClock()
        around = Environment(client.connection, client.discovery, time, metrics, "advisor", None, 1.0, listener)
        manager = Manager(around, [definition])
        stop = asyncio.Event()
        task = asyncio.create_task(manager.run(stop))
        try:
            yield Advisor(metrics, listener)
        finally:
            stop.set()
            await asyncio.wait_for(task, 30)


@asynccontextmanager
async def observing(client: Client, profile: str = LOAD_AWARE) -> AsyncIterator[list[VirtPlatformConfigStatus]]:
    """Every status that a config has had, one after the other, up to the one at the end of the block."""
    seen: list[VirtPlatformConfigStatus] = []
    versions: set[str] = set()

    async def look() -> None:
        resource = await client.discovery.resource(VIRT_PLATFORM_CONFIG)
        watch = Watch(
            client, VIRT_PLATFORM_CONFIG, projection(VirtPlatformConfig), selection=Selection.one(Key("", profile))
        )
        async for event in watch.events(resource):
            match event:
                case Put(config):
                    seen.append(config.status)
                    versions.add(config.metadata.resource_version)

    async def has_seen_the_last() -> bool:
        return (await client.get(the_config(profile)))["metadata"]["resourceVersion"] in versions

    task = asyncio.create_task(look())
    try:
        yield seen
        assert await eventually(has_seen_the_last)
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


def true_phases(status: VirtPlatformConfigStatus) -> list[str]:
    return [one.type for one in status.conditions if one.type in PHASES and one.status == "True"]
