"""What is set of other operators is what their definitions ask for, and no more."""

from typing import Any

import pytest

from tests.assets.contexts import Cluster, rendered, rendering, stub
from virt_steward.catalog.render import Empty

INCIDENTS = Cluster({"enable-incident-detection": "true"})


@pytest.mark.parametrize(
    ("name", "spec"),
    [
        (
            "mtv-operator",
            {"feature_ui_plugin": "true", "feature_validation": "true", "feature_volume_populator": "true"},
        ),
        ("metallb-operator", {}),
        ("troubleshooting-panel-ui-plugin", {"type": "TroubleshootingPanel"}),
        ("observability-operator", {"type": "Monitoring", "monitoring": {"perses": {"enabled": True}}}),
    ],
)
def test_the_spec_is_small_of(name: str, spec: dict[str, Any]) -> None:
    assert rendered(name, Cluster())["spec"] == spec


@pytest.mark.parametrize(
    ("fields", "switched_on"),
    [
        pytest.param(("incidents",), {"incidents"}, id="the-old-switch"),
        pytest.param(("incidents", "clusterHealthAnalyzer"), {"incidents", "clusterHealthAnalyzer"}, id="both"),
        pytest.param(("clusterHealthAnalyzer",), {"clusterHealthAnalyzer"}, id="the-new-switch"),
    ],
)
def test_incidents_are_switched_on_where_the_console_has(fields: tuple[str, ...], switched_on: set[str]) -> None:
    crd = stub("uiplugins.observability.openshift.io")
    schema = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    switch = {"type": "object", "properties": {"enabled": {"type": "boolean"}}}
    schema["properties"]["spec"]["properties"]["monitoring"]["properties"] = dict.fromkeys(("perses", *fields), switch)
    cluster = Cluster(INCIDENTS.annotations, definitions={crd["metadata"]["name"]: crd})
    assert rendered("observability-operator", cluster)["spec"]["monitoring"] == {
        name: {"enabled": True} for name in ("perses", *switched_on)
    }


@pytest.mark.parametrize(
    "spec",
    [
        pytest.param({"deployment": {"applicationAwareConfig": {"enable": True}}}, id="v1"),
        pytest.param({"enableApplicationAwareQuota": True}, id="v1beta1"),
    ],
)
def test_quotas_that_the_hco_has_started_are_not_started_again_in(spec: dict[str, Any]) -> None:
    assert rendering("aaq-operator", Cluster(spec=spec)) == Empty()


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
