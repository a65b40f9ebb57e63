"""The autopilot at work on a simulated platform, under its own rights, and what people do there."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tests.audit import Mark
from tests.clients import a_client
from tests.grants import Account, an_account
from virt_steward import app
from virt_steward.catalog.load import Catalog
from virt_steward.controllers.autopilot.annotation_keys import SCOPE
from virt_steward.controllers.autopilot.definition import definition
from virt_steward.controllers.autopilot.options import HCO, AutopilotOptions
from virt_steward.controllers.autopilot.rollouts.staged import ref_of_staging
from virt_steward.controllers.autopilot.watches import ref_of_asset
from virt_steward.insight.assets.explain import AssetExplanation, explain, find_asset, gather_evidence
from virt_steward.insight.assets.survey import survey
from virt_steward.kube.client import Client, Reader, Selection
from virt_steward.kube.errors import NotFound
from virt_steward.kube.events import EVENT
from virt_steward.objects.corekinds import NAMESPACE
from virt_steward.objects.identity import Ref
from virt_steward.platform.hco import HYPERCONVERGED
from virt_steward.runtime.access import Installation
from virt_steward.runtime.leader import LeaseTimes
from virt_steward.runtime.probes import Addresses
from virt_steward.settings import MetricsSettings, Settings
from virt_steward_demo.local.controlplane import ControlPlane
from virt_steward_demo.simulation.install import make_namespace
from virt_steward_demo.simulation.platform import SimulatedPlatform

Object = dict[str, Any]

NOWHERE = Addresses(None, None, None)
PLAIN = MetricsSettings()
BUILT_IN = ("", "apps", "rbac.authorization.k8s.io")


@dataclass(frozen=True)
class AutopilotRig:
    """What a person sees and does."""

    client: Client
    platform: SimulatedPlatform
    catalog: Catalog
    account: Account
    options: AutopilotOptions
    begin: Mark
    """Where the audit log stood before the autopilot began."""

    def ref(self, asset: str) -> Ref:
        found = self.catalog.find(asset)
        assert found, asset
        return ref_of_asset(found, HCO)

    async def live(self, asset: str) -> Object | None:
        try:
            return await self.client.get(self.ref(asset))
        except NotFound:
            return None

    async def is_there(self, asset: str) -> bool:
        return await self.live(asset) is not None

    async def activate(self, scope: str | None = "true", **annotations: str | None) -> None:
        """Set annotations on the HyperConverged."""
        given = {f"platform.kubevirt.io/{name.replace('_', '-')}": value for name, value in annotations.items()}
        patch = {"metadata": {"annotations": {SCOPE: scope, **given}}}
        await self.client.merge_patch(Ref(HYPERCONVERGED, HCO), patch, manager="admin")

    async def annotate(self, asset: str, **annotations: str | None) -> None:
        """Set annotations on an asset's object."""
        given = {f"platform.kubevirt.io/{name.replace('_', '-')}": value for name, value in annotations.items()}
        await self.client.merge_patch(self.ref(asset), {"metadata": {"annotations": given}}, manager="admin")

    async def edit(self, asset: str, patch: Object, manager: str = "editor") -> Object:
        return await self.client.merge_patch(self.ref(asset), patch, manager=manager)

    async def is_clear(self) -> bool:
        """Whether namespaces that an earlier test deleted are gone: the server takes some seconds for each."""
        namespaces = [one.name for one in self.catalog.assets if one.object.kind == NAMESPACE]
        found = [await self.live(name) for name in namespaces]
        return not any(one and "deletionTimestamp" in one["metadata"] for one in found)

    async def clear(self) -> None:
        """Delete what the platform does not take away by itself: objects of kinds that every cluster has."""
        names = [one.name for one in self.catalog.assets if one.object.kind.group in BUILT_IN]
        refs = (ref_of_staging(HCO.namespace), *map(self.ref, names))
        await asyncio.gather(*map(self._delete, refs))

    async def _delete(self, ref: Ref) -> None:
        with suppress(NotFound):
            await self.client.delete(ref)

    async def has_event(self, reason: str, asset: str = "") -> bool:
        return bool(await self.events(reason, asset))

    async def events(self, reason: str, asset: str = "") -> list[Object]:
        """Events on the HyperConverged, those that are also about an asset's object if one is named."""
        uid = (await self.client.get(Ref(HYPERCONVERGED, HCO)))["metadata"]["uid"]
        told = [
            one
            for one in await self.client.list(EVENT, Selection("openshift-cnv"))
            if (one["reason"], one["regarding"].get("uid")) == (reason, uid)
        ]
        if not asset:
            return told
        wanted = self.ref(asset)
        return [
            one
            for one in told
            if (one["related"]["kind"], one["related"]["name"]) == (wanted.kind.name, wanted.key.name)
        ]


@asynccontextmanager
async def at_work(
    rig: AutopilotRig,
    control_plane: ControlPlane,
    folder: Path,
    server: str = "",
    addresses: Addresses = NOWHERE,
    *,
    metrics: MetricsSettings = PLAIN,
) -> AsyncIterator[None]:
    """Runs the autopilot in this process."""
    kubeconfig = rig.account.write_kubeconfig(folder / "kubeconfig", control_plane, server)
    settings = Settings(
        kubeconfig=str(kubeconfig),
        context=None,
        namespace="openshift-cnv",
        leader_elect=False,
        lease=LeaseTimes(15, 2.0),
        grace=1.0,
        addresses=addresses,
        metrics=metrics,
    )
    stop = asyncio.Event()
    task = asyncio.create_task(app.run(settings, [definition(rig.options, rig.catalog)], stop))
    try:
        yield
    finally:
        stop.set()
        await asyncio.wait_for(task, 30)


async def an_autopilots_account(client: Client, catalog: Catalog, prefix: str = "test") -> Account:
    """Install what `virt-steward rbac` prints, under names with this prefix."""
    await make_namespace(client, HCO.namespace)
    access = definition(AutopilotOptions(), catalog).access
    return await an_account(client, access, Installation(HCO.namespace, prefix=prefix))


def installed_account(control_plane: ControlPlane, catalog: Catalog, prefix: str = "test") -> Account:
    """The same, once for many tests."""

    async def install() -> Account:
        async with a_client(control_plane) as client:
            return await an_autopilots_account(client, catalog, prefix)

    return asyncio.run(install())


async def explained(rig: AutopilotRig, asset: str, client: Client | None = None) -> AssetExplanation:
    """What a person is told of an asset: the admin, or whoever asks."""
    asking = client or rig.client
    reader = Reader(rig.client.connection, rig.client.discovery)
    seen = await survey(reader, rig.catalog, rig.options, datetime.now(UTC))
    return explain(seen, asset, await gather_evidence(asking, seen, find_asset(rig.catalog, asset)))


def spec_of(obj: Object | None) -> Object:
    assert obj, "there is no such object"
    return dict(obj["spec"])
