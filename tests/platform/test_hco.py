from typing import Any

import pytest

from tests.catalog.builders import an_hco
from virt_steward.objects.paths import Pointer
from virt_steward.platform.hco import Hco, LiveMigration

LIMITS = {"parallelMigrationsPerCluster": 7, "parallelOutboundMigrationsPerNode": 3}
KSM = {"nodeLabelSelector": {"matchLabels": {"ksm": "on"}}}


def a_v1(**spec: Any) -> Hco:
    return an_hco(version="v1", **spec)


def a_v1beta1(**spec: Any) -> Hco:
    return an_hco(version="v1beta1", **spec)


@pytest.mark.parametrize(
    ("hco", "expected"),
    [
        pytest.param(a_v1(virtualization={"liveMigrationConfig": LIMITS}), LiveMigration(7, 3), id="v1"),
        pytest.param(a_v1beta1(liveMigrationConfig=LIMITS), LiveMigration(7, 3), id="v1beta1"),
        pytest.param(a_v1(), LiveMigration(5, 2), id="defaults-if-it-gives-none"),
        pytest.param(
            a_v1beta1(liveMigrationConfig={"parallelMigrationsPerCluster": 9}), LiveMigration(9, 2), id="one-of-two"
        ),
        pytest.param(a_v1(virtualization={"liveMigrationConfig": None}), LiveMigration(5, 2), id="null"),
        pytest.param(a_v1(virtualization={"liveMigrationConfig": "fast"}), LiveMigration(5, 2), id="nonsense"),
    ],
)
def test_live_migration_limits_are_read(hco: Hco, expected: LiveMigration) -> None:
    assert hco.live_migration == expected


@pytest.mark.parametrize("path", ["/spec/ksmConfiguration", "/spec/virtualization/ksmConfiguration"])
@pytest.mark.parametrize(
    "hco",
    [
        pytest.param(a_v1(virtualization={"ksmConfiguration": KSM}), id="in-v1"),
        pytest.param(a_v1beta1(ksmConfiguration=KSM), id="in-v1beta1"),
    ],
)
def test_hco_value_is_found_in_either_layout(hco: Hco, path: str) -> None:
    assert hco.value(Pointer.parse(path)) == KSM


def test_hco_value_null_is_absent() -> None:
    assert a_v1beta1(ksmConfiguration=None).value(Pointer.parse("/spec/ksmConfiguration"), "none") == "none"


def test_hco_value_of_a_whole_section() -> None:
    assert a_v1(deployment={"a": 1}).value(Pointer.parse("/spec/deployment")) == {"a": 1}


@pytest.mark.parametrize(
    ("hco", "enabled"),
    [
        pytest.param(a_v1(featureGates=[{"name": "CPUManager", "state": "Enabled"}]), True, id="on-in-v1"),
        pytest.param(a_v1(featureGates=[{"name": "CPUManager"}]), True, id="listed-in-v1"),
        pytest.param(a_v1(featureGates=[{"name": "cpuManager"}]), True, id="on-in-other-case"),
        pytest.param(a_v1(featureGates=[{"name": "CPUManager", "state": "Disabled"}]), False, id="off-in-v1"),
        pytest.param(a_v1(featureGates=[{"name": "other"}]), False, id="not-listed-in-v1"),
        pytest.param(a_v1beta1(featureGates={"cpuManager": True}), True, id="on-in-v1beta1"),
        pytest.param(a_v1beta1(featureGates={"cpuManager": False}), False, id="off-in-v1beta1"),
        pytest.param(a_v1beta1(featureGates={"cpuManager": None}), False, id="null-in-v1beta1"),
        pytest.param(a_v1(), False, id="absent"),
    ],
)
def test_has_feature_gate(hco: Hco, enabled: bool) -> None:
    assert hco.has_feature_gate("CPUManager") is enabled
