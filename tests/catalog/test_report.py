from dataclasses import dataclass
from typing import Any

import msgspec
import pytest
import yaml

from tests.catalog.builders import DESCHEDULERS, TEMPLATE, a_context, an_asset, an_hco
from virt_steward.catalog.asset import Asset
from virt_steward.catalog.load import Catalog
from virt_steward.catalog.printed import as_json, as_table, as_yaml
from virt_steward.catalog.render import Renderer
from virt_steward.catalog.report import AssetInputs, AssetReport, AssetStatus, asked_for, line_of

KEY = "platform.kubevirt.io/enable-fast"
ASKED = {"type": "annotation", "key": KEY, "value": "true"}
GPU = {"type": "hardware-detection", "detector": "gpuPresent"}
CORE = {"apiVersion": "v1", "kind": "ConfigMap", "plural": "configmaps", "name": "fast"}


@dataclass(frozen=True, slots=True)
class Serves:
    definitions: tuple[str, ...] = ("tunings.tuning.example", DESCHEDULERS)

    def serves(self, group: str, plural: str) -> bool:
        return f"{plural}.{group}" in self.definitions


def a_look(scope: set[str] | None = None, served: Serves | None = None, **context: Any) -> AssetInputs:
    return AssetInputs(a_context(**context), scope, served or Serves())


def line(asset: Asset, look: AssetInputs) -> AssetReport:
    return line_of(asset, Renderer(Catalog((asset,))), look)


@pytest.mark.parametrize(
    ("asset", "look"),
    [
        pytest.param(an_asset(), a_look(), id="in-general"),
        pytest.param(an_asset(group="speed"), a_look({"speed"}), id="in-a-listed-group"),
        pytest.param(an_asset(gate_crd=DESCHEDULERS), a_look(), id="with-its-gate-installed"),
        pytest.param(
            an_asset(TEMPLATE.replace("tuning.example/v1", "v1").replace("Tuning", "ConfigMap"), object=CORE),
            a_look(served=Serves(())),
            id="of-a-built-in-kind",
        ),
        pytest.param(
            an_asset(install="opt-in", conditions=[ASKED]),
            a_look(hco=an_hco(annotations={KEY: "true"})),
            id="asked-for",
        ),
    ],
)
def test_an_asset_is_included(asset: Asset, look: AssetInputs) -> None:
    found = line(asset, look)
    assert (found.status, found.reason) == (AssetStatus.INCLUDED, "")
    assert found.object is not None
    assert found.object["metadata"]["name"] == "fast"


@pytest.mark.parametrize(
    ("asset", "look", "status", "reason", "details"),
    [
        pytest.param(an_asset(), a_look({"slow"}), "FILTERED", "Not in the allow-list", {}, id="not-listed"),
        pytest.param(
            an_asset(),
            a_look(served=Serves(())),
            "FILTERED",
            "CRD not installed",
            {"crd": "tunings.tuning.example"},
            id="whose-kind-is-not-installed",
        ),
        pytest.param(
            an_asset(gate_crd="others.other.example"),
            a_look(),
            "FILTERED",
            "Gate CRD not installed",
            {"crd": "others.other.example"},
            id="whose-gate-is-not-installed",
        ),
        pytest.param(
            an_asset(install="opt-in"),
            a_look(),
            "EXCLUDED",
            "Conditions not met",
            {"install": "opt-in, and nothing to opt in by"},
            id="that-is-opt-in-without-conditions",
        ),
        pytest.param(
            an_asset(conditions=[ASKED, GPU]),
            a_look(),
            "EXCLUDED",
            "Conditions not met",
            {KEY: "expected=true, actual=absent"},
            id="with-an-unmet-condition-and-an-unknown-one",
        ),
        pytest.param(
            an_asset(conditions=[GPU]),
            a_look(),
            "EXCLUDED",
            "Conditions not known",
            {"gpuPresent": "the nodes are not known"},
            id="with-an-unknown-condition",
        ),
        pytest.param(
            an_asset(reads={"nodes": True}),
            a_look(),
            "EXCLUDED",
            "Inputs not known",
            {"nodes": "not known here"},
            id="that-reads-what-is-not-known",
        ),
        pytest.param(an_asset(""), a_look(), "EXCLUDED", "Conditional template rendered empty", {}, id="that-is-empty"),
        pytest.param(
            an_asset("{{ gone }}"),
            a_look(),
            "ERROR",
            "Render error: fast/object.yaml.j2 line 1: 'gone' is undefined",
            {},
            id="that-fails",
        ),
    ],
)
def test_an_asset_is_left_out(
    asset: Asset, look: AssetInputs, status: str, reason: str, details: dict[str, str]
) -> None:
    found = line(asset, look)
    assert (found.status, found.reason, found.details, found.object) == (status, reason, details, None)


