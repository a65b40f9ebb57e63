"""What is staged, and pools whose nodes take changes up: shared by the tests of rollouts."""

from collections.abc import Mapping
from functools import partial
from typing import Any

from tests.assets.ignition import files_of
from tests.audit import AuditLog, Mark, Request
from tests.controllers.autopilot.rig import AutopilotRig
from tests.eventually import eventually
from virt_steward.controllers.autopilot.options import HCO
from virt_steward.controllers.autopilot.rollouts.policy import REBOOTING
from virt_steward.controllers.autopilot.rollouts.staged import StagedChange, read_entries, ref_of_staging
from virt_steward.kube.client import EVERYTHING, Client
from virt_steward.kube.errors import NotFound
from virt_steward.objects.identity import Key, Ref
from virt_steward.platform.hco import HYPERCONVERGED
from virt_steward.platform.machineconfigs import KUBELET_CONFIG, MACHINE_CONFIG, MACHINE_CONFIG_POOL
from virt_steward_demo.simulation.control_loop import SimulatedObject
from virt_steward_demo.simulation.rendering import kubelet_machine_configs, render

KUBELET = "kubelet-perf-settings"
DROP_IN = "/etc/openshift/kubelet.conf.d/95-perf.conf"
OTHER = "metrics-service"
SCOPE = f"{KUBELET},{OTHER}"
AUTOPILOT = "virt-platform-autopilot"
Object = dict[str, Any]
FILE = "/spec/config/storage/files/0/contents/source"
"""The field that changes with the number of pods."""


async def staged(rig: AutopilotRig) -> dict[str, StagedChange]:
    try:
        found = await rig.client.get(ref_of_staging(HCO.namespace))
    except NotFound:
        return {}
    return {entry.asset: entry for entry in read_entries(found.get("data") or {}).values()}


async def is_staged(rig: AutopilotRig, *assets: str) -> bool:
    return (await staged(rig)).keys() == {*assets}


async def want_pods(rig: AutopilotRig, number: int) -> None:
    """Change what the asset wants."""
    spec = {"deployment": {"nodePlacements": {"infra": {"maxPods": number}}}}
    await rig.client.merge_patch(Ref(HYPERCONVERGED, HCO), {"spec": spec}, manager="admin")


async def has_pods(rig: AutopilotRig, number: int) -> bool:
    live = await rig.live(KUBELET)
    return live is not None and f"\nmaxPods: {number}\n" in files_of(live["spec"]["config"])[DROP_IN].text


async def release(rig: AutopilotRig, *assets: str) -> None:
    found = await staged(rig)
    await rig.activate(SCOPE, rollout_release=",".join(found[asset].id for asset in assets))


async def pool(rig: AutopilotRig, name: str = "worker") -> Object:
    return await rig.client.get(Ref(MACHINE_CONFIG_POOL, Key("", name)))


async def is_updated(rig: AutopilotRig) -> bool:
    return _says_updated((await pool(rig))["status"])


def _says_updated(status: Mapping[str, Any]) -> bool:
    return any((one["type"], one["status"]) == ("Updated", "True") for one in status.get("conditions", ()))


def writes(rig: AutopilotRig, audit_log: AuditLog, mark: Mark) -> list[Request]:
    """What the autopilot has written to objects that reboot nodes."""
    plurals = {kind.plural for kind in REBOOTING}
    return [
        one
        for one in audit_log.since(mark)
        if one.user == rig.account.user and one.is_write and one.resource in plurals and "dryRun" not in one.uri
    ]


async def activated(rig: AutopilotRig) -> None:
    await rig.activate(SCOPE, enable_kubelet_performance_settings="true")
    for asset in (KUBELET, OTHER):
        assert await eventually(partial(rig.has_event, "AssetApplied", asset), within=30)
    assert await eventually(partial(is_settled, rig))


async def has_passed(rig: AutopilotRig) -> None:
    """By then, whatever came before it was seen."""
    await rig.edit(OTHER, {"metadata": {"labels": {"app": "other"}}})
    assert await eventually(lambda: _is_corrected(rig), within=30)


async def _is_corrected(rig: AutopilotRig) -> bool:
    live = await rig.live(OTHER)
    return live is not None and live["metadata"]["labels"]["app"] != "other"


async def make_config(rig: AutopilotRig, name: str) -> None:
    """Somebody else configures workers, so that their nodes reboot."""
    metadata = {"name": name, "labels": {"machineconfiguration.openshift.io/role": "worker"}}
    config = {"apiVersion": "machineconfiguration.openshift.io/v1", "kind": "MachineConfig", "metadata": metadata}
    await rig.client.create({**config, "spec": {"kernelArguments": ["quiet"]}})


async def _has_another_id(rig: AutopilotRig, before: str) -> bool:
    found = await staged(rig)
    return KUBELET in found and found[KUBELET].id != before


async def rendered(rig: AutopilotRig) -> set[str]:
    found = await rig.client.list(MACHINE_CONFIG, EVERYTHING)
    names = (one["metadata"]["name"] for one in found)
    return {name for name in names if name.startswith("rendered-worker-")}


async def is_settled(rig: AutopilotRig) -> bool:
    return await workers_are_settled(rig.client)


async def workers_are_settled(client: Client) -> bool:
    """All nodes of the pool run what its sources give, and nothing is about to change that."""
    pools, configs, kubelets = [
        await client.list(kind, EVERYTHING, SimulatedObject)
        for kind in (MACHINE_CONFIG_POOL, MACHINE_CONFIG, KUBELET_CONFIG)
    ]
    specs = {one.name: one.spec for one in configs}
    for generated in kubelet_machine_configs(pools, kubelets):
        if specs.get(generated["metadata"]["name"]) != generated["spec"]:
            return False
    worker = next(one for one in pools if one.name == "worker")
    rendering = render(worker, configs)
    assert rendering
    running = [part.get("configuration", {}).get("name") for part in (worker.spec, worker.status)]
    return running == [rendering.name] * 2 and _says_updated(worker.status)
