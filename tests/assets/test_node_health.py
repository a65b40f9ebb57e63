"""Workers are remediated by one check at a time, and by none without a remediator."""

from dataclasses import replace
from typing import Any

import pytest

from tests.assets.contexts import Cluster, rendered, rendering
from virt_steward.catalog.render import RenderedNothing
from virt_steward.platform.storage import Storage

SELF = "self-node-remediation-automatic-strategy-template"
FENCE = "fenceagentsremediationtemplate-default"
CHECK = "virt-platform-workers"
WANTED = {"enable-node-remediation": "true"}
PAUSE = "node-remediation looks after the workers"


def a_cluster(*names: str, annotations: dict[str, str] | None = None) -> Cluster:
    return Cluster(annotations or {}, objects={name: {"metadata": {"name": name}} for name in names})


@pytest.mark.parametrize(
    ("cluster", "template"),
    [
        pytest.param(a_cluster(SELF), "SelfNodeRemediationTemplate", id="by-themselves"),
        pytest.param(a_cluster(SELF, FENCE), "SelfNodeRemediationTemplate", id="by-themselves-where-both-can"),
        pytest.param(a_cluster(FENCE), "FenceAgentsRemediationTemplate", id="by-fence-agents-where-only-they-can"),
        pytest.param(
            a_cluster(SELF, annotations=WANTED),
            "SelfNodeRemediationTemplate",
            id="by-themselves-while-fence-agents-are-wanted-and-absent",
        ),
    ],
)
def test_workers_are_remediated(cluster: Cluster, template: str) -> None:
    spec = rendered("node-health-check", cluster)["spec"]
    assert spec["remediationTemplate"]["kind"] == template
    assert spec["remediationTemplate"]["name"] in cluster.objects
    assert "pauseRequests" not in spec
    assert spec["minHealthy"] == "51%"


@pytest.mark.parametrize("name", ["node-health-check", "node-remediation"])
def test_there_is_no_check_without_a_remediator(name: str) -> None:
    assert rendering(name, a_cluster(annotations=WANTED)) == RenderedNothing()


def test_node_remediation_replaces_the_other_check() -> None:
    cluster = a_cluster(SELF, FENCE, annotations=WANTED)
    assert rendering("node-health-check", cluster) == RenderedNothing()
    assert rendered("node-remediation", cluster)["metadata"]["name"] == "far"


def test_workers_are_looked_after_if_an_allow_list_leaves_node_remediation_out() -> None:
    only = {**WANTED, "autopilot": "node-health-check, swap-enable"}
    for cluster in (a_cluster(SELF, FENCE, annotations=only), a_cluster(SELF, FENCE, CHECK, annotations=only)):
        assert "pauseRequests" not in rendered("node-health-check", cluster)["spec"]
    both = {**WANTED, "autopilot": "node-health-check, node-remediation"}
    assert rendering("node-health-check", a_cluster(SELF, FENCE, annotations=both)) == RenderedNothing()


def test_a_check_that_is_there_already_is_paused_by_node_remediation() -> None:
    cluster = a_cluster(SELF, FENCE, CHECK, annotations=WANTED)
    assert rendered("node-health-check", cluster)["spec"]["pauseRequests"]


def test_the_other_check_counts_for_as_long_as_it_is_there() -> None:
    assert rendering("node-health-check", a_cluster(SELF, "far")) == RenderedNothing()
    assert rendered("node-health-check", a_cluster(SELF, "far", CHECK))["spec"]["pauseRequests"]


@pytest.mark.parametrize(
    ("before", "others", "after"),
    [
        pytest.param([], ["far"], [PAUSE], id="is-made-beside-the-other-check"),
        pytest.param(["upgrade"], ["far"], ["upgrade", PAUSE], id="is-made-beside-those-of-others"),
        pytest.param([PAUSE], ["far"], [PAUSE], id="is-made-once"),
        pytest.param([PAUSE, "upgrade"], [], ["upgrade"], id="is-taken-back-without-the-other-check"),
        pytest.param([PAUSE], [], [], id="is-taken-back-also-as-the-only-one"),
        pytest.param(["upgrade"], [], None, id="of-others-is-nobody-elses-business"),
    ],
)
def test_a_request_to_pause(before: list[str], others: list[str], after: list[str] | None) -> None:
    check = {CHECK: {"metadata": {"name": CHECK}, "spec": {"pauseRequests": before}}}
    cluster = a_cluster(SELF, *others)
    cluster = replace(cluster, objects={**cluster.objects, **check})
    assert rendered("node-health-check", cluster)["spec"].get("pauseRequests") == after


def test_node_remediation_also_fences_workers_without_storage() -> None:
    spec = rendered("node-remediation", a_cluster(FENCE, annotations=WANTED))["spec"]
    assert {(one["type"], one["status"]): one["duration"] for one in spec["unhealthyConditions"]} == {
        ("Ready", "False"): "300s",
        ("Ready", "Unknown"): "300s",
        ("SBRStorageUnhealthy", "True"): "300s",
    }


@pytest.mark.parametrize(
    ("annotations", "shared", "spec"),
    [
        pytest.param({}, (), {"detectOnlyMode": "Enabled"}, id="no-storage-class-if-none-is-shared"),
        pytest.param(
            {},
            ("cephfs", "nfs"),
            {"detectOnlyMode": "Enabled", "sharedStorageClass": "cephfs"},
            id="the-first-storage-class-that-is-shared",
        ),
        pytest.param(
            {"sbr-storage-class": "nfs"},
            ("cephfs", "nfs"),
            {"detectOnlyMode": "Enabled", "sharedStorageClass": "nfs"},
            id="the-storage-class-of-the-annotation",
        ),
    ],
)
def test_loss_of_storage_is_only_detected_with(
    annotations: dict[str, str], shared: tuple[str, ...], spec: dict[str, Any]
) -> None:
    assert rendered("node-remediation-storage", Cluster(annotations, storage=Storage(shared)))["spec"] == spec
