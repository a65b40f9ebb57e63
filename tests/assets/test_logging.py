"""Logging fits the cluster it is for, and its parts fit each other."""

from typing import Any

import pytest

from tests.assets.contexts import Cluster, an_asset, rendered, rendering
from virt_steward.catalog.conditions import Met, Unmet
from virt_steward.catalog.render import RenderFailed
from virt_steward.platform.storage import Storage
from virt_steward.platform.topology import Topology

BINDINGS = {
    "logging-collector-application": "collect-application-logs",
    "logging-collector-infrastructure": "collect-infrastructure-logs",
    "logging-collector-logs-writer": "logging-collector-logs-writer",
    "logging-collector-audit": "collect-audit-logs",
}
AUDITED = Cluster({"enable-logging": "true", "enable-audit-logging": "true"})
PLAIN = Cluster({"enable-logging": "true"})


def the_lokistack(nodes: int = 6, **topology: Any) -> dict[str, Any]:
    cluster = Cluster(nodes=nodes, topology=Topology(**topology))
    return dict(rendered("logging-lokistack", cluster)["spec"])


@pytest.mark.parametrize(
    ("nodes", "size"),
    [(1, "1x.pico"), (3, "1x.pico"), (4, "1x.extra-small"), (10, "1x.extra-small"), (11, "1x.medium")],
)
def test_loki_is_as_large_as_a_cluster_of_so_many_nodes_needs(nodes: int, size: str) -> None:
    assert the_lokistack(nodes)["size"] == size


@pytest.mark.parametrize("nodes", [2, 50])
def test_loki_is_small_where_the_control_plane_is_elsewhere(nodes: int) -> None:
    assert the_lokistack(nodes, is_hcp=True)["size"] == "1x.extra-small"


@pytest.mark.parametrize(
    ("platform", "objects"), [("AWS", "s3"), ("Azure", "azure"), ("GCP", "gcs"), ("BareMetal", "s3"), ("", "s3")]
)
def test_loki_is_kept_in_what_the_platform_offers(platform: str, objects: str) -> None:
    spec = the_lokistack(platform=platform)
    assert spec["storage"] == {
        "schemas": [{"version": "v13", "effectiveDate": "2024-10-01"}],
        "secret": {"name": "logging-loki-storage", "type": objects},
    }
    assert spec["limits"] == {"global": {"retention": {"days": 7}}}


LIVE = {"logging-loki": {"spec": {"storageClassName": "live"}}}
CHOSEN = {"logging-storage-class": "chosen"}


@pytest.mark.parametrize(
    ("cluster", "chosen"),
    [
        pytest.param(Cluster(CHOSEN, objects=LIVE), "chosen", id="the-annotation"),
        pytest.param(Cluster(CHOSEN, storage=Storage()), "chosen", id="the-annotation-without-a-default"),
        pytest.param(Cluster({"logging-storage-class": ""}, objects=LIVE), "live", id="an-empty-annotation"),
        pytest.param(Cluster(objects=LIVE), "live", id="what-it-has"),
        pytest.param(Cluster(objects={"logging-loki": {}}), "fast", id="the-default-if-it-has-none"),
        pytest.param(Cluster(), "fast", id="the-default"),
        pytest.param(Cluster(storage=Storage(knows_classes=False)), None, id="none-in-a-file-without-classes"),
    ],
)
def test_loki_has_the_storage_class(cluster: Cluster, chosen: str | None) -> None:
    assert rendered("logging-lokistack", cluster)["spec"].get("storageClassName") == chosen


def test_loki_fails_without_any_storage_class() -> None:
    made = rendering("logging-lokistack", Cluster(storage=Storage()))
    assert isinstance(made, RenderFailed)
    assert made.code == "NoDefaultStorageClass"
    assert "NoDefaultStorageClass: the cluster has no default StorageClass; make one the default, or name" in made.why


@pytest.mark.parametrize("name", BINDINGS)
def test_binding_waits_for_the_log_forwarder(name: str) -> None:
    assert an_asset(name).gate_crd == "clusterlogforwarders.observability.openshift.io"


@pytest.mark.parametrize(("name", "role"), BINDINGS.items())
def test_a_role_is_bound_to_the_collector(name: str, role: str) -> None:
    account = rendered("logging-collector", PLAIN)["metadata"]
    binding = rendered(name, AUDITED)
    assert binding["roleRef"]["name"] == role
    assert binding["subjects"] == [
        {"kind": "ServiceAccount", "name": account["name"], "namespace": account["namespace"]}
    ]


@pytest.mark.parametrize(
    ("cluster", "pipelines"),
    [
        pytest.param(PLAIN, {"infra-logs": "infrastructure", "app-logs": "application"}, id="without-audit-logs"),
        pytest.param(
            AUDITED,
            {"infra-logs": "infrastructure", "app-logs": "application", "audit-logs": "audit"},
            id="with-audit-logs",
        ),
    ],
)
def test_every_pipeline_of_the_forwarder_leads_to_loki_by_filters_that_there_are(
    cluster: Cluster, pipelines: dict[str, str]
) -> None:
    spec = rendered("logging-forwarder", cluster)["spec"]
    loki = rendered("logging-lokistack", cluster)["metadata"]
    [output] = spec["outputs"]
    target = output["lokiStack"]["target"]
    assert (target["name"], target["namespace"]) == (loki["name"], loki["namespace"])
    assert {line["name"]: line["inputRefs"] for line in spec["pipelines"]} == {
        name: [source] for name, source in pipelines.items()
    }
    assert all(line["outputRefs"] == [output["name"]] for line in spec["pipelines"])
    used = [name for line in spec["pipelines"] for name in line["filterRefs"]]
    assert set(used) == {one["name"] for one in spec["filters"]}


def test_audit_logs_are_thinned_by_three_filters_of_their_own() -> None:
    spec = rendered("logging-forwarder", AUDITED)["spec"]
    used = {line["name"]: set(line["filterRefs"]) for line in spec["pipelines"]}
    assert len(used["audit-logs"]) == 3
    assert used["audit-logs"].isdisjoint(used["app-logs"] | used["infra-logs"])


@pytest.mark.parametrize(
    ("cluster", "verdicts"),
    [
        pytest.param(PLAIN, [Met, Unmet], id="not-by-logging-alone"),
        pytest.param(Cluster({"enable-audit-logging": "true"}), [Unmet, Met], id="not-without-logging"),
        pytest.param(AUDITED, [Met, Met], id="if-both-are-asked-for"),
    ],
)
def test_audit_logs_may_be_read(cluster: Cluster, verdicts: list[type]) -> None:
    conditions = an_asset("logging-collector-audit").conditions
    assert [type(condition.check(cluster.context())) for condition in conditions] == verdicts


def test_the_console_shows_the_logs_that_are_kept() -> None:
    plugin = rendered("logging-ui-plugin", PLAIN)["spec"]
    assert plugin["logging"]["lokiStack"]["name"] == rendered("logging-lokistack", PLAIN)["metadata"]["name"]
