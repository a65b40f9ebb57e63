import pytest

from tests.catalog.builders import (
    DESCHEDULERS,
    a_crd,
    a_kubelet_config,
    a_machine_config,
    a_node,
    a_pool,
    an_asset,
    an_hco_object,
    documents_of,
)
from virt_steward.catalog.asset import Asset
from virt_steward.catalog.conditions import Met, NotSetElsewhereCondition, Unmet
from virt_steward.catalog.load import Catalog
from virt_steward.catalog.offline import BadFile, Offline, offline
from virt_steward.controllers.autopilot.options import related_images
from virt_steward.objects.identity import Key, Kind, Ref
from virt_steward.objects.paths import Pointer
from virt_steward.objects.yamltext import yaml_text
from virt_steward.platform.storage import Storage

RULES = {"apiVersion": "v1", "kind": "ConfigMap", "plural": "configmaps", "name": "rules", "namespace": "here"}
THE_RULES = Ref(Kind("", "ConfigMap"), Key("here", "rules"))
INFRASTRUCTURE = {
    "apiVersion": "config.openshift.io/v1",
    "kind": "Infrastructure",
    "metadata": {"name": "cluster"},
    "status": {"platformStatus": {"type": "AWS"}},
}
CONFIG_MAP = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "rules", "namespace": "here"}, "data": {}}


def a_reader() -> Asset:
    return an_asset(
        reads={
            "objects": {"rules": {**RULES, "paths": ["/data"]}},
            "schemas": {"descheduler": {"crd": DESCHEDULERS, "paths": ["/spec/profiles"]}},
        }
    )


def read(*objects: dict[str, object]) -> Offline:
    return offline(documents_of(an_hco_object(), *objects), Catalog((a_reader(),)), {})


def test_offline_hco_alone_leaves_the_rest_unknown() -> None:
    context = read().context
    assert (context.nodes, context.hardware, context.topology, context.schemas) == (None, None, None, {})
    assert context.objects == {THE_RULES: None}
    assert context.hco.name == "kubevirt-hyperconverged"


def test_offline_reads_storage() -> None:
    claims = [{"accessModes": ["ReadWriteMany"], "volumeMode": "Filesystem"}]
    profile = {"apiVersion": "cdi.kubevirt.io/v1beta1", "kind": "StorageProfile", "metadata": {"name": "nfs"}}
    assert read().context.storage == Storage(knows_classes=False)
    default = {"storageclass.kubernetes.io/is-default-class": "true"}
    fast = {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": "a", "annotations": default},
    }
    assert read(profile | {"status": {"claimPropertySets": claims}}, fast).context.storage == Storage(("nfs",), "a")


def test_offline_reads_other_objects() -> None:
    context = read(a_node("a"), a_node("b", roles=("master",)), INFRASTRUCTURE, CONFIG_MAP, a_crd()).context
    assert context.nodes
    assert (context.nodes.total, context.nodes.masters) == (2, 1)
    assert context.topology
    assert context.topology.platform == "AWS"
    assert context.objects == {THE_RULES: CONFIG_MAP}
    facts = context.schemas[DESCHEDULERS]
    assert facts
    assert facts.enum(Pointer(("spec", "profiles"))) == ("LongLifecycle",)


def test_offline_reads_items_of_a_list() -> None:
    listed = {"apiVersion": "v1", "kind": "List", "items": [an_hco_object(), a_node()]}
    context = offline(yaml_text(listed), Catalog(()), {}).context
    assert context.nodes
    assert context.nodes.total == 1


def test_offline_schema_without_crd_is_absent() -> None:
    assert read(a_crd("others.other.example")).context.schemas == {DESCHEDULERS: None}


def test_offline_reads_machine_configs() -> None:
    psi = NotSetElsewhereCondition("worker", kernel_argument="psi=1")
    assert psi.check(read(a_pool()).context) == Met()
    assert isinstance(psi.check(read(a_machine_config("x", arguments=("psi=1",))).context), Unmet)


def test_offline_reads_kubelet_configs() -> None:
    target = {"apiVersion": "machineconfiguration.openshift.io/v1", "kind": "KubeletConfig", "plural": "kubeletconfigs"}
    ours = Catalog((an_asset(object=target | {"name": "ours"}),))
    file = documents_of(an_hco_object(), a_kubelet_config("ours"), a_kubelet_config("theirs"))
    known = offline(file, ours, {}).context.machine_configs
    assert known
    assert known.other_kubelets("worker", ("maxPods",)) == ("theirs",)


def test_offline_finds_the_kubevirt_beside_the_hyperconverged() -> None:
    asset = an_asset(conditions=[{"type": "kubevirt-feature-gate", "value": "CPUManager"}])
    kubevirt = {
        "apiVersion": "kubevirt.io/v1",
        "kind": "KubeVirt",
        "metadata": {"name": "kubevirt-kubevirt-hyperconverged", "namespace": "openshift-cnv"},
        "spec": {"configuration": {"developerConfiguration": {"featureGates": ["CPUManager"]}}},
    }
    elsewhere = {**kubevirt, "metadata": {**kubevirt["metadata"], "namespace": "other"}}  # type: ignore[dict-item]
    for obj, expected in ((kubevirt, Met), (elsewhere, Unmet)):
        context = offline(documents_of(an_hco_object(), obj), Catalog((asset,)), {}).context
        assert isinstance(asset.conditions[0].check(context), expected)


@pytest.mark.parametrize(
    ("group", "plural", "served"),
    [
        pytest.param("operator.openshift.io", "kubedeschedulers", True, id="of-the-file"),
        pytest.param("tuning.example", "tunings", False, id="that-the-file-lacks"),
        pytest.param("apps", "daemonsets", True, id="built-in"),
        pytest.param("rbac.authorization.k8s.io", "clusterroles", True, id="built-in-with-a-long-name"),
    ],
)
def test_offline_serves_the_crds_of_the_file(group: str, plural: str, served: bool) -> None:
    assert read(a_crd()).served.serves(group, plural) is served


def test_offline_without_crds_serves_every_kind() -> None:
    assert read().served.serves("tuning.example", "tunings")


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        pytest.param("", "got nothing", id="empty"),
        pytest.param("a: [", "the file is invalid", id="no-yaml"),
        pytest.param("just text", "not an object", id="text"),
        pytest.param("kind: List\nitems: [1]", "not an object", id="a-list-of-numbers"),
        pytest.param("kind: List\nitems: 3", "not an object", id="a-list-that-is-none"),
        pytest.param("apiVersion: v1\nkind: Node\nmetadata: none", "not an object", id="metadata-that-is-none"),
        pytest.param(documents_of(a_node()), "expected one object of kind HyperConverged, got Node", id="no-hco"),
        pytest.param(documents_of(an_hco_object(), an_hco_object()), "got 2 of them", id="two-hcos"),
        pytest.param(
            documents_of(an_hco_object(), a_node() | {"status": {"capacity": []}}),
            "the file is invalid",
            id="a-bad-node",
        ),
    ],
)
def test_offline_refuses_bad_file(text: str, problem: str) -> None:
    with pytest.raises(BadFile, match=problem):
        offline(text, Catalog(()), {})


def test_related_images_are_read_by_key() -> None:
    environment = {"RELATED_IMAGE_KUBEVIRT_METRICS_EXPORTER": "image:1", "RELATED_IMAGE_NONE": "", "PATH": "/bin"}
    assert related_images(environment) == {"kubevirt-metrics-exporter": "image:1"}
