"""Options of a profile in words."""

from typing import Any

import pytest

from virt_steward.apis.profiles import (
    EXAMPLE,
    HIGHER_DENSITY,
    LOAD_AWARE,
    HigherDensityOptions,
    KsmConfiguration,
    LoadAwareOptions,
    ProfileOptions,
)
from virt_steward.cli.profile_options import set_options
from virt_steward.settings import BadSetting

NONE = ProfileOptions()
NUMBER = "deschedulingIntervalSeconds must be a whole number from 60 to 86400, not "
CHOICE = "mode must be Automatic or Predictive, not automatic"
TRUTH = "enablePSIMetrics must be true or false, not maybe"


@pytest.mark.parametrize(
    ("sets", "expected"),
    [
        pytest.param(["deschedulingIntervalSeconds=120"], {"descheduling_interval_seconds": 120}, id="a number"),
        pytest.param(
            ["loadAware.deschedulingIntervalSeconds=120"], {"descheduling_interval_seconds": 120}, id="in full"
        ),
        pytest.param(["enablePSIMetrics=false"], {"enable_psi_metrics": False}, id="a truth"),
        pytest.param(["mode=Predictive"], {"mode": "Predictive"}, id="a choice"),
        pytest.param(
            ["mode=Predictive", "evictionLimitTotal=3", "mode=Automatic"],
            {"eviction_limit_total": 3},
            id="several, of which the last counts",
        ),
    ],
)
def test_an_option_is_set_by(sets: list[str], expected: dict[str, Any]) -> None:
    assert set_options(LOAD_AWARE, sets, NONE) == ProfileOptions(load_aware=LoadAwareOptions(**expected))


def test_other_options_stay_as_they_are() -> None:
    before = ProfileOptions(load_aware=LoadAwareOptions(mode="Predictive", enable_psi_metrics=False))
    after = set_options(LOAD_AWARE, ["deschedulingIntervalSeconds=90"], before).load_aware
    assert after == LoadAwareOptions(mode="Predictive", enable_psi_metrics=False, descheduling_interval_seconds=90)


def test_an_option_may_be_deep_or_an_object_in_json() -> None:
    plain = set_options(HIGHER_DENSITY, ["ksmConfiguration.enabled=false"], NONE)
    assert plain.virt_higher_density == HigherDensityOptions(ksm_configuration=KsmConfiguration(enabled=False))
    labels = '{"matchLabels":{"kubernetes.io/arch":"amd64"}}'
    found = set_options(HIGHER_DENSITY, [f"ksmConfiguration.nodeLabelSelector={labels}"], NONE).virt_higher_density
    assert found is not None
    assert found.ksm_configuration is not None
    assert found.ksm_configuration.node_label_selector is not None
    assert found.ksm_configuration.node_label_selector.match_labels == {"kubernetes.io/arch": "amd64"}


@pytest.mark.parametrize(
    ("profile", "text", "complaint"),
    [
        pytest.param(LOAD_AWARE, "mode", "write NAME=VALUE, such as loadAware.desched", id="without a value"),
        pytest.param(LOAD_AWARE, "=5", "write NAME=VALUE", id="without a name"),
        pytest.param(LOAD_AWARE, "enablePSImetrics=true", "there is no option 'enablePSImetrics'", id="misspelt"),
        pytest.param(LOAD_AWARE, "virtHigherDensity.enableSwap=true", "there is no option", id="of another profile"),
        pytest.param(LOAD_AWARE, "mode.deep=1", "'deep' in mode; there are: nothing", id="below a single value"),
        pytest.param(
            LOAD_AWARE,
            "deschedulingIntervalSeconds=soon",
            NUMBER,
            id="that is no number",
        ),
        pytest.param(
            LOAD_AWARE,
            "deschedulingIntervalSeconds=59",
            NUMBER,
            id="too small",
        ),
        pytest.param(LOAD_AWARE, "deschedulingIntervalSeconds=86401", NUMBER, id="too large"),
        pytest.param(LOAD_AWARE, "mode=automatic", CHOICE, id="that is no choice"),
        pytest.param(
            LOAD_AWARE,
            "enablePSIMetrics=maybe",
            "enablePSIMetrics must be true or false, not maybe",
            id="that is no truth",
        ),
        pytest.param(HIGHER_DENSITY, "enableSwap=false", "requires enableSwap=true", id="that contradicts another"),
        pytest.param(EXAMPLE, "colour=red", "example-profile has no options", id="of a profile without any"),
    ],
)
def test_an_option_is_refused(profile: str, text: str, complaint: str) -> None:
    with pytest.raises(BadSetting) as refused:
        set_options(profile, [text], NONE)
    assert str(refused.value).startswith(f"--set {text}: ")
    assert complaint in str(refused.value)


def test_contradiction_is_the_message_of_the_crd() -> None:
    [rule] = [made.extra_json_schema["x-kubernetes-validations"][0] for made in HigherDensityOptions.rules]
    contradictory = ProfileOptions(virt_higher_density=HigherDensityOptions(enable_swap=False))
    assert contradictory.contradiction() == rule["message"]
