from tests.catalog.builders import an_asset
from virt_steward.catalog.asset import FeatureSummary, Install, features


def test_features_sum_up_their_assets() -> None:
    key = "platform.kubevirt.io/enable-logging"
    asked = {"type": "annotation", "key": key, "value": "true"}
    gate = {"type": "feature-gate", "value": "CPUManager"}
    unset = {"type": "hco-field-unconfigured", "path": "/spec/virtualization/ksmConfiguration"}
    shape = {"type": "topology", "field": "isHCP"}
    found = features(
        (
            an_asset(name="a", feature={"name": "Swap", "maturity": "GA"}),
            an_asset(
                name="b",
                feature={"name": "Logging", "maturity": "TP", "requires": ["Loki"]},
                install="opt-in",
                conditions=[asked, shape],
            ),
            an_asset(
                name="c",
                feature={"name": "Logging", "maturity": "DP", "requires": ["Loki", "Logging"]},
                install="opt-in",
                conditions=[asked, gate, unset],
            ),
            an_asset(name="d", feature={"name": "Audit", "maturity": "GA"}, conditions=[asked]),
            an_asset(name="e"),
        )
    )
    assert found == (
        FeatureSummary("Audit", "GA", Install.ALWAYS, (), (), ("d",)),
        FeatureSummary("Swap", "GA", Install.ALWAYS, (), (), ("a",)),
        FeatureSummary(
            "Logging",
            "DP",
            Install.OPT_IN,
            (f"{key}=true", "featureGate:CPUManager", "hcoUnconfigured:spec.virtualization.ksmConfiguration"),
            ("Loki", "Logging"),
            ("b", "c"),
        ),
    )
