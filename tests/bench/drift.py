"""Measures how long the autopilot takes to revert drift, alternately with a bare PATCH."""

import asyncio
from functools import partial
from pathlib import Path
from time import perf_counter

from tests.audit import AuditLog, Mark, Request
from tests.bench.bare import PATCH, REPOSE, Bare
from tests.bench.figures import Figure, Round
from tests.controllers.approver.process import a_process
from tests.controllers.autopilot.everything import SHAPE, ask_for_everything, options_for
from tests.controllers.autopilot.rig import AutopilotRig, an_autopilots_account
from tests.eventually import eventually
from virt_steward.apis.virtplatformconfig import VIRT_PLATFORM_CONFIG_CRD
from virt_steward.catalog.load import MANAGED_BY, MANAGER, load
from virt_steward.controllers.autopilot.options import HCO
from virt_steward.kube.client import Client
from virt_steward.ssa.managers import AUTOPILOT
from virt_steward_demo.local.controlplane import ControlPlane
from virt_steward_demo.simulation.install import install
from virt_steward_demo.simulation.platform import SimulatedPlatform

ROUNDS = 5
REBOOTING = frozenset(("MachineConfig", "KubeletConfig"))
"""Kinds whose changes reboot the simulated nodes, which would disturb the measurement."""


async def measure(client: Client, control_plane: ControlPlane, bare: Bare, folder: Path) -> Figure:
    catalog, audit_log = load(), AuditLog(control_plane.audit_log)
    async with SimulatedPlatform(client, SHAPE) as platform:
        await install(client, VIRT_PLATFORM_CONFIG_CRD.manifest())
        account = await an_autopilots_account(client, catalog)
        rig = AutopilotRig(client, platform, catalog, account, options_for(catalog), audit_log.mark())
        await ask_for_everything(rig)
        kubeconfig = account.write_kubeconfig(folder / "autopilot", control_plane)
        with a_process(kubeconfig, HCO.namespace, controller="autopilot", measured=True):
            assert await eventually(partial(is_at_rest, rig, audit_log), within=180)
            rounds = [await round_of_drifts(rig, audit_log, bare) for _ in range(ROUNDS)]
        await rig.clear()
    return Figure("drift → reverted", "ms", PATCH, tuple(rounds))


async def round_of_drifts(rig: AutopilotRig, audit_log: AuditLog, bare: Bare) -> Round:
    """Change each managed object once; milliseconds by the clock of the server, from response to response."""
    reverts, patches = [], []
    for asset in rig.catalog.assets:
        if asset.object.kind.name in REBOOTING or not await rig.is_there(asset.name):
            continue
        mark = audit_log.mark()
        await rig.edit(asset.name, {"metadata": {"labels": {MANAGED_BY: "somebody"}}})
        assert await eventually(partial(is_ours, rig, asset.name), within=30)
        assert await eventually(partial(_has_written, rig, audit_log, mark), within=10)
        edit = next(one for one in audit_log.since(mark) if one.name == asset.object.name)
        revert = writes(rig, audit_log, mark)[0]
        reverts.append((revert.time - edit.time).total_seconds() * 1000)
        await asyncio.sleep(REPOSE)
        started = perf_counter()
        await bare.patch()
        patches.append((perf_counter() - started) * 1000)
    return Round(tuple(reverts), tuple(patches))


async def is_at_rest(rig: AutopilotRig, audit_log: AuditLog) -> bool:
    """Whether the autopilot has sent no request for two seconds, after its first write."""
    mark = audit_log.mark()
    await asyncio.sleep(2)
    return not asked(rig, audit_log, mark) and bool(writes(rig, audit_log, rig.begin))


async def is_ours(rig: AutopilotRig, asset: str) -> bool:
    obj = await rig.live(asset)
    return obj is not None and obj["metadata"]["labels"].get(MANAGED_BY) == MANAGER


def asked(rig: AutopilotRig, audit_log: AuditLog, mark: Mark) -> list[Request]:
    """By the autopilot, watches aside."""
    user = rig.account.user
    return [one for one in audit_log.since(mark) if one.user == user and one.verb != "watch"]


def writes(rig: AutopilotRig, audit_log: AuditLog, mark: Mark) -> list[Request]:
    """The same, of what it wants of objects."""
    mine = f"fieldManager={AUTOPILOT.name}&"
    return [one for one in asked(rig, audit_log, mark) if mine in one.uri and "dryRun" not in one.uri]


async def _has_written(rig: AutopilotRig, audit_log: AuditLog, mark: Mark) -> bool:
    return bool(writes(rig, audit_log, mark))
