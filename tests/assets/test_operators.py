"""What is set of other operators is what their definitions ask for, and no more."""

from typing import Any

import pytest

from tests.assets.contexts import Cluster, an_asset, rendered, rendering, stub
from virt_steward.catalog.render import RenderedNothing


@pytest.mark.parametrize(
    ("name", "spec"),
    [
        (
            "mtv-operator",
            {"feature_ui_plugin": "true", "feature_validation": "true", "feature_volume_populator": "true"},
        ),
        ("metallb-operator", {}),
        ("troubleshooting-panel-ui-plugin", {"type": "TroubleshootingPanel"}),
        (
            "observability-operator",
            {"type": "Monitoring", "monitoring": {"perses": {"enabled": True}, "incidents": {"enabled": True}}},
        ),
    ],
)
def test_the_spec_is_small_of(name: str, spec: dict[str, Any]) -> None:
    assert rendered(name, Cluster())["spec"] == spec


@pytest.mark.parametrize(
    ("fields", "switched_on"),
    [
        pytest.param(("perses", "incidents"), {"perses", "incidents"}, id="the-old-switch"),
        pytest.param(
            ("perses", "incidents", "clusterHealthAnalyzer"),
            {"perses", "incidents", "clusterHealthAnalyzer"},
            id="both",
        ),
        pytest.param(("perses", "clusterHealthAnalyzer"), {"perses", "clusterHealthAnalyzer"}, id="the-new-switch"),
        pytest.param(("acm", "incidents"), {"incidents"}, id="incidents-and-no-dashboards"),
    ],
)
def test_incidents_are_switched_on_where_the_console_has(fields: tuple[str, ...], switched_on: set[str]) -> None:
    spec = rendered("observability-operator", a_console_with(*fields))["spec"]
    assert spec["monitoring"] == {name: {"enabled": True} for name in switched_on}


def test_a_console_without_dashboards_is_not_told_to_show_them() -> None:
    assert rendered("observability-operator", a_console_with("acm"))["spec"] == {"type": "Monitoring"}


@pytest.mark.parametrize("name", ["observability-operator", "troubleshooting-panel-ui-plugin"])
def test_console_plugins_need_no_annotation(name: str) -> None:
    assert (an_asset(name).install, an_asset(name).conditions) == ("always", ())


def a_console_with(*fields: str) -> Cluster:
    """A cluster whose definition of console plugins has these parts of the monitoring plugin, and no others."""
    crd = stub("uiplugins.observability.openshift.io")
    schema = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    switch = {"type": "object", "properties": {"enabled": {"type": "boolean"}}}
    schema["properties"]["spec"]["properties"]["monitoring"]["properties"] = dict.fromkeys(fields, switch)
    return Cluster(definitions={crd["metadata"]["name"]: crd})


def a_kubevirt_with(*fields: str) -> Cluster:
    """A cluster whose migration policies have these fields and no others."""
    crd = stub("migrationpolicies.migrations.kubevirt.io")
    properties = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]
    for field in properties.keys() - set(fields):
        del properties[field]
    return Cluster(definitions={crd["metadata"]["name"]: crd})


def test_stun_time_is_limited_where_kubevirt_can() -> None:
    limit = {"selectors": {}, "maxDowntimeMs": 1050}
    assert rendered("stun-time", Cluster())["spec"] == limit | {"experimental": {"downtimeTuning": {}}}
    assert rendered("stun-time", a_kubevirt_with("selectors", "maxDowntimeMs"))["spec"] == limit
    assert rendering("stun-time", a_kubevirt_with("selectors", "experimental")) == RenderedNothing()


@pytest.mark.parametrize(
    "spec",
    [
        pytest.param({"deployment": {"applicationAwareConfig": {"enable": True}}}, id="v1"),
        pytest.param({"enableApplicationAwareQuota": True}, id="v1beta1"),
    ],
)
def test_quotas_that_the_hco_has_started_are_not_started_again_in(spec: dict[str, Any]) -> None:
    assert rendering("aaq-operator", Cluster(spec=spec)) == RenderedNothing()


@pytest.mark.parametrize(
    "spec",
    [
        pytest.param({"deployment": {"applicationAwareConfig": {"enable": False}}}, id="v1"),
        pytest.param({"enableApplicationAwareQuota": False}, id="v1beta1"),
        pytest.param({}, id="an-empty-one"),
    ],
)
def test_quotas_are_started_that_the_hco_has_not_started_in(spec: dict[str, Any]) -> None:
    made = rendered("aaq-operator", Cluster(spec=spec))
    assert made["spec"]["configuration"]["vmiCalculatorConfiguration"]["configName"] == "DedicatedVirtualResources"
