"""What becomes of every asset, as `render` and the debug pages report it."""

from dataclasses import dataclass
from typing import Any

import msgspec
import pytest
import yaml

from tests.catalog.builders import DESCHEDULERS, TEMPLATE, a_context, an_asset, an_hco
from tests.controllers.autopilot.builders import an_observation, report
from virt_steward.catalog.asset import Asset
from virt_steward.cli.render import as_table
from virt_steward.controllers.autopilot.asset_report import AssetReport, AssetStatus, as_json, as_yaml
from virt_steward.controllers.autopilot.decide import is_requested
from virt_steward.controllers.autopilot.observation import AutopilotObservation

KEY = "platform.kubevirt.io/enable-fast"
ASKED = {"type": "annotation", "key": KEY, "value": "true"}
GPU = {"type": "hardware-detection", "detector": "gpuPresent"}
CORE = {"apiVersion": "v1", "kind": "ConfigMap", "plural": "configmaps", "name": "fast"}


@dataclass(frozen=True, slots=True)
class Serves:
    definitions: tuple[str, ...] = ("tunings.tuning.example", DESCHEDULERS)

    def serves(self, group: str, plural: str) -> bool:
        return f"{plural}.{group}" in self.definitions


def a_platform(scope: set[str] | None = None, served: Serves | None = None, **context: Any) -> AutopilotObservation:
    return an_observation(a_context(**context), served or Serves(), scope)


@pytest.mark.parametrize(
    ("asset", "platform"),
    [
        pytest.param(an_asset(), a_platform(), id="in-general"),
        pytest.param(an_asset(group="speed"), a_platform({"speed"}), id="in-a-listed-group"),
        pytest.param(an_asset(gate_crd=DESCHEDULERS), a_platform(), id="with-its-gate-installed"),
        pytest.param(
            an_asset(TEMPLATE.replace("tuning.example/v1", "v1").replace("Tuning", "ConfigMap"), object=CORE),
            a_platform(served=Serves(())),
            id="of-a-built-in-kind",
        ),
        pytest.param(
            an_asset(install="opt-in", conditions=[ASKED]),
            a_platform(hco=an_hco(annotations={KEY: "true"})),
            id="asked-for",
        ),
    ],
)
def test_report_includes_asset(asset: Asset, platform: AutopilotObservation) -> None:
    found = report(asset, platform)
    assert (found.status, found.reason) == (AssetStatus.INCLUDED, "")
    assert found.object is not None
    assert found.object["metadata"]["name"] == "fast"


@pytest.mark.parametrize(
    ("asset", "platform", "status", "reason", "details"),
    [
        pytest.param(an_asset(), a_platform({"slow"}), "FILTERED", "Not in the allow-list", {}, id="not-listed"),
        pytest.param(
            an_asset(),
            a_platform(served=Serves(())),
            "FILTERED",
            "CRD not installed",
            {"crd": "tunings.tuning.example"},
            id="whose-kind-is-not-installed",
        ),
        pytest.param(
            an_asset(gate_crd="others.other.example"),
            a_platform(),
            "FILTERED",
            "Gate CRD not installed",
            {"crd": "others.other.example"},
            id="whose-gate-is-not-installed",
        ),
        pytest.param(
            an_asset(conditions=[ASKED, GPU]),
            a_platform(),
            "EXCLUDED",
            "Conditions not met",
            {KEY: "expected=true, actual=absent"},
            id="with-an-unmet-condition-and-an-unknown-one",
        ),
        pytest.param(
            an_asset(conditions=[GPU]),
            a_platform(),
            "EXCLUDED",
            "Conditions not known",
            {"gpuPresent": "the nodes have not been read"},
            id="with-an-unknown-condition",
        ),
        pytest.param(
            an_asset(reads={"nodes": True}),
            a_platform(),
            "EXCLUDED",
            "Inputs not known",
            {"nodes": "not known here"},
            id="that-reads-what-is-not-known",
        ),
        pytest.param(
            an_asset(""), a_platform(), "EXCLUDED", "Conditional template rendered empty", {}, id="that-is-empty"
        ),
        pytest.param(
            an_asset("{{ gone }}"),
            a_platform(),
            "ERROR",
            "Render error: fast/object.yaml.j2 line 1: 'gone' is undefined",
            {},
            id="that-fails",
        ),
    ],
)
def test_report_gives_the_reason_that_an_asset_is_not_applied(
    asset: Asset, platform: AutopilotObservation, status: str, reason: str, details: dict[str, str]
) -> None:
    found = report(asset, platform)
    assert (found.status, found.reason, found.details, found.object) == (status, reason, details, None)


