"""From vitistack's choice of a cluster to ours, and back, as the page on it says."""

from contextlib import suppress
from functools import partial

import msgspec

from tests.audit import AuditLog
from tests.cli.commands import steward
from tests.controllers.placement.conftest import Start
from tests.controllers.placement.scene import Scene
from tests.eventually import eventually
from tests.fleet import the_vm
from tests.howtos import Follower, a_deployment
from virt_steward.kube.errors import AlreadyExists
from virt_steward.objects.identity import ref_of
from virt_steward_demo.local.controlplane import ControlPlane
from virt_steward_demo.simulation.install import make_namespace

BOTH_NAMES = ("--vm-name", "vm-{machine},{machine}")
OURS = a_deployment("virt-steward", "virt-steward-placement")


class UpstreamStatus(msgspec.Struct):
    """The status of a KubevirtConfig as vitistack's types have it."""

    name: str = ""
    phase: str = ""
    status: str = ""
    message: str = ""
    created: str = ""


async def test_switch_over_by_the_howto_and_back(
    scene: Scene, start: Start, control_plane: ControlPlane, audit_log: AuditLog
) -> None:
    howto = Follower("switch-from-vitistack-placement", scene.client, control_plane.kubeconfig)
    await scene.join("east", "west")
    await scene.machine("old")
    await scene.vm("old")  # as the operator names it
    mark = audit_log.mark()
    checked = await howto.steward("switch-check placement")
    assert checked.code == 2, checked.stderr
    assert f"the VMs of {scene.namespace}/old have the names of their Machines" in checked.stdout
    assert "--vm-name 'vm-{machine},{machine}'" in checked.stdout
    checked = await steward("switch-check", "placement", *BOTH_NAMES, kubeconfig=control_plane.kubeconfig)
    assert checked.code == 0, checked.stdout
    asked = [one for one in audit_log.since(mark) if one.user_agent.startswith("virt-steward/")]
    assert [one.uri for one in asked if one.is_write] == []
    await scene.client.delete(the_vm(scene.namespace, "old"))
    await scene.annotate("old", kubevirt_config="east")
    await howto.kubectl("annotate kvc east vitistack.io/schedulable=false")
    await howto.kubectl("annotate kvc west vitistack.io/default=true")
    await howto.kubectl("annotate kvc west vitistack.io/weight=10")
    await scene.machine("new")
    await scene.machine("stuck", annotations={"vitistack.io/cluster-selector": "tier=none"})
    assert "west" in (await howto.steward("place --dry-run --all", *BOTH_NAMES)).stdout
    with start(*BOTH_NAMES):
        assert await eventually(partial(scene.is_on, "new", "west"), within=30)
        assert await scene.is_on("old", "east"), "what the operator chose stays"
        assert await eventually(lambda: is_reported(scene), within=30)
    with suppress(AlreadyExists):
        await make_namespace(scene.client, "virt-steward")
    await scene.client.create(OURS)
    stopped = await howto.kubectl("-n virt-steward scale deployment virt-steward-placement --replicas=0")
    assert stopped["spec"]["replicas"] == 0
    await scene.client.delete(ref_of(OURS))
    for config in ("east", "west"):
        assert msgspec.convert(await scene.status(config), UpstreamStatus).phase, "which is a column of theirs"
    assert (await scene.condition("stuck")).keys() == {"type", "status", "reason", "message", "lastTransitionTime"}
    assert howto.left_out == []


async def is_reported(scene: Scene) -> bool:
    return bool(await scene.status("east") and await scene.status("west") and await scene.condition("stuck"))


async def test_switch_check_cannot_tell_while_a_cluster_is_unreachable(
    scene: Scene, control_plane: ControlPlane
) -> None:
    await scene.join("east")
    await scene.join("gone", server="https://127.0.0.1:1")
    await scene.machine("old")
    checked = await steward("switch-check", "placement", kubeconfig=control_plane.kubeconfig)
    assert checked.code == 1, checked.stdout
    assert "? Cluster gone: cannot tell: " in checked.stdout
