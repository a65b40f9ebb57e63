"""Metrics are found, alerts have runbooks, and dashboards show what they lay out."""

import re
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from tests.assets.contexts import Cluster, an_asset, catalog, is_wanted, rendered
from virt_steward.catalog.reads import INSTALLATION_NAMESPACE
from virt_steward.controllers.autopilot.metrics import AutopilotMetrics
from virt_steward.packaging.monitoring import (
    MonitoringApis,
    MonitoringOptions,
    metrics,
    monitor,
    of_operators,
    on_every_cluster,
)
from virt_steward.runtime.access import Installation
from virt_steward.runtime.metrics import Metrics

ROOT = Path(__file__).parents[2]
ALERTS = {
    "VirtPlatformAutopilotSyncFailed": ("critical", "15m"),
    "VirtPlatformAutopilotThrashingDetected": ("warning", None),
    "VirtPlatformDriftReported": ("warning", "15m"),
    "VirtPlatformAutopilotDependencyMissing": ("warning", "5m"),
    "VirtPlatformAutopilotTombstoneStuck": ("warning", "30m"),
    "VirtPlatformAutopilotLoggingStorageNotConfigured": ("warning", "15m"),
    "VirtPlatformAutopilotMachineConfigUpdateStaged": ("info", "5m"),
}
RENAMED = {
    f"VirtPlatform{name}": f"VirtPlatformAutopilot{name}"
    for name in ("SyncFailed", "ThrashingDetected", "DependencyMissing", "TombstoneStuck")
}
"""Alerts that have two names for one release."""
SUFFIXES = {"counter": ("_total",), "histogram": ("_bucket", "_count", "_sum")}
DASHBOARDS = [asset.name for asset in catalog().assets if asset.object.kind.name == "PersesDashboard"]
DATASOURCES = [asset.object for asset in catalog().assets if asset.object.kind.name == "PersesDatasource"]

INSTALLED_SERVICE: dict[str, dict[str, Any]] = {
    "virt-steward-metrics": {"metadata": {"name": "virt-steward-metrics", "namespace": "virt-steward"}}
}
"""What an installation without the Prometheus operator's objects has."""
INSTALLED_MONITORING = INSTALLED_SERVICE | {
    name: {"metadata": {"name": name}} for name in ("virt-steward", "virt-steward-autopilot")
}
"""What an installation has that brings its monitoring."""


def alerts(annotations: dict[str, str] | None = None) -> dict[str, dict[str, Any]]:
    groups = rendered("prometheus-alerts", Cluster(annotations or {}))["spec"]["groups"]
    return {rule["alert"]: rule for group in groups for rule in group["rules"]}


def test_the_hco_is_marked_and_nothing_of_its_spec_is_ours() -> None:
    made = rendered("hco-golden-config", Cluster())
    assert made.keys() == {"apiVersion", "kind", "metadata"}
    assert made["metadata"]["annotations"] == {
        "platform.kubevirt.io/managed-by": "virt-platform-autopilot",
        "platform.kubevirt.io/version": "1.0.0",
    }


def test_the_monitor_finds_the_service_of_the_metrics() -> None:
    service, monitor = rendered("metrics-service", Cluster()), rendered("metrics-servicemonitor", Cluster())
    assert monitor["spec"]["selector"]["matchLabels"].items() <= service["metadata"]["labels"].items()
    [endpoint] = monitor["spec"]["endpoints"]
    assert endpoint["port"] in [port["name"] for port in service["spec"]["ports"]]
    assert (endpoint["path"], endpoint["interval"], endpoint["honorLabels"]) == ("/metrics", "30s", True)


def test_no_service_is_wanted_beside_that_of_the_installation() -> None:
    assert is_wanted("metrics-service", Cluster())
    assert not is_wanted("metrics-service", Cluster(objects=INSTALLED_SERVICE))


def test_the_monitor_finds_our_pods_in_the_namespace_of_the_installation() -> None:
    spec = rendered("metrics-servicemonitor", Cluster(objects=INSTALLED_SERVICE))["spec"]
    installation = Installation()
    service, *_ = metrics(installation)
    assert spec["namespaceSelector"] == {"matchNames": [installation.namespace]}
    assert spec["selector"]["matchLabels"].items() <= service["metadata"]["labels"].items()
    [ours], [endpoint] = monitor(installation)["spec"]["endpoints"], spec["endpoints"]
    assert {**endpoint, "tlsConfig": None} == {**ours, "tlsConfig": None}, "but for where the authority is"
    assert endpoint["tlsConfig"]["serverName"] == ours["tlsConfig"]["serverName"]
    assert endpoint["port"] in [port["name"] for port in service["spec"]["ports"]]


