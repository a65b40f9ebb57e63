"""The file of --gates."""

from pathlib import Path
from typing import Any

import pytest

from virt_steward.holds.gate_board import grants_for, load_gates
from virt_steward.holds.gate_settings import READY_MADE, READY_MADE_ONLY, BadGates, decode_gates
from virt_steward.objects.yamltext import yaml_text
from virt_steward.runtime.access import Reach

EXAMPLE = """\
prometheus:
  url: https://thanos-querier.openshift-monitoring.svc:9091
  tokenFile: /var/run/secrets/kubernetes.io/serviceaccount/token
gates:
  etcd:
    objects:
      apiVersion: operator.openshift.io/v1
      kind: Etcd
      conditions: {EtcdMembersDegraded: "False"}
  no-migrations:
    objects:
      apiVersion: kubevirt.io/v1
      kind: VirtualMachineInstanceMigration
      namespace: shop
      selector: team=blue,!done
      absent: true
  quiet:
    prometheus:
      query: sum(rate(errors[5m])) > 1
required:
  autopilot: [cluster-operators]
readyMade: [pools]
poll: 1m
"""


def test_file_defines_gates_and_their_rights(tmp_path: Path) -> None:
    file = tmp_path / "gates.yaml"
    file.write_text(EXAMPLE)
    settings = load_gates(str(file))
    assert settings.poll_seconds == 60
    assert settings.of("autopilot", ("etcd", "cluster-operators")) == ("cluster-operators", "etcd")
    assert settings.of("advisor", ("etcd",)) == ("etcd",)
    granted = {(grant.resource, grant.verbs, grant.where) for grant in grants_for(settings, "advisor")}
    assert granted == {
        ("etcds", ("list",), Reach.CLUSTER),
        ("virtualmachineinstancemigrations", ("list",), "shop"),
        ("machineconfigpools", ("list",), Reach.CLUSTER),
    }
    assert "clusteroperators" in {grant.resource for grant in grants_for(settings, "autopilot")}


def test_without_a_file_there_are_ready_made_gates_and_no_rights() -> None:
    assert load_gates(None) is READY_MADE_ONLY
    assert not list(grants_for(READY_MADE_ONLY, "advisor"))
    assert all(READY_MADE_ONLY.find(name) for name in ("cluster-operators", "pools", "no-critical-alerts"))


OBJECTS = {"apiVersion": "v1", "kind": "Node", "conditions": {"Ready": "True"}}


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ({"gate": {}}, "unknown field `gate`"),
        ({"gates": {"a": {"object": {}}}}, "unknown field `object`"),
        ({"gates": {"a": {}}}, "gate a: write either objects or prometheus"),
        ({"gates": {"a": {"objects": {"apiVersion": "v1", "kind": "Node"}}}}, "either conditions or absent"),
        ({"gates": {"a": {"objects": OBJECTS | {"absent": True}}}}, "either conditions or absent"),
        ({"gates": {"a": {"objects": OBJECTS | {"conditions": {"Ready": "Yes"}}}}}, "Invalid enum value 'Yes'"),
        ({"gates": {"a": {"objects": OBJECTS | {"selector": "a=b=c"}}}}, "objects.selector: 'a=b=c'"),
        ({"gates": {"pools": {"objects": OBJECTS}}}, "ready-made gate; choose another"),
        ({"gates": {"A gate": {"objects": OBJECTS}}}, "Expected `str` matching regex"),
        ({"gates": {"a": {"prometheus": {"query": "up"}}}}, "gate a asks Prometheus: add prometheus with its url"),
        ({"required": {"advisor": ["b"]}}, "required.advisor: gate b is not defined"),
        ({"required": {"placement": ["pools"]}}, "Invalid enum value 'placement'"),
        ({"poll": "soon"}, "poll: 'soon' is not a duration"),
        ({"poll": "0s"}, "poll: 0s is not between 1s and 300s"),
        ({"prometheus": {"url": "http://x", "timeout": "2h"}}, "prometheus.timeout: 2h is not between"),
        ({"prometheus": {"url": "x"}}, "prometheus.url must start with https://"),
    ],
)
def test_file_with_a_mistake_is_refused(tmp_path: Path, content: Any, words: str) -> None:
    file = tmp_path / "gates.yaml"
    file.write_text(yaml_text(content))
    with pytest.raises(BadGates) as refused:
        load_gates(str(file))
    assert str(refused.value).startswith(f"--gates {file}: ")
    assert words in str(refused.value)


@pytest.mark.parametrize("content", [b"{", b"\xff", b"- a", b"a: " + b"x" * 1_100_000])
def test_file_that_is_no_gates_file_is_refused(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "gates.yaml"
    file.write_bytes(content)
    with pytest.raises(BadGates, match="--gates"):
        load_gates(str(file))


def test_missing_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadGates, match="No such file"):
        load_gates(str(tmp_path / "none"))


def test_ready_made_gates_are_valid() -> None:
    content = yaml_text({"gates": {}, "readyMade": sorted(READY_MADE)})
    assert set(decode_gates(content.encode()).ready_made) == set(READY_MADE)
