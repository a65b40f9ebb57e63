"""Five clusters that fall silent, come, go and change their credentials while machines wait."""

from functools import partial

import pytest

from tests.eventually import eventually
from tests.machines import a_config
from tests.stress.placement_fleet.clusters import FIVE, Fleet
from tests.stress.placement_fleet.conftest import Start
from virt_steward.controllers.placement.observation import CONFIG_ANNOTATION
from virt_steward.controllers.placement.rules.existing_vm import REMEDY
from virt_steward.objects.identity import Key


async def test_placement_blocks_while_vm_exists_twice(fleet: Fleet, start: Start) -> None:
    await fleet.connect_all(*FIVE)
    for holder in ("b", "d"):
        await fleet.run_vm(holder, "vm-my-vm")
    await fleet.machine("my-vm")
    with start():
        assert await eventually(partial(fleet.waits_for, "my-vm", "FoundTwice"), within=30)
        message = (await fleet.condition("my-vm"))["message"]
        await fleet.stands_for["b"].remove_vm(fleet.namespace, "vm-my-vm")
        assert await eventually(partial(fleet.is_on, "my-vm", "d"))
    assert message == (
        "VM vm-my-vm exists in b and d: delete all but one, or set the annotation vitistack.io/kubevirt-config "
        "to choose a cluster"
    )


async def test_placement_names_unreachable_clusters_until_vm_is_found(fleet: Fleet, start: Start) -> None:
    await fleet.connect_all(*FIVE)
    await fleet.run_vm("a", "vm-found")
    frozen = [fleet.stands_for[name].control_plane for name in ("b", "d")]
    for one in frozen:
        one.freeze()
    try:
        with start("--placement-strategy=round-robin"):
            await fleet.machine("found")
            await fleet.machine("lost")
            assert await eventually(partial(fleet.is_on, "found", "a"), within=30)
            assert await eventually(
                partial(fleet.has_note, "found", "placed on cluster a: VM vm-found exists there; b, d unreachable")
            )
            assert await eventually(partial(fleet.waits_for, "lost", "ClustersSilent"), within=30)
            message = (await fleet.condition("lost"))["message"]
            for one in frozen:
                one.thaw()
            assert await eventually(partial(fleet.is_somewhere, "lost"), within=30)
    finally:
        for one in frozen:
            one.thaw()
    assert message == (
        "VM vm-lost may exist in a cluster that is unreachable (cluster b: unreachable: timed out after 1 s; "
        f"cluster d: unreachable: timed out after 1 s). {REMEDY}"
    )


async def test_placement_strict_search_waits_for_all_clusters(fleet: Fleet, start: Start) -> None:
    await fleet.connect_all(*FIVE)
    await fleet.run_vm("a", "vm-my-vm")
    last = fleet.stands_for["e"].control_plane
    last.freeze()
    try:
        with start("--search=strict"):
            await fleet.machine("my-vm")
            assert await eventually(partial(fleet.waits_for, "my-vm", "ClustersSilent"), within=30)
            message = (await fleet.condition("my-vm"))["message"]
            assert await fleet.cluster_of("my-vm") == ""
            last.thaw()
            assert await eventually(partial(fleet.is_on, "my-vm", "a"), within=30)
    finally:
        last.thaw()
    assert "cluster e: unreachable: timed out after 1 s" in message


async def test_placement_uses_cluster_again_after_outage(fleet: Fleet, start: Start) -> None:
    await fleet.connect_all("a", "b")
    await fleet.run_vm("b", "vm-my-vm")
    down = fleet.stands_for["b"].control_plane
    down.kill_apiserver()
    with start():
        await fleet.machine("my-vm")
        try:
            assert await eventually(partial(fleet.says, "my-vm", "ClustersSilent", "Connection refused"), within=30)
        finally:
            down.start_apiserver()
        assert await eventually(partial(fleet.is_on, "my-vm", "b"), within=60)


async def test_placement_follows_added_and_deleted_configs(fleet: Fleet, start: Start) -> None:
    await fleet.machine("my-vm")
    with start():
        assert await eventually(partial(fleet.waits_for, "my-vm", "NoConfigs"), within=30)
        await fleet.machine("kept", annotations={CONFIG_ANNOTATION: "b"})
        assert await eventually(partial(fleet.says, "kept", "ConfigNotFound", "KubevirtConfig b not found"))
        await fleet.connect("a", fleet.members[0], schedulable=False)
        await fleet.connect("b", fleet.members[1])
        assert await eventually(partial(fleet.says, "my-vm", "AmbiguousPlacement", "and 2 configs are available"))
        assert await eventually(partial(fleet.is_confirmed, "kept"))
        await fleet.leave("a")
        assert await eventually(partial(fleet.is_on, "my-vm", "b"))
        await fleet.leave("b")
        assert await eventually(partial(fleet.says, "my-vm", "ConfigNotFound", "KubevirtConfig b not found"))
    assert [await fleet.cluster_of(name) for name in ("my-vm", "kept")] == ["b", "b"]


