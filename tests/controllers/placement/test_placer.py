"""The placement at work: what it writes on machines, and what it leaves alone."""

from datetime import UTC, datetime
from functools import partial

import pytest

from tests.controllers.approver.process import FREQUENT_RENEWALS
from tests.controllers.placement.conftest import Asked, Start
from tests.controllers.placement.scene import Scene
from tests.eventually import eventually
from tests.fleet import a_secret, the_secret
from tests.freezes import frozen
from tests.grants import Account
from tests.leftovers import delete_all
from tests.machines import a_config, the_machine
from virt_steward.controllers.placement.observation import BECAUSE_ANNOTATION, CONFIG_ANNOTATION
from virt_steward.decisions.machines import choose_cluster
from virt_steward.decisions.outcomes import Decided
from virt_steward.decisions.signatures import sign
from virt_steward.objects.identity import Key
from virt_steward.runtime.access import LEASE
from virt_steward.ssa import managers

AMBIGUOUS = (
    "machine {machine} has no KubevirtConfig reference and 2 configs are available - cannot determine placement. "
    "Please set annotation 'vitistack.io/kubevirt-config' or DEFAULT_KUBEVIRT_CONFIG env var"
)


async def test_a_choice_is_one_write_with_its_reason_and_one_event(scene: Scene, start: Start, asked: Asked) -> None:
    await scene.join("main")
    await scene.machine("web")
    with start() as process:
        assert await eventually(partial(scene.is_on, "web", "main"))
        assert await eventually(partial(has_event, scene, "web", "Placed"))
    machine = await scene.client.get(the_machine(scene.namespace, "web"))
    [entry] = [one for one in machine["metadata"]["managedFields"] if one["manager"] == managers.PLACEMENT.name]
    ours = {f"f:{key}": {} for key in (CONFIG_ANNOTATION, BECAUSE_ANNOTATION)}
    assert entry["fieldsV1"] == {"f:metadata": {"f:annotations": ours}}
    assert {f"f:{one.tokens[-1]}" for one in managers.PLACEMENT.writes} == set(ours)
    assert machine["metadata"]["annotations"][BECAUSE_ANNOTATION] == "main: it is the only cluster"
    assert "status" not in machine
    [event] = await scene.events("web")
    assert event["note"] == "placed on cluster main: it is the only cluster"
    assert [one.verb for one in asked() if one.resource == "machines" and one.is_write] == ["patch"]
    assert process.troubles == []


async def test_choice_of_a_person_is_an_event(scene: Scene, start: Start) -> None:
    await scene.join("east", "west")
    await scene.machine("web")
    key = Key(scene.namespace, "web")
    with start():
        signature = await sign(scene.client, "it has a GPU", datetime.now(UTC))
        assert isinstance(await choose_cluster(scene.client, key, "west", signature), Decided)
        assert await eventually(partial(has_event, scene, "web", "ClusterChosen"))
    [event] = [one for one in await scene.events("web") if one["reason"] == "ClusterChosen"]
    assert event["note"] == "admin chose cluster west: it has a GPU"


async def has_event(scene: Scene, name: str, reason: str) -> bool:
    return reason in {one["reason"] for one in await scene.events(name)}


async def test_what_blocks_a_machine_is_a_condition_until_it_is_gone(scene: Scene, start: Start) -> None:
    await scene.join("east", "west")
    await scene.machine("web")
    ready = {"type": "Ready", "status": "Unknown"}
    status = {"status": {"phase": "Pending", "conditions": [ready]}}
    await scene.client.merge_patch(the_machine(scene.namespace, "web"), status, subresource="status")
    with start():
        assert await eventually(partial(scene.waits_for, "web", "AmbiguousPlacement"))
        message = (await scene.condition("web"))["message"]
        assert await eventually(partial(has_event, scene, "web", "AmbiguousPlacement"))
        await scene.annotate("web", kubevirt_config="west")
        assert await eventually(partial(is_placed, scene, "web"))
    assert message == AMBIGUOUS.format(machine=f"{scene.namespace}/web")
    machine = await scene.client.get(the_machine(scene.namespace, "web"))
    assert machine["status"]["conditions"][0] == ready
    assert machine["status"]["phase"] == "Pending"
    assert len(machine["status"]["conditions"]) == 2


