"""The KubeDescheduler follows the release that is installed, and the HyperConverged's limits."""

from typing import Any

import pytest

from tests.assets.contexts import Cluster, rendered
from virt_steward_demo.simulation.kinds.descheduler import kube_descheduler

CRD = "kubedeschedulers.operator.openshift.io"
RECORD = "descheduler:node:linear_amplified_ideal_point_positive_distance:k3:avg1m"


def the_spec(release: str = "v532", **cluster: Any) -> dict[str, Any]:
    definitions = {CRD: kube_descheduler(release).definition()}
    return dict(rendered("descheduler-loadaware", Cluster(definitions=definitions, **cluster))["spec"])


def rules(*some: dict[str, str]) -> dict[str, Any]:
    return {"descheduler-rules": {"spec": {"groups": [{"name": "none"}, {"name": "descheduler", "rules": list(some)}]}}}


@pytest.mark.parametrize(
    ("release", "profile", "customizations", "limits"),
    [
        pytest.param("v510", "LongLifecycle", {"devEnableEvictionsInBackground": True}, {"total": 5}, id="v510"),
        pytest.param("v514", "DevKubeVirtRelieveAndMigrate", None, {"total": 5}, id="v514"),
        pytest.param("v521", "DevKubeVirtRelieveAndMigrate", None, {"total": 5}, id="v521"),
        pytest.param("v532", "KubeVirtRelieveAndMigrate", None, {"total": 5, "node": 2}, id="v532"),
    ],
)
def test_the_descheduler_gets_what_its_release_knows_in(
    release: str, profile: str, customizations: dict[str, bool] | None, limits: dict[str, int]
) -> None:
    assert the_spec(release) == {
        "managementState": "Managed",
        "mode": "Automatic",
        "deschedulingIntervalSeconds": 60,
        "profiles": [profile],
        **({"profileCustomizations": customizations} if customizations else {}),
        "evictionLimits": limits,
    }


@pytest.mark.parametrize(
    ("objects", "load"),
    [
        pytest.param({}, None, id="its-default-without-rules"),
        pytest.param(rules({"record": "another", "expr": "1"}), "PrometheusCPUCombined", id="cpu-with-other-rules"),
        pytest.param(
            rules({"alert": "one", "expr": "1"}, {"record": RECORD, "expr": "1"}),
            "PrometheusCPUMemoryCombinedProfile",
            id="cpu-and-memory-with-the-rule-for-both",
        ),
    ],
)
def test_load_is(objects: dict[str, Any], load: str | None) -> None:
    customizations = the_spec(objects=objects).get("profileCustomizations", {})
    assert customizations.get("devActualUtilizationProfile") == load


def test_a_release_that_cannot_measure_load_is_not_told_how() -> None:
    spec = the_spec("v510", objects=rules({"record": RECORD, "expr": "1"}))
    assert spec["profileCustomizations"] == {"devEnableEvictionsInBackground": True}


@pytest.mark.parametrize(
    "section",
    [
        pytest.param(lambda limits: {"virtualization": {"liveMigrationConfig": limits}}, id="v1"),
        pytest.param(lambda limits: {"liveMigrationConfig": limits}, id="v1beta1"),
    ],
)
def test_no_more_is_evicted_at_once_than_may_migrate_by_the_hco_in(section: Any) -> None:
    limits = {"parallelMigrationsPerCluster": 9, "parallelOutboundMigrationsPerNode": 3}
    assert the_spec(spec=section(limits))["evictionLimits"] == {"total": 9, "node": 3}