async def test_placement_searches_late_config(fleet: Fleet, start: Start) -> None:
    await fleet.connect_all("a", "b")
    await fleet.members[2].run_vm(fleet.namespace, "vm-my-vm")
    await fleet.machine("my-vm")
    with start():
        assert await eventually(partial(fleet.waits_for, "my-vm", "AmbiguousPlacement"), within=30)
        await fleet.connect("c", fleet.members[2])
        assert await eventually(partial(fleet.is_on, "my-vm", "c"))


async def test_placement_forgets_results_after_changed_secret(fleet: Fleet, start: Start) -> None:
    await fleet.connect_all("a", "b")
    await fleet.members[4].run_vm(fleet.namespace, "vm-my-vm")
    await fleet.machine("my-vm")
    with start("--search-memory=600"):
        assert await eventually(partial(fleet.waits_for, "my-vm", "AmbiguousPlacement"), within=30)
        await fleet.rotate("b", fleet.members[4].kubeconfig)
        assert await eventually(partial(fleet.is_on, "my-vm", "b"))


BROKEN = [
    pytest.param("garbage: [", "BadKubeconfig", "is not YAML (line", id="garbage"),
    pytest.param("", "SecretKeyMissing", "has no key kubeconfig, or it is empty: add it", id="nothing"),
    pytest.param(
        "{users: [{name: u, user: {exec: {command: id}}}], clusters: [{name: c, cluster: {server: https://c}}],"
        " contexts: [{name: x, context: {cluster: c, user: u}}], current-context: x}",
        "BadKubeconfig",
        "exec runs a command here, which is not allowed in a kubeconfig from a Secret",
        id="a-command",
    ),
]


@pytest.mark.parametrize(("content", "reason", "words"), BROKEN)
async def test_placement_continues_after_fixed_secret(
    content: str, reason: str, words: str, fleet: Fleet, start: Start
) -> None:
    await fleet.connect_all("a", "b")
    await fleet.machine("searching")
    await fleet.machine("settled", annotations={CONFIG_ANNOTATION: "b"})
    with start():
        assert await eventually(partial(fleet.waits_for, "searching", "AmbiguousPlacement"), within=30)
        await fleet.rotate("b", content)
        assert await eventually(partial(fleet.says, "settled", reason, words))
        assert await eventually(partial(fleet.says, "searching", reason, words))
        await fleet.run_vm("b", "vm-searching")
        await fleet.rotate("b", fleet.members[1].kubeconfig)
        assert await eventually(partial(fleet.is_on, "searching", "b"))
        assert await eventually(partial(fleet.is_confirmed, "settled"))


async def test_placement_distinguishes_unauthorized_from_unreachable(fleet: Fleet, start: Start) -> None:
    await fleet.connect_all("a", "b")
    await fleet.machine("my-vm")
    with start():
        assert await eventually(partial(fleet.waits_for, "my-vm", "AmbiguousPlacement"), within=30)
        await fleet.rotate("b", fleet.members[1].with_token("revoked"))
        assert await eventually(partial(fleet.says, "my-vm", "Unauthorized", "cluster b: unauthorized (401)"))
        assert await eventually(partial(fleet.is_in, "CredentialsInvalid", "b"))
        await fleet.run_vm("b", "vm-my-vm")
        await fleet.rotate("b", fleet.members[1].with_certificate())
        assert await eventually(partial(fleet.is_on, "my-vm", "b"))
        assert await eventually(partial(fleet.is_in, "Ready", "b"))


async def test_placement_reason_is_specific_for_named_cluster(fleet: Fleet, start: Start) -> None:
    await fleet.configure("no-secret")
    await fleet.join_secret("no-key", "")
    await fleet.configure("no-key")
    await fleet.join_secret("garbage", "{")
    await fleet.configure("garbage")
    await fleet.client.create(a_config("incomplete", Key(fleet.secrets, "")))
    troubles = {
        "missing": "ConfigNotFound",
        "no-secret": "SecretNotFound",
        "no-key": "SecretKeyMissing",
        "garbage": "BadKubeconfig",
        "incomplete": "ConfigIncomplete",
    }
    for config in troubles:
        await fleet.machine(config, annotations={CONFIG_ANNOTATION: config})
    with start():
        for machine, reason in troubles.items():
            assert await eventually(partial(fleet.waits_for, machine, reason), within=30), machine
    messages = {machine: (await fleet.condition(machine))["message"] for machine in troubles}
    assert all(machine in message for machine, message in messages.items())
