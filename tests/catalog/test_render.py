from typing import Any

import pytest

from tests.catalog.builders import TEMPLATE, TUNING, a_context, an_asset, an_hco, rendering
from virt_steward.catalog.render import Rendered, RenderedNothing, RenderFailed
from virt_steward.objects.identity import Key, Kind, Ref
from virt_steward.objects.paths import Pointer
from virt_steward.objects.schemafacts import SchemaFacts
from virt_steward.platform.nodes import Hardware, Nodes
from virt_steward.platform.topology import Topology

SPEC = TEMPLATE + "spec:\n"
RULES = {"apiVersion": "v1", "kind": "ConfigMap", "plural": "configmaps", "name": "rules", "namespace": "here"}
THE_RULES = Ref(Kind("", "ConfigMap"), Key("here", "rules"))


def rendered(*args: Any, **kwargs: Any) -> dict[str, Any]:
    outcome = rendering(*args, **kwargs)
    assert isinstance(outcome, Rendered), outcome
    return outcome.object


def why(*args: Any, **kwargs: Any) -> str:
    outcome = rendering(*args, **kwargs)
    assert isinstance(outcome, RenderFailed), outcome
    return outcome.why


def test_render_adds_managed_by_label() -> None:
    template = TEMPLATE + "  labels: {app: fast}\n"
    assert rendered(an_asset(template))["metadata"]["labels"] == {
        "app": "fast",
        "platform.kubevirt.io/managed-by": "virt-platform-autopilot",
    }


def test_render_of_nothing_is_empty() -> None:
    assert rendering(an_asset("{% if false %}\nkind: Tuning\n{% endif %}\n")) == RenderedNothing()


def test_render_names_what_is_not_configured() -> None:
    template = SPEC + "  class: {{ fail('NoDefaultStorageClass', 'there is no default StorageClass') }}\n"
    found = rendering(an_asset(template))
    assert isinstance(found, RenderFailed)
    assert found.code == "NoDefaultStorageClass"
    assert found.why.endswith("NoDefaultStorageClass: there is no default StorageClass")


def test_render_keeps_last_newline_of_a_block() -> None:
    assert rendered(an_asset(SPEC + "  text: |\n    one\n    two\n"))["spec"]["text"] == "one\ntwo\n"


def test_render_keeps_dates_as_text() -> None:
    assert rendered(an_asset(SPEC + "  since: 2024-10-01\n"))["spec"]["since"] == "2024-10-01"


@pytest.mark.parametrize(
    ("wrong", "named"),
    [
        pytest.param(TEMPLATE.replace("fast", "slow"), "name 'slow'", id="name"),
        pytest.param(TEMPLATE.replace("Tuning", "Role"), "kind 'Role'", id="kind"),
        pytest.param(TEMPLATE.replace("example/v1", "example/v2"), "apiVersion 'tuning.example/v2'", id="version"),
        pytest.param(TEMPLATE + "  namespace: kube-system\n", "namespace 'kube-system'", id="namespace"),
    ],
)
def test_render_refuses_undeclared_object(wrong: str, named: str) -> None:
    assert named in why(an_asset(wrong))


@pytest.mark.parametrize(
    "template",
    [
        pytest.param("just text\n", id="text"),
        pytest.param("- a\n- list\n", id="a-list"),
        pytest.param("kind: Tuning\nmetadata: none\n", id="metadata-that-is-none"),
        pytest.param(f"{TEMPLATE}---\n{TEMPLATE}", id="two-documents"),
        pytest.param("a: &a [1]\nb: *a\n", id="aliases"),
        pytest.param("a: [\n", id="broken-yaml"),
        pytest.param("[" * 2000, id="very-deep-yaml"),
    ],
)
def test_render_fails_for_bad_output(template: str) -> None:
    assert why(an_asset(template)).startswith("fast/object.yaml.j2")


