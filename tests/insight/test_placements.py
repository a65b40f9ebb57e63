"""Which cluster a machine goes to and why, asked of a real API server."""

from collections.abc import AsyncIterator
from typing import Any

import pytest
from aiohttp import web

from tests.audit import AuditLog
from tests.controllers.placement.scene import Scene
from tests.gateway import Gateway
from tests.grants import an_account
from tests.machines import the_machine
from tests.proxy import FaultProxy
from virt_steward.controllers.placement.act import record
from virt_steward.controllers.placement.observation import CONFIG_ANNOTATION, Machine
from virt_steward.controllers.placement.options import PlacementOptions, PlacementRules
from virt_steward.controllers.placement.rules import RULES
from virt_steward.controllers.placement.verdicts import Chosen
from virt_steward.insight.placements import (
    AssumedRules,
    Candidate,
    NoMachine,
    PlacementExplanation,
    explain_placement,
    preview_placements,
)
from virt_steward.kube.client import Client, Reader
from virt_steward.objects.identity import Key
from virt_steward.runtime.access import Access, Installation
from virt_steward_demo.local.controlplane import ControlPlane


@pytest.fixture
async def scene(admin: Client, control_plane: ControlPlane, namespace: str) -> AsyncIterator[Scene]:
    scene = Scene(admin, control_plane, namespace, namespace)
    await scene.install_crds()
    await scene.clear()  # other tests share this cluster
    yield scene
    await scene.clear()


def options(**rules: Any) -> PlacementOptions:
    return PlacementOptions(PlacementRules(**rules))


async def asked(scene: Scene, machine: str, **rules: Any) -> PlacementExplanation:
    reader = Reader(scene.client.connection, scene.client.discovery)
    return await explain_placement(reader, Key(scene.namespace, machine), options(**rules))


async def test_explain_placement_of_ambiguous_machine_tries_every_rule(scene: Scene) -> None:
    await scene.join("east", "west")
    await scene.machine("web")
    found = await asked(scene, "web")
    assert (found.cluster, found.reason) == (None, "AmbiguousPlacement")
    assert [check.title for check in found.checks] == [one.title for one in RULES]
    assert [check.result for check in found.checks] == ["not reached", "pass", *["not reached"] * 6, "fail"]
    assert [check.decided for check in found.checks] == [False] * 8 + [True]
    assert found.clusters == (
        Candidate("east", 0, schedulable=True, trouble=None, vm="not there"),
        Candidate("west", 0, schedulable=True, trouble=None, vm="not there"),
    )


async def test_explain_placement_shows_selector_and_scores(scene: Scene) -> None:
    await scene.join("east", "west", labels={"tier": "gold"})
    await scene.join("cheap", labels={"tier": "tin"})
    await scene.machine("old", annotations={CONFIG_ANNOTATION: "east"})
    await scene.machine("web", annotations={"vitistack.io/cluster-selector": "tier=gold"})
    found = await asked(scene, "web", strategy="least-loaded")
    assert ("pass", "east, west match tier=gold") in [(check.result, check.reason) for check in found.checks]
    assert found.cluster == "west"
    assert [(one.cluster, one.words) for one in found.scores] == [("west", "0 machines"), ("east", "1 machine")]


async def test_explain_placement_shows_recorded_cluster(scene: Scene) -> None:
    await scene.join("east")
    await scene.machine("fine", annotations={CONFIG_ANNOTATION: "east"})
    await scene.machine("lost", annotations={CONFIG_ANNOTATION: "gone"})
    fine, lost = await asked(scene, "fine"), await asked(scene, "lost")
    assert (fine.recorded, fine.cluster, fine.reason) == ("east", "east", None)
    assert (lost.recorded, lost.cluster, lost.reason) == ("gone", None, "ConfigNotFound")
    assert (fine.recorded_because, lost.recorded_because) == (None, None)


async def test_explain_placement_shows_recorded_reason(scene: Scene) -> None:
    await scene.join("east")
    await scene.machine("web")
    reader = Reader(scene.client.connection, scene.client.discovery)
    machine = await reader.get(the_machine(scene.namespace, "web"), Machine)
    await record(scene.client, machine, Chosen("east", "it is the only one"))
    assert (await asked(scene, "web")).recorded_because == "it is the only one"
    await scene.annotate("web", kubevirt_config="west")
    assert (await asked(scene, "web")).recorded_because is None