@pytest.mark.parametrize(
    ("ours", "says"),
    [
        pytest.param(True, "cluster west: its KubevirtConfig has spec.default: true", id="we-did"),
        pytest.param(False, "cluster west: its annotation names west", id="somebody-else-did"),
    ],
)
async def test_the_condition_of_a_machine_that_had_to_wait_says_why_it_was_placed_where(
    scene: Scene, start: Start, *, ours: bool, says: str
) -> None:
    await scene.join("east", "west")
    await scene.machine("web")
    with start():
        assert await eventually(partial(scene.waits_for, "web", "AmbiguousPlacement"))
        await (scene.change("west", default=True) if ours else scene.annotate("web", kubevirt_config="west"))
        assert await eventually(partial(is_placed, scene, "web"))
    assert (await scene.condition("web"))["message"] == says


async def is_placed(scene: Scene, name: str) -> bool:
    return (await scene.condition(name)).get("status") == "True"


async def test_a_recorded_choice_is_never_changed_even_if_its_cluster_is_gone(scene: Scene, start: Start) -> None:
    await scene.join("east", "west")
    await scene.machine("web", annotations={CONFIG_ANNOTATION: "west"})
    with start("--default-kubevirt-config=east"):
        await scene.machine("other")
        assert await eventually(partial(scene.is_on, "other", "east"))
        assert await scene.condition("web") == {}
        await scene.leave("west")
        assert await eventually(partial(scene.waits_for, "web", "ConfigNotFound"))
        assert await scene.cluster_of("web") == "west"
        await scene.configure("west")
        assert await eventually(partial(is_placed, scene, "web"))
    assert await scene.cluster_of("web") == "west"


@pytest.mark.parametrize("owner", ["merge patch", "server-side apply"])
async def test_an_empty_annotation_is_no_choice_whoever_wrote_it_by(scene: Scene, start: Start, owner: str) -> None:
    await scene.join("main")
    if owner == "merge patch":
        await scene.machine("web", annotations={CONFIG_ANNOTATION: ""})
    else:
        await scene.client.apply(
            {
                "apiVersion": "vitistack.io/v1alpha1",
                "kind": "Machine",
                "metadata": {"name": "web", "namespace": scene.namespace, "annotations": {CONFIG_ANNOTATION: ""}},
            },
            manager="ann",
        )
    with start():
        assert await eventually(partial(scene.is_on, "web", "main"))
        assert await eventually(partial(has_event, scene, "web", "Placed"))
    [event] = await scene.events("web")
    assert "the empty annotation was taken from" in event["note"]


async def test_a_note_that_came_with_a_copy_is_replaced_and_a_persons_own_choice_gets_none(
    scene: Scene, start: Start
) -> None:
    await scene.join("main", "other", schedulable=False)
    await scene.change("main", schedulable=True, default=True)
    await scene.machine("copy", annotations={BECAUSE_ANNOTATION: "other: somebody said so"})
    await scene.machine("own", annotations={CONFIG_ANNOTATION: "other"})
    before = await scene.client.get(the_machine(scene.namespace, "own"))
    with start():
        assert await eventually(partial(scene.is_on, "copy", "main"))
        assert await eventually(partial(has_event, scene, "copy", "Placed"))
        assert await eventually(partial(counts, scene, "other", 1))
    copy = await scene.client.get(the_machine(scene.namespace, "copy"))
    assert copy["metadata"]["annotations"][BECAUSE_ANNOTATION] == "main: its KubevirtConfig has spec.default: true"
    [event] = await scene.events("copy")
    assert event["note"] == "placed on cluster main: its KubevirtConfig has spec.default: true"
    assert await scene.client.get(the_machine(scene.namespace, "own")) == before


async def counts(scene: Scene, config: str, machines: int) -> bool:
    return bool((await scene.status(config)).get("machines", 0) == machines)