def test_filters_are_asked_in_their_order() -> None:
    hopeless = an_asset("{{ gone }}", install="opt-in", gate_crd="others.other.example")
    nothing = Serves(())
    reasons = [
        line(hopeless, look).reason
        for look in (
            a_look({"slow"}, nothing),
            a_look(None, nothing),
            a_look(None, Serves(("tunings.tuning.example",))),
            a_look(None, Serves(("tunings.tuning.example", "others.other.example"))),
        )
    ]
    assert reasons == ["Not in the allow-list", "CRD not installed", "Gate CRD not installed", "Conditions not met"]


@pytest.mark.parametrize(
    ("asset", "look", "asked"),
    [
        pytest.param(an_asset(), a_look({"fast"}), True, id="named-in-the-allow-list"),
        pytest.param(an_asset(), a_look(), False, id="merely-always-on"),
        pytest.param(
            an_asset(conditions=[ASKED]), a_look(hco=an_hco(annotations={KEY: "true"})), True, id="by-its-key"
        ),
        pytest.param(an_asset(conditions=[ASKED]), a_look(), False, id="without-its-key"),
        pytest.param(an_asset(conditions=[GPU]), a_look(), False, id="by-hardware"),
    ],
)
def test_somebody_asks_for_an_asset(asset: Asset, look: AssetInputs, asked: bool) -> None:
    assert asked_for(asset, look) is asked


def the_report() -> tuple[AssetReport, ...]:
    slow = an_asset(name="slow", conditions=[ASKED])
    broken = an_asset("{{ gone }}", name="broken")
    return tuple(line(asset, a_look()) for asset in (an_asset(), slow, broken))


def test_as_yaml_every_asset_is_a_document_with_comments_that_kubectl_skips() -> None:
    text = as_yaml(the_report())
    assert [document and document["kind"] for document in yaml.safe_load_all(text)] == ["Tuning", None, None]
    assert "# Asset: slow\n# Path: slow/object.yaml.j2\n# Component: Tuning\n# Status: EXCLUDED\n" in text
    assert f"# Reason: Conditions not met\n# {KEY}: expected=true, actual=absent\n" in text


def test_as_json_every_asset_is_a_record() -> None:
    records = msgspec.json.decode(as_json(the_report()))
    assert [record["status"] for record in records] == ["INCLUDED", "EXCLUDED", "ERROR"]
    assert records[0].keys() == {"asset", "path", "component", "status", "object"}
    assert records[1]["details"] == {KEY: "expected=true, actual=absent"}


def test_the_table_has_columns_and_a_summary() -> None:
    assert as_table(the_report()).splitlines() == [
        "ASSET                          STATUS          COMPONENT            REASON",
        "fast                           INCLUDED        Tuning",
        "slow                           EXCLUDED        Tuning               Conditions not met",
        "broken                         ERROR           Tuning               Render error: broken/object.yaml.j…",
        "",
        "Summary: 1 included, 1 excluded, 0 filtered, 1 errors",
    ]
