"""Single steps of a removal on a real API server, and what the command says without rights."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest
from aiohttp import web

from tests.audit import AuditLog
from tests.cli.commands import steward
from tests.clients import a_client
from tests.controllers.approver.process import home_of
from tests.gateway import Gateway
from tests.grants import Account, an_account
from virt_steward.controllers.autopilot.annotation_keys import CREATED, PAUSED
from virt_steward.kube.client import Client
from virt_steward.kube.errors import NotFound
from virt_steward.objects.corekinds import CONFIG_MAP
from virt_steward.objects.identity import Key, Ref
from virt_steward.objects.wallclock import rfc3339
from virt_steward.removal.act import StepFailed, take_step
from virt_steward.removal.decide import RemovalAction, RemovalStep, decide_removal
from virt_steward.removal.found import InstallationSeen, Part, found_object
from virt_steward.runtime.access import LEASE, READ, WATCH, Access, Grant, Installation, Reach
from virt_steward.ssa.managers import AUTOPILOT, CREATION
from virt_steward_demo.local.controlplane import ControlPlane


async def a_target(client: Client, namespace: str, *, shared: bool) -> Ref:
    """An object with a field of the autopilot and its signature; a person has paused it, and may own a field too."""
    metadata: dict[str, Any] = {"name": "tuned", "namespace": namespace}
    obj = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}
    await client.apply(obj | {"data": {"ours": "1"}}, manager=AUTOPILOT.name)
    note = {CREATED: "u-1", PAUSED: "true"}
    await client.apply(obj | {"metadata": metadata | {"annotations": note}}, manager=CREATION.name)
    if shared:
        await client.apply(obj | {"data": {"theirs": "2"}}, manager="kubectl")
    return Ref(CONFIG_MAP, Key(namespace, "tuned"))


async def step_of(client: Client, ref: Ref) -> RemovalStep:
    seen = InstallationSeen("virt-steward", (found_object(ref, Part.TARGET, await client.get(ref)),))
    [step] = decide_removal(seen)
    return step


@pytest.mark.parametrize("shared", [True, False])
async def test_release_keeps_values_and_owns_nothing(admin: Client, namespace: str, shared: bool) -> None:
    ref = await a_target(admin, namespace, shared=shared)
    before = await admin.get(ref)
    assert (await step_of(admin, ref)).action is RemovalAction.RELEASE
    assert await take_step(admin, await step_of(admin, ref)) is None
    after = await admin.get(ref)
    assert after["data"] == before["data"]
    assert after["metadata"]["annotations"] == {PAUSED: "true"}
    assert (await step_of(admin, ref)).action is RemovalAction.KEEP, "a second run has nothing to do"
    other = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "tuned", "namespace": namespace}}
    await admin.apply(other | {"data": {"ours": "3"}}, manager="argocd")  # without a conflict


async def test_deletion_spares_another_object_of_the_name(admin: Client, namespace: str) -> None:
    ref = await a_target(admin, namespace, shared=False)
    step = RemovalStep(RemovalAction.DELETE, ref, "another-uid", Part.RECORD)
    assert isinstance(await take_step(admin, step), StepFailed)
    uid = (await admin.get(ref))["metadata"]["uid"]
    for _ in range(2):
        assert await take_step(admin, RemovalStep(RemovalAction.DELETE, ref, uid, Part.RECORD)) is None
    with pytest.raises(NotFound):
        await admin.get(ref)


@pytest.fixture
async def reader(admin: Client, namespace: str) -> Account:
    """Somebody who may read ConfigMaps, and nothing else."""
    grant = Grant(CONFIG_MAP, (*READ, *WATCH), "to look", Reach.CLUSTER)
    access = Access("console", (grant,), only_looks=True)
    return await an_account(admin, access, Installation(namespace, prefix=namespace))


async def test_step_without_rights_fails_alone(
    admin: Client, control_plane: ControlPlane, namespace: str, reader: Account
) -> None:
    ref = await a_target(admin, namespace, shared=False)
    async with a_client(control_plane, reader.token) as client:
        failed = await take_step(client, await step_of(admin, ref))
    assert isinstance(failed, StepFailed)
    assert "forbidden (403)" in failed.message


async def test_dry_run_says_what_it_may_not_read(
    admin: Client, control_plane: ControlPlane, reader: Account, tmp_path: Path, audit_log: AuditLog
) -> None:
    namespace = home_of(reader)
    await a_target(admin, namespace, shared=True)
    kubeconfig = reader.write_kubeconfig(tmp_path / "kubeconfig", control_plane)
    mark = audit_log.mark()
    arguments = ("uninstall", "--dry-run", "--namespace", namespace, "-o", "json")
    ended = await steward(*arguments, kubeconfig=kubeconfig)
    assert ended.code == 1, ended.stderr
    report = msgspec.json.decode(ended.stdout)
    assert (report["result"], report["dryRun"]) == ("incomplete", True)
    assert [problem for problem in report["problems"] if "forbidden (403)" not in problem] == []
    assert any("clusterroles" in problem for problem in report["problems"])
    [target] = [one for one in report["steps"] if (one["namespace"], one["name"]) == (namespace, "tuned")]
    assert (target["action"], target["removes"]) == (
        "release",
        [f"field manager {AUTOPILOT.name}", f"field manager {CREATION.name}", f"annotation {CREATED}"],
    )
    assert [one.uri for one in audit_log.since(mark) if one.user == reader.user and one.is_write] == []


async def test_lease_is_judged_by_the_clock_of_the_api_server(
    admin: Client, control_plane: ControlPlane, gateway: Gateway, namespace: str, tmp_path: Path
) -> None:
    """The clock of this machine is a day ahead of the cluster, where a controller has just renewed its Lease."""
    there = datetime.now(UTC) - timedelta(days=1)

    async def a_day_ago(request: web.BaseRequest) -> web.StreamResponse | None:
        if not request.path.endswith("/selfsubjectreviews"):
            return None
        return web.json_response({"metadata": {"creationTimestamp": rfc3339(there)}, "status": {}}, status=201)

    spec = {
        "holderIdentity": "pod-1",
        "leaseDurationSeconds": 15,
        "renewTime": there.isoformat(timespec="microseconds"),
    }
    metadata = {"name": "virt-steward-advisor", "namespace": namespace}
    await admin.create({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": metadata, "spec": spec})
    gateway.intercept = a_day_ago
    kubeconfig = tmp_path / "kubeconfig"
    kubeconfig.write_text(control_plane.kubeconfig.read_text().replace(control_plane.server, gateway.secure_server))
    arguments = ("uninstall", "--dry-run", "--namespace", namespace, "-o", "json")
    ended = await steward(*arguments, kubeconfig=kubeconfig)
    held = Ref(LEASE, Key(namespace, "virt-steward-advisor"))
    assert f"pod-1 renews {held}" in msgspec.json.decode(ended.stdout)["running"], ended.stderr