async def test_machines_of_other_providers_and_those_on_their_way_out_are_left_alone(
    scene: Scene, start: Start, asked: Asked
) -> None:
    await scene.join("main")
    await scene.machine("cloud", providerConfig={"name": "aws"})
    await scene.machine("going")
    patch = {"metadata": {"finalizers": ["tests.example/stay"]}}
    await scene.client.merge_patch(the_machine(scene.namespace, "going"), patch)
    await scene.client.delete(the_machine(scene.namespace, "going"))
    with start():
        await scene.machine("ours", providerConfig={"name": "kubevirt"})
        assert await eventually(partial(scene.is_on, "ours", "main"))
    assert [await scene.cluster_of(name) for name in ("cloud", "going")] == ["", ""]
    assert {one.name for one in asked() if one.resource == "machines" and one.is_write} == {"ours"}
    await scene.client.merge_patch(the_machine(scene.namespace, "going"), {"metadata": {"finalizers": []}})


async def test_it_needs_all_rights_that_it_declares_and_no_other(
    scene: Scene, start: Start, account: Account, asked: Asked
) -> None:
    await scene.join("east", "west")
    await scene.machine("web")
    await delete_all(scene.client, LEASE)  # so that it creates its own
    with start(election=FREQUENT_RENEWALS):
        assert await eventually(partial(scene.waits_for, "web", "AmbiguousPlacement"))
        await scene.change("west", default=True)
        assert await eventually(partial(scene.is_on, "web", "west"))
        assert await eventually(partial(is_placed, scene, "web"))
        assert await eventually(partial(reports, scene, "west", "Reachable", "True"))
    assert account.denied(asked()) == []
    assert account.unused(asked()) == []
    secrets = [one for one in asked() if one.resource == "secrets"]
    assert secrets
    assert all("fieldSelector=metadata.name" in one.uri and one.namespace == scene.secrets for one in secrets)


async def reports(scene: Scene, config: str, type_: str, status: str) -> bool:
    conditions = (await scene.status(config)).get("conditions", [])
    return any((one["type"], one["status"]) == (type_, status) for one in conditions)


async def test_a_secret_that_comes_late_or_is_broken_meanwhile_is_said_and_then_used(
    scene: Scene, start: Start
) -> None:
    await scene.configure("main")
    await scene.machine("web")
    with start():
        assert await eventually(partial(scene.waits_for, "web", "SecretNotFound"))
        await scene.join_secret("main", "garbage: [")
        assert await eventually(partial(scene.waits_for, "web", "BadKubeconfig"))
        await scene.rotate("main", scene.kubeconfig())
        assert await eventually(partial(scene.is_on, "web", "main"))
        await scene.client.delete(the_secret(scene.secrets, "main"))
        assert await eventually(partial(scene.waits_for, "web", "SecretNotFound"))
    assert await scene.cluster_of("web") == "main"


async def test_a_secret_that_may_not_be_read_is_said_with_the_command_that_helps(scene: Scene, start: Start) -> None:
    await scene.client.create(a_secret(scene.namespace, "main", scene.kubeconfig()))
    await scene.client.create(a_config("main", Key(scene.namespace, "main")))
    await scene.machine("web")
    with start():
        assert await eventually(partial(scene.waits_for, "web", "SecretUnreadable"))
    message = (await scene.condition("web"))["message"]
    assert f"'virt-steward rbac --controllers placement --secret-namespaces {scene.namespace}'" in message


async def test_freeze_holds_placement_only_if_it_names_it(scene: Scene, start: Start) -> None:
    await scene.join("main")
    with start() as process:
        async with frozen(scene.client, scene.secrets, reason="holidays"):
            await scene.machine("web")
            assert await eventually(partial(scene.is_on, "web", "main"))
        async with frozen(scene.client, scene.secrets, controllers="placement"):
            await scene.machine("db")
            assert await eventually(partial(has_event, scene, "db", "Frozen"))
            assert not await scene.cluster_of("db")
        assert await eventually(partial(scene.is_on, "db", "main"))
    assert process.troubles == []