@pytest.mark.parametrize(
    "expression",
    [
        pytest.param("{{ nodes.total | to_json }}", id="nodes"),
        pytest.param("{{ hardware.pci | to_json }}", id="hardware"),
        pytest.param("{{ topology.platform | to_json }}", id="the-topology"),
        pytest.param("{{ hco.name | to_json }}", id="the-hco"),
        pytest.param("{{ images['exporter'] | to_json }}", id="an-image"),
        pytest.param("{{ objects.rules | to_json }}", id="an-object"),
        pytest.param("{{ schemas.descheduler.has('/spec') | to_json }}", id="a-schema"),
        pytest.param("{{ params.level | to_json }}", id="a-parameter"),
        pytest.param("{{ file('tune.sh') | to_json }}", id="a-file"),
        pytest.param("{% include 'other' %}", id="another-template"),
    ],
)
def test_template_reads_only_what_is_declared(expression: str) -> None:
    everything = a_context(
        nodes=Nodes(1), hardware=Hardware(), topology=Topology(), images={"exporter": "image"}, objects={THE_RULES: {}}
    )
    assert "fast/object.yaml.j2 line 6: " in why(an_asset(f"{SPEC}  a: {expression}\n"), everything)


@pytest.mark.parametrize(
    ("reads", "expression", "named"),
    [
        pytest.param({"hco": ["/spec/a"]}, "hco.value('/spec/b')", "/spec/b", id="another-field-of-the-hco"),
        pytest.param({"hco": ["/spec/a/b"]}, "hco.value('/spec/a')", "/spec/a", id="more-of-a-field"),
        pytest.param({"hco": []}, "hco.live_migration", "liveMigration", id="live-migration"),
        pytest.param({"hco": []}, "hco.value('spec')", "no JSON pointer", id="what-is-no-pointer"),
        pytest.param({"images": ["a"]}, "images['a']", "no attribute 'a'", id="an-image-that-is-not-given"),
        pytest.param(
            {"schemas": {"d": {"crd": "d.e", "paths": ["/spec/a"]}}},
            "schemas.d.has('/spec/b')",
            "/spec/b of d.e",
            id="another-field-of-a-schema",
        ),
    ],
)
def test_template_reads_only_declared_paths(reads: dict[str, Any], expression: str, named: str) -> None:
    context = a_context(schemas={"d.e": SchemaFacts({})})
    assert named in why(an_asset(f"{SPEC}  a: {{{{ {expression} }}}}\n", reads=reads), context)


def test_template_reads_declared_paths_of_an_object() -> None:
    asset = an_asset(
        f"{SPEC}  seen: {{{{ objects.rules | to_json }}}}\n",
        reads={"objects": {"rules": {**RULES, "paths": ["/data/a"]}}},
    )
    context = a_context(objects={THE_RULES: {"data": {"a": "one", "b": "two"}}})
    assert rendered(asset, context)["spec"]["seen"] == {"data": {"a": "one"}}


def test_template_reads_none_for_missing_object() -> None:
    template = f"{SPEC}  absent: {{{{ (objects.rules is none) | to_json }}}}\n"
    asset = an_asset(template, reads={"objects": {"rules": {**RULES, "paths": []}}})
    assert rendered(asset, a_context(objects={THE_RULES: None}))["spec"] == {"absent": True}


def test_template_reads_only_our_annotations() -> None:
    hco = an_hco(annotations={"platform.kubevirt.io/enable-x": "true", "secret.example/token": "abc"})
    template = SPEC + (
        "  all: {{ hco.annotations | to_json }}\n"
        "  x: {{ hco.is_true('platform.kubevirt.io/enable-x') | to_json }}\n"
        "  token: {{ hco.annotation('secret.example/token', 'none') | text }}\n"
    )
    assert rendered(an_asset(template, reads={"hco": []}), a_context(hco=hco))["spec"] == {
        "all": {"platform.kubevirt.io/enable-x": "true"},
        "x": True,
        "token": "none",
    }