def test_nothing_is_scraped_twice_and_no_alert_fires_twice() -> None:
    beside = Cluster(objects=INSTALLED_MONITORING)
    assert rendered("metrics-servicemonitor", beside)["spec"]["endpoints"] == []
    assert [group["rules"] for group in rendered("prometheus-alerts", beside)["spec"]["groups"]] == [[], [], []]
    alone = Cluster(objects=INSTALLED_SERVICE)
    assert rendered("prometheus-alerts", alone) == rendered("prometheus-alerts", Cluster())


def test_assets_read_the_objects_that_our_manifests_install() -> None:
    chosen = Installation(), MonitoringOptions(MonitoringApis.PROMETHEUS)
    topics = {**on_every_cluster(*chosen), **of_operators(*chosen)}
    installed = {(obj["kind"], obj["metadata"]["name"]) for objects in topics.values() for obj in objects}
    read = [one for one in catalog().needs.objects if one.namespace == INSTALLATION_NAMESPACE]
    assert {(one.kind.name, one.name) for one in read} <= installed
    assert len(read) == 3


def test_an_alert_is_as_urgent_and_as_patient_as_its_table_says() -> None:
    both = ALERTS | {old: ALERTS[new] for old, new in RENAMED.items()}
    assert {name: (rule["labels"]["severity"], rule.get("for")) for name, rule in alerts().items()} == both


@pytest.mark.parametrize("old", RENAMED)
def test_a_renamed_alert_says_so_and_fires_like_the_new_one(old: str) -> None:
    found = alerts()
    before, after = found[old], found[RENAMED[old]]
    assert (before["expr"], before.get("for")) == (after["expr"], after.get("for"))
    assert before["annotations"].pop("deprecated").startswith(f"renamed to {RENAMED[old]};")
    assert before["annotations"] == after["annotations"], "with the runbook of the new one"
    assert (ROOT / "docs" / "runbooks" / f"{old}.md").read_text().startswith(f"# {old}\n")


@pytest.mark.parametrize("alert", ALERTS)
def test_a_runbook_tells_what_to_do_about(alert: str) -> None:
    url = alerts()[alert]["annotations"]["runbook_url"]
    assert url == f"docs/runbooks/{alert}.md"
    assert (ROOT / url).read_text().startswith(f"# {alert}\n")


def test_runbooks_may_be_kept_elsewhere() -> None:
    elsewhere = alerts({"runbooks": "https://runbooks.example"})
    assert elsewhere["VirtPlatformAutopilotSyncFailed"]["annotations"]["runbook_url"] == (
        "https://runbooks.example/VirtPlatformAutopilotSyncFailed.md"
    )
    template = alerts({"runbooks": "https://kubevirt.io/monitoring/runbooks/%s"})
    assert template["VirtPlatformDriftReported"]["annotations"]["runbook_url"] == (
        "https://kubevirt.io/monitoring/runbooks/VirtPlatformDriftReported"
    )


@pytest.mark.parametrize("alert", ALERTS)
def test_a_replica_that_does_not_lead_sets_off_no(alert: str) -> None:
    assert 'unless on (instance) leader_election_master_status{name="autopilot"} == 0' in alerts()[alert]["expr"]


@pytest.mark.parametrize("name", ["prometheus-alerts", "autopilot-dashboard"])
def test_metrics_are_told_that_are_asked_for_by(name: str) -> None:
    known = Metrics()
    AutopilotMetrics(known.registry)
    families = known.registry.collect()
    told = {f"{one.name}{suffix}" for one in families for suffix in SUFFIXES.get(one.type, ("",))}
    asked = set(re.findall(r"\b(?:kubevirt_autopilot|leader_election)_\w+", str(rendered(name, Cluster()))))
    assert asked
    assert asked <= told


@pytest.mark.parametrize("name", DASHBOARDS)
def test_every_panel_has_its_place_on(name: str) -> None:
    spec = rendered(name, Cluster())["spec"]
    shown = [item["content"]["$ref"] for layout in spec["layouts"] for item in layout["spec"]["items"]]
    assert sorted(shown) == sorted(f"#/spec/panels/{key}" for key in spec["panels"])


@pytest.mark.parametrize("name", DASHBOARDS)
def test_no_row_is_wider_than_the_grid_of(name: str) -> None:
    for layout in rendered(name, Cluster())["spec"]["layouts"]:
        ends = [(item["x"], item["x"] + item["width"]) for item in layout["spec"]["items"]]
        assert all(before[1] <= after[0] for before, after in pairwise(ends))
        assert ends[-1][1] <= 24


@pytest.mark.parametrize("name", DASHBOARDS)
def test_there_is_a_datasource_beside(name: str) -> None:
    panels = rendered(name, Cluster())["spec"]["panels"].values()
    queries = [query["spec"]["plugin"]["spec"] for panel in panels for query in panel["spec"]["queries"]]
    asked = {query["datasource"]["name"] for query in queries}
    assert asked == {one.name for one in DATASOURCES if one.namespace == an_asset(name).object.namespace}
