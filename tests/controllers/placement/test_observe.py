"""KubevirtConfigs as they are observed."""

from __future__ import annotations

import msgspec
import pytest

from virt_steward.controllers.placement.observe import KubevirtConfig


@pytest.mark.parametrize(
    ("annotations", "spec", "expected"),
    [
        pytest.param({}, {}, (False, True, 100), id="neither"),
        pytest.param({}, {"default": True, "schedulable": False, "weight": 7}, (True, False, 7), id="spec alone"),
        pytest.param(
            {"vitistack.io/default": "true", "vitistack.io/schedulable": "false", "vitistack.io/weight": "7"},
            {},
            (True, False, 7),
            id="annotations alone, as after the upstream CRD pruned the spec",
        ),
        pytest.param({"vitistack.io/schedulable": "true"}, {"schedulable": False}, (False, False, 100), id="cordoned"),
        pytest.param({"vitistack.io/weight": "1001"}, {"weight": 7}, (False, True, 7), id="a weight too large"),
        pytest.param({"vitistack.io/weight": "much"}, {"weight": 7}, (False, True, 7), id="a weight in words"),
    ],
)
def test_config_reads_annotations_and_spec(
    annotations: dict[str, str], spec: dict[str, object], expected: tuple[bool, bool, int]
) -> None:
    document = {"metadata": {"name": "east", "annotations": annotations}, "spec": spec}
    config = msgspec.convert(document, KubevirtConfig)
    assert (config.is_default, config.is_schedulable, config.weight) == expected