def test_template_reads_fields_and_enums_of_a_schema() -> None:
    read = {"crd": "d.e", "paths": ["/spec/profiles", "/spec/mode"]}
    template = SPEC + (
        "  profiles: {{ schemas.d.enum('/spec/profiles') | to_json }}\n"
        "  mode: {{ schemas.d.has('/spec/mode') | to_json }}\n"
    )
    facts = SchemaFacts({Pointer(("spec", "profiles")): ("A", "B")})
    asset = an_asset(template, reads={"schemas": {"d": read}})
    assert rendered(asset, a_context(schemas={"d.e": facts}))["spec"] == {"profiles": ["A", "B"], "mode": False}


def test_template_reads_no_fields_of_missing_crd() -> None:
    asset = an_asset(
        f"{SPEC}  has: {{{{ schemas.d.has('/spec/a') | to_json }}}}\n",
        reads={"schemas": {"d": {"crd": "d.e", "paths": ["/spec/a"]}}},
    )
    assert rendered(asset, a_context(schemas={"d.e": None}))["spec"] == {"has": False}


@pytest.mark.parametrize(
    ("reads", "named"),
    [
        pytest.param({"nodes": True}, "nodes", id="nodes"),
        pytest.param({"topology": True}, "topology", id="topology"),
        pytest.param({"objects": {"r": {**RULES, "paths": []}}}, "ConfigMap here/rules", id="an-object"),
        pytest.param({"schemas": {"d": {"crd": "d.e", "paths": []}}}, "schema of d.e", id="a-schema"),
    ],
)
def test_render_fails_with_unknown_inputs(reads: dict[str, Any], named: str) -> None:
    assert why(an_asset(reads=reads)) == f"unknown: {named}"


@pytest.mark.parametrize(
    "expression",
    [
        pytest.param("{{ ''.__class__.__mro__ | to_json }}", id="the-insides-of-python"),
        pytest.param("{{ asset.in_scope.__globals__ | to_json }}", id="the-insides-of-an-asset"),
        pytest.param("{{ hco._hco.spec | to_json }}", id="the-insides-of-a-view"),
        pytest.param("{{ params.update({'a': 1}) | to_json }}", id="a-change-of-what-it-was-given"),
        pytest.param("{{ range(99999999) | list | to_json }}", id="all-the-memory"),
    ],
)
def test_sandbox_refuses(expression: str) -> None:
    assert why(an_asset(f"{SPEC}  a: {expression}\n", params={"b": 1}, reads={"hco": []}))


def test_render_names_line_of_syntax_error() -> None:
    assert why(an_asset(TEMPLATE + "{% if %}\n")).startswith("fast/object.yaml.j2 line 5: ")


def test_render_uses_served_version_of_hco() -> None:
    target = {
        "apiVersion": "@served",
        "kind": "HyperConverged",
        "plural": "hyperconvergeds",
        "name": "hc",
        "namespace": "@hco",
    }
    template = (
        "apiVersion: {{ hco.api_version | text }}\n"
        "kind: HyperConverged\n"
        "metadata: {name: {{ hco.name | text }}, namespace: {{ hco.namespace | text }}}\n"
    )
    asset = an_asset(template, object=target, phase=0, reads={"hco": []})
    found = {version: rendered(asset, a_context(hco=an_hco(version=version))) for version in ("v1", "v1beta1")}
    assert {version: obj["apiVersion"] for version, obj in found.items()} == {
        "v1": "hco.kubevirt.io/v1",
        "v1beta1": "hco.kubevirt.io/v1beta1",
    }
    assert found["v1"]["metadata"]["namespace"] == "openshift-cnv"


def test_render_checks_namespace_of_hco() -> None:
    asset = an_asset(TEMPLATE + "  namespace: elsewhere\n", object=TUNING | {"namespace": "@hco"})
    assert "'elsewhere' instead of 'openshift-cnv'" in why(asset)