async def test_explain_placement_shows_forbidden_cluster(scene: Scene) -> None:
    nobody = await an_account(scene.client, Access("nobody", ()), Installation(namespace=scene.namespace))
    await scene.join("east")
    await scene.join("west", token=nobody.token)
    await scene.machine("web")
    found = await asked(scene, "web")
    assert found.reason == "Forbidden"
    east, west = found.clusters
    assert east.trouble is None
    assert "cluster west: forbidden (403) to list virtualmachines.kubevirt.io" in (west.trouble or "")


async def test_explain_placement_shows_cluster_without_kubevirt(scene: Scene, gateway: Gateway) -> None:
    async def bare(request: web.BaseRequest) -> web.StreamResponse | None:
        if request.path == "/apis":
            return web.json_response({"kind": "APIGroupDiscoveryList", "items": []})
        return web.Response(status=404) if request.path.endswith("/virtualmachines") else None

    gateway.intercept = bare
    await scene.join("east", server=gateway.secure_server)
    await scene.join("west")
    await scene.machine("web")
    found = await asked(scene, "web", strategy="round-robin")
    assert found.cluster == "west"
    east, west = found.clusters
    assert (east.vm, west.vm, west.trouble) == ("not there", "not there", None)
    assert east.trouble == "KubeVirt is not installed there"


async def test_explain_placement_names_assumed_settings(scene: Scene) -> None:
    await scene.join("east", "west")
    await scene.machine("web")
    await scene.machine("cloud", providerConfig={"name": "aws"})
    for machine in ("web", "cloud"):
        found = await asked(scene, machine, strategy="weight")
        assert found.assumed == AssumedRules.of(PlacementRules(strategy="weight"))


async def test_explain_placement_shows_unreachable_clusters(scene: Scene, proxy: FaultProxy) -> None:
    await proxy.refuse()
    await scene.join("dead", server=proxy.server)
    await scene.configure("keyless")
    await scene.machine("web")
    found = await asked(scene, "web")
    assert found.reason == "SecretNotFound"
    dead, keyless = found.clusters
    assert (dead.vm, keyless.vm) == ("unknown", "unknown")
    assert "cluster dead: unreachable: " in (dead.trouble or "")
    assert "not found: create it" in (keyless.trouble or "")


async def test_explain_placement_of_foreign_or_deleted_machine(scene: Scene) -> None:
    await scene.machine("cloud", providerConfig={"name": "aws"})
    await scene.machine("going")
    finalizers = {"metadata": {"finalizers": ["tests.example/stay"]}}
    await scene.client.merge_patch(the_machine(scene.namespace, "going"), finalizers)
    await scene.client.delete(the_machine(scene.namespace, "going"))
    cloud, going = await asked(scene, "cloud"), await asked(scene, "going")
    await scene.client.merge_patch(the_machine(scene.namespace, "going"), {"metadata": {"finalizers": []}})
    assert {cloud.reason, going.reason} == {"LeftAlone"}
    assert "another provider" in cloud.because
    assert "being deleted" in going.because


async def test_preview_placements_counts_earlier_previews(scene: Scene) -> None:
    await scene.join("east", "west")
    for name in ("a", "b", "c", "d"):
        await scene.machine(name)
    reader = Reader(scene.client.connection, scene.client.discovery)
    found = await preview_placements(reader, options(strategy="round-robin"))
    assert [one.cluster for one in found] == ["east", "west", "east", "west"]


async def test_explain_placement_of_missing_machine_lists_existing(scene: Scene) -> None:
    await scene.machine("web")
    with pytest.raises(NoMachine, match=f"Machine {scene.namespace}/other not found; .*: web"):
        await asked(scene, "other")


async def test_explain_placement_writes_nothing(scene: Scene, audit_log: AuditLog) -> None:
    await scene.join("east", "west")
    await scene.machine("web")
    mark = audit_log.mark()
    await asked(scene, "web")
    agents = {"tests", "virt-steward"}
    requests = [one for one in audit_log.since(mark) if one.user_agent.partition("/")[0] in agents]
    assert {one.resource for one in requests} >= {"machines", "kubevirtconfigs", "secrets", "virtualmachines"}
    assert not any(one.is_write for one in requests)
