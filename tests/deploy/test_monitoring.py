"""Monitoring comes with every method of installation, and with the same objects."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.cli.commands import steward
from virt_steward.cli.manifests import PackageFormat, files_of
from virt_steward.objects.identity import Key
from virt_steward.packaging.dashboards import WIDTH, dashboards
from virt_steward.packaging.monitoring import MonitoringApis, MonitoringOptions, of_operators, on_every_cluster
from virt_steward.packaging.parts import InstallOptions, namespace
from virt_steward.runtime.access import Installation

DEPLOY = Path(__file__).parents[2] / "deploy"

Object = dict[str, Any]


def kinds_and_names(objects: list[Object]) -> dict[tuple[str, str], Object]:
    found = {(obj["kind"], obj["metadata"]["name"]): obj for obj in objects}
    assert len(found) == len(objects)
    return found


def wanted(apis: MonitoringApis) -> dict[tuple[str, str], Object]:
    """All objects about monitoring, besides the label of the namespace."""
    chosen = (Installation(), MonitoringOptions(apis))
    topics = {**on_every_cluster(*chosen), **of_operators(*chosen)}
    return kinds_and_names([obj for objects in topics.values() for obj in objects])


def built(folder: Path) -> list[Object]:
    """What `kubectl apply -k` applies: the resources that the kustomization lists, in files and in folders."""
    found: list[Object] = []
    for name in yaml.safe_load((folder / "kustomization.yaml").read_text())["resources"]:
        path = folder / name
        found += built(path) if path.is_dir() else yaml.safe_load_all(path.read_text())
    return found


def test_kustomizations_bring_monitoring() -> None:
    everywhere = wanted(MonitoringApis.NONE)
    assert everywhere.items() <= kinds_and_names(built(DEPLOY / "base")).items()
    monitored = kinds_and_names(built(DEPLOY / "openshift"))
    assert wanted(MonitoringApis.PROMETHEUS).items() <= monitored.items()
    assert (
        wanted(MonitoringApis.ALL).items()
        <= (monitored | kinds_and_names(built(DEPLOY / "monitoring" / "perses"))).items()
    )
    assert not {kind for kind, _ in everywhere} & {"PrometheusRule", "ServiceMonitor", "PersesDashboard"}


async def test_manifests_bring_monitoring(tmp_path: Path) -> None:
    for apis in MonitoringApis:
        ended = await steward("manifests", "--monitoring", apis, kubeconfig=tmp_path / "none")
        assert ended.code == 0, ended.stderr
        assert wanted(apis).items() <= kinds_and_names([*yaml.safe_load_all(ended.stdout)]).items()


async def test_manifests_pass_prometheus_and_runbooks(tmp_path: Path) -> None:
    chosen = ("--prometheus", "monitoring/prom", "--runbooks", "https://docs.example/%s")
    ended = await steward("manifests", "--monitoring", "prometheus", *chosen, kubeconfig=tmp_path / "none")
    found = [*yaml.safe_load_all(ended.stdout)]
    bound = [obj for obj in found if obj["kind"].endswith("Binding") and "metrics-" in obj["metadata"]["name"]]
    bound = [obj for obj in bound if obj["subjects"][0].get("name") == "prom"]
    assert {obj["kind"] for obj in bound} == {"ClusterRoleBinding", "RoleBinding"}
    assert all(obj["subjects"][0]["namespace"] == "monitoring" for obj in bound)
    assert "runbook_url: https://docs.example/AdvisorNotRunning\n" in ended.stdout
    assert "runbook_url: https://docs.example/VirtPlatformAutopilotSyncFailed\n" in ended.stdout


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        pytest.param(("--prometheus", "prometheus-k8s"), "--prometheus 'prometheus-k8s'", id="no namespace"),
        pytest.param(("--runbooks", ""), "--runbooks is empty", id="no runbooks"),
        pytest.param(("--for", "olm", "--monitoring", "all"), "OLM installs no objects of Perses", id="OLM and Perses"),
    ],
)
async def test_manifests_refuse_monitoring_that_cannot_be(tmp_path: Path, flags: tuple[str, ...], message: str) -> None:
    ended = await steward("manifests", *flags, "--into", str(tmp_path / "made"), kubeconfig=tmp_path / "none")
    assert ended.code != 0
    assert message in ended.stderr
    assert not (tmp_path / "made").exists()


def test_bundle_brings_monitoring() -> None:
    manifests = DEPLOY / "bundle" / "manifests"
    found = kinds_and_names([yaml.safe_load(path.read_text()) for path in sorted(manifests.iterdir())])
    for key, obj in wanted(MonitoringApis.PROMETHEUS).items():
        metadata = {name: value for name, value in obj["metadata"].items() if name != "namespace"}
        assert found[key] == {**obj, "metadata": metadata}
    [csv] = [obj for (kind, _), obj in found.items() if kind == "ClusterServiceVersion"]
    notes = csv["metadata"]["annotations"]
    assert notes["operatorframework.io/cluster-monitoring"] == "true"
    assert json.loads(notes["operatorframework.io/suggested-namespace-template"]) == namespace(Installation())


def test_bundle_can_do_without_prometheus_operator() -> None:
    made = files_of(PackageFormat.OLM, InstallOptions())
    assert "manifests/virt-steward-metrics.service.yaml" in made
    assert not [name for name in made if "prometheusrule" in name or "servicemonitor" in name]


def test_namespace_is_monitored_by_openshift() -> None:
    assert namespace(Installation("here"))["metadata"]["labels"]["openshift.io/cluster-monitoring"] == "true"


def test_prometheus_may_discover_and_scrape_and_nothing_else() -> None:
    found = wanted(MonitoringApis.NONE)
    rights = {key: obj for key, obj in found.items() if key[0].endswith(("Role", "Binding"))}
    rules = [rule for obj in rights.values() for rule in obj.get("rules", ())]
    assert {verb for rule in rules for verb in rule["verbs"]} == {"get", "list", "watch"}
    assert {one for rule in rules for one in rule.get("resources", rule.get("nonResourceURLs"))} == {
        "/metrics",
        "services",
        "endpoints",
        "pods",
        "endpointslices",
    }
    for obj in rights.values():
        if "roleRef" in obj:
            assert (obj["roleRef"]["kind"], obj["roleRef"]["name"]) in rights
            [subject] = obj["subjects"]
            assert Key(subject["namespace"], subject["name"]) == Key("openshift-monitoring", "prometheus-k8s")


@pytest.mark.parametrize("name", [*dashboards()])
def test_dashboards_show_the_same_in_grafana_and_perses(name: str) -> None:
    found = wanted(MonitoringApis.ALL)
    grafana = json.loads(found["ConfigMap", "virt-steward-dashboards"]["data"][f"virt-steward-{name}.json"])
    perses = found["PersesDashboard", f"virt-steward-{name}"]["spec"]
    assert grafana["title"] == perses["display"]["name"]
    charts = [panel for panel in grafana["panels"] if panel["type"] == "timeseries"]
    asked = [target["expr"] for panel in charts for target in panel["targets"]]
    queries = [
        query["spec"]["plugin"]["spec"] for panel in perses["panels"].values() for query in panel["spec"]["queries"]
    ]
    assert asked == [query["query"] for query in queries]
    assert {query["datasource"]["name"] for query in queries} == {
        name for kind, name in found if kind == "PersesDatasource"
    }
    shown = [item["content"]["$ref"] for layout in perses["layouts"] for item in layout["spec"]["items"]]
    assert shown == [f"#/spec/panels/{key}" for key in perses["panels"]]
    ends = [panel["gridPos"]["x"] + panel["gridPos"]["w"] for panel in grafana["panels"]]
    assert max(ends) <= WIDTH
    places = [(panel["gridPos"]["x"], panel["gridPos"]["y"]) for panel in grafana["panels"]]
    assert len({*places}) == len(places)


def test_keys_of_panels_are_unique() -> None:
    for dashboard in dashboards().values():
        keys = [panel.key for row in dashboard.rows for panel in row.panels]
        assert len({*keys}) == len(keys)
