from functools import cache
from typing import Any

import pytest

from tests.catalog.builders import an_hco_object
from tests.controllers.autopilot.builders import an_observation, report
from virt_steward.catalog.asset import features
from virt_steward.catalog.conditions import AnnotationCondition, FeatureGateCondition
from virt_steward.catalog.context import AssetContext
from virt_steward.catalog.load import Catalog, load
from virt_steward.catalog.reads import KUBEVIRT_GATES
from virt_steward.catalog.render import Rendered, Renderer, RenderFailed
from virt_steward.controllers.autopilot.asset_report import AssetReport, AssetStatus
from virt_steward.controllers.autopilot.rollouts.policy import REBOOTING
from virt_steward.objects.schemafacts import SchemaFacts
from virt_steward.platform.hco import Hco
from virt_steward.platform.machineconfigs import MachineConfigs
from virt_steward.platform.nodes import Hardware, Nodes
from virt_steward.platform.storage import Storage
from virt_steward.platform.topology import Topology

SEED = {
    "hco-golden-config",
    "prometheus-alerts",
    "swap-enable",
    "psi-enable",
    "pci-passthrough",
    "kubelet-perf-settings",
    "kubelet-cpu-manager",
    "node-health-check",
    "descheduler-loadaware",
    "mtv-operator",
    "metallb-operator",
    "observability-operator",
}


KUBEVIRT = {"spec": {"configuration": {"developerConfiguration": {"featureGates": ["CPUManager"]}}}}


@cache
def shipped() -> Catalog:
    return load()


def a_cluster(version: str = "v1", **more: Any) -> AssetContext:
    """Somebody asks for everything, and the cluster has it all but no objects of others."""
    conditions = [condition for asset in shipped().assets for condition in asset.conditions]
    keys = {one.key: one.value or "true" for one in conditions if isinstance(one, AnnotationCondition)}
    gates = [one.value for one in conditions if isinstance(one, FeatureGateCondition)]
    listed: Any = [{"name": gate} for gate in gates] if version == "v1" else dict.fromkeys(gates, True)
    known = {
        "hco": Hco.of(an_hco_object(version=version, annotations=keys, featureGates=listed)),
        "nodes": Nodes(5, 3, 2),
        "hardware": Hardware(pci=True, numa=True, vfio=True, usb=True, gpu=True),
        "topology": Topology(has_schedulable_masters=True, platform="BareMetal"),
        "storage": Storage(default="fast"),
        "machine_configs": MachineConfigs(),
        "images": dict.fromkeys(shipped().needs.images, "registry.example/image:1"),
        "objects": {read.ref: None for read in shipped().needs.objects} | {KUBEVIRT_GATES.ref: KUBEVIRT},
        "schemas": {
            crd: SchemaFacts(dict.fromkeys(paths, ("LongLifecycle",))) for crd, paths in shipped().needs.schemas.items()
        },
    }
    return AssetContext(**(known | more))


def test_shipped_catalog_has_all_assets_of_the_seed() -> None:
    assert {asset.name for asset in shipped().assets} >= SEED


@pytest.mark.parametrize("version", ["v1", "v1beta1"])
@pytest.mark.parametrize("asset", [asset.name for asset in shipped().assets])
def test_shipped_template_renders_on_full_cluster(asset: str, version: str) -> None:
    found = shipped().find(asset)
    assert found
    rendering = Renderer(shipped()).render(found, a_cluster(version))
    assert not isinstance(rendering, RenderFailed), rendering


def lines_on(context: AssetContext) -> list[AssetReport]:
    return [report(asset, an_observation(context), shipped()) for asset in shipped().assets]


def test_shipped_assets_are_nearly_all_included_on_request() -> None:
    lines = lines_on(a_cluster())
    left = {line.asset.name: line.reason for line in lines if line.status is not AssetStatus.INCLUDED}
    assert set(left.values()) <= {"Conditions not met", "Conditional template rendered empty"}
    assert len(left) < len(lines) / 5, left


def test_shipped_defaults_include_only_always_assets() -> None:
    bare = a_cluster(hco=Hco.of(an_hco_object()), hardware=Hardware(), topology=Topology(), images={})
    lines = lines_on(bare)
    assert {line.asset.install for line in lines if line.status is AssetStatus.INCLUDED} == {"always"}


def test_shipped_assets_render_reproducibly() -> None:
    first, second = (
        {asset.name: Renderer(shipped()).render(asset, a_cluster()) for asset in shipped().assets} for _ in range(2)
    )
    assert first == second
    assert any(isinstance(rendering, Rendered) for rendering in first.values())


def test_shipped_summaries_are_sentences() -> None:
    assert not [asset.name for asset in shipped().assets if not asset.summary.endswith(".")]


def test_shipped_tombstones_have_a_plural() -> None:
    assert all(tombstone.ref.kind.plural for tombstone in shipped().tombstones)


def test_shipped_tombstones_that_reboot_nodes_belong_to_an_asset() -> None:
    """In whose name their deletion is staged and released; without one, they are never deleted."""
    rebooting = [stone for stone in shipped().tombstones if stone.ref.kind in REBOOTING]
    assert rebooting
    assert [stone.path for stone in rebooting if not stone.replaced_by] == []


def test_shipped_opt_in_features_have_a_key() -> None:
    assert not [
        feature.name for feature in features(shipped().assets) if feature.install == "opt-in" and not feature.opt_in
    ]