def test_first_objection_decides() -> None:
    hopeless = an_asset("{{ gone }}", conditions=[ASKED], gate_crd="others.other.example")
    nothing = Serves(())
    reasons = [
        report(hopeless, platform).reason
        for platform in (
            a_platform({"slow"}, nothing),
            a_platform(None, nothing),
            a_platform(None, Serves(("tunings.tuning.example",))),
            a_platform(None, Serves(("tunings.tuning.example", "others.other.example"))),
        )
    ]
    assert reasons == ["Not in the allow-list", "CRD not installed", "Gate CRD not installed", "Conditions not met"]


@pytest.mark.parametrize(
    ("asset", "platform", "asked"),
    [
        pytest.param(an_asset(), a_platform({"fast"}), True, id="named-in-the-allow-list"),
        pytest.param(an_asset(), a_platform(), True, id="always-on"),
        pytest.param(an_asset(), a_platform({"slow"}), False, id="always-on-and-not-in-the-allow-list"),
        pytest.param(
            an_asset(conditions=[ASKED]), a_platform(hco=an_hco(annotations={KEY: "true"})), True, id="by-its-key"
        ),
        pytest.param(an_asset(conditions=[ASKED]), a_platform(), False, id="without-its-key"),
        pytest.param(an_asset(conditions=[GPU]), a_platform(), False, id="by-hardware"),
    ],
)
def test_is_requested_by_name_or_by_key(asset: Asset, platform: AutopilotObservation, asked: bool) -> None:
    assert is_requested(asset, platform) is asked


def the_report() -> tuple[AssetReport, ...]:
    slow = an_asset(name="slow", conditions=[ASKED])
    broken = an_asset("{{ gone }}", name="broken")
    return tuple(report(asset, a_platform()) for asset in (an_asset(), slow, broken))


def test_as_yaml_writes_a_document_with_comments_per_asset() -> None:
    text = as_yaml(the_report())
    assert [document and document["kind"] for document in yaml.safe_load_all(text)] == ["Tuning", None, None]
    assert "# Asset: slow\n# Path: slow/object.yaml.j2\n# Component: Tuning\n# Status: EXCLUDED\n" in text
    assert f"# Reason: Conditions not met\n# {KEY}: expected=true, actual=absent\n" in text


def test_as_json_writes_a_record_per_asset() -> None:
    records = msgspec.json.decode(as_json(the_report()))
    assert [record["status"] for record in records] == ["INCLUDED", "EXCLUDED", "ERROR"]
    assert records[0].keys() == {"asset", "path", "component", "status", "object"}
    assert records[1]["details"] == {KEY: "expected=true, actual=absent"}


def test_as_table_has_columns_and_a_summary() -> None:
    assert as_table(the_report()).splitlines() == [
        "ASSET   STATUS    COMPONENT  REASON",
        "fast    INCLUDED  Tuning",
        "slow    EXCLUDED  Tuning     Conditions not met",
        "broken  ERROR     Tuning     Render error: broken/object.yaml.j2 line 1: 'gone' is undefined",
        "",
        "Summary: 1 included, 1 excluded, 0 filtered, 1 errors",
    ]
