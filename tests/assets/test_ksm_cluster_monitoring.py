"""One switch in a text that belongs to an administrator, who finds everything else as it was."""

from typing import Any

import pytest
import yaml

from tests.assets.contexts import Cluster, rendered, rendering
from virt_steward.catalog.render import RenderFailed

NAME = "ksm-cluster-monitoring"
WANTED = "nodeExporter:\n  collectors:\n    ksmd:\n      enabled: true\n"


def a_cluster_with(text: str | None) -> Cluster:
    data = {} if text is None else {"data": {"config.yaml": text, "other": "untouched"}}
    return Cluster(objects={"cluster-monitoring-config": {"metadata": {"name": "cluster-monitoring-config"}, **data}})


def text_for(cluster: Cluster) -> str:
    obj = rendered(NAME, cluster)
    assert (obj["metadata"]["namespace"], obj["metadata"]["name"]) == (
        "openshift-monitoring",
        "cluster-monitoring-config",
    )
    assert obj["data"].keys() == {"config.yaml"}, "other keys have other owners"
    text: str = obj["data"]["config.yaml"]
    return text


@pytest.mark.parametrize(
    "cluster",
    [
        pytest.param(Cluster(), id="no-object"),
        pytest.param(a_cluster_with(None), id="an-object-without-data"),
        pytest.param(a_cluster_with(""), id="an-empty-text"),
        pytest.param(a_cluster_with("\n"), id="a-blank-text"),
    ],
)
def test_the_switch_alone_is_written_where_there_was(cluster: Cluster) -> None:
    assert text_for(cluster) == WANTED


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("# ours\nuser: true  # yes\n", f"# ours\nuser: true  # yes\n{WANTED}", id="with-comments"),
        pytest.param("user: true", f"user: true\n{WANTED}", id="without-a-newline-at-its-end"),
        pytest.param("# nothing yet\n", f"# nothing yet\n{WANTED}", id="of-comments-alone"),
    ],
)
def test_the_switch_is_added_at_the_end_of_a_text(text: str, expected: str) -> None:
    assert text_for(a_cluster_with(text)) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("{user: true}\n", {"user": True}, id="in-braces"),
        pytest.param("user: true\nnodeExporter:\n", {"user": True}, id="with-an-empty-section"),
        pytest.param(
            "nodeExporter: {collectors: {ksmd: {enabled: false}, wifi: {enabled: true}}, maxProcs: 2}",
            {"nodeExporter": {"collectors": {"wifi": {"enabled": True}}, "maxProcs": 2}},
            id="with-the-switch-off",
        ),
    ],
)
def test_the_switch_is_put_into_the_section_of_a_text(text: str, expected: dict[str, Any]) -> None:
    found = text_for(a_cluster_with(text))
    values = yaml.safe_load(found)
    assert values["nodeExporter"]["collectors"].pop("ksmd") == {"enabled": True}
    assert values == {"nodeExporter": {"collectors": {}}} | expected
    assert found.count("nodeExporter") == 1, "a key that is there twice is refused by its reader"


@pytest.mark.parametrize(
    "text", ["# mine\nnodeExporter: {collectors: {ksmd: {enabled: true}}}  # on\n", f"user: true\n{WANTED}"]
)
def test_a_text_that_has_the_switch_on_stays_to_the_letter(text: str) -> None:
    assert text_for(a_cluster_with(text)) == text


@pytest.mark.parametrize(
    ("text", "why"),
    [
        pytest.param("a: [", "did not find", id="is-broken"),
        pytest.param("- a\n- b\n", "not a map", id="is-a-list"),
        pytest.param("just words", "not a map", id="is-a-sentence"),
        pytest.param("a: 1\n---\nb: 2\n", "expected one document, found 2", id="is-two-documents"),
    ],
)
def test_a_text_is_not_touched_and_it_is_said_why_if_it(text: str, why: str) -> None:
    found = rendering(NAME, a_cluster_with(text))
    assert isinstance(found, RenderFailed)
    assert why in found.why
