"""The chart as Helm renders it, and the bundle as OLM installs it."""

from pathlib import Path
from typing import Any

import pytest

from tests import helm
from tests.clients import a_client
from tests.helm import MONITORS, POLICIES, NotRendered, rendered
from tests.olm.catalog import STEWARD
from tests.olm.lifecycle_manager import LifecycleManager
from tests.olm.namespaces import OperatorNamespace
from virt_steward.controllers import NAMES
from virt_steward.kube.client import Client, Selection
from virt_steward.objects.identity import Key, Kind
from virt_steward.packaging.parts import OF_THE_PLATFORM, RESOURCES, InstallOptions, installed
from virt_steward.runtime.access import Installation

CHART = Path(__file__).parents[2] / "deploy" / "chart"

Object = dict[str, Any]


@pytest.fixture(scope="module")
def engine() -> Path:
    return helm.build()


def by_name(objects: list[Object]) -> dict[tuple[str, str, str], Object]:
    """Objects by kind and name, each of which is there once."""
    found = {(obj["kind"], obj["metadata"].get("namespace", ""), obj["metadata"]["name"]): obj for obj in objects}
    assert len(found) == len(objects)
    return found


def told(objects: list[Object]) -> list[Object]:
    """The same parts as a chart says them: which platform is meant, always; that definitions are kept."""
    for obj in objects:
        if obj["kind"] == "Deployment":
            container = obj["spec"]["template"]["spec"]["containers"][0]
            if container["name"] in OF_THE_PLATFORM and len(container["args"]) == 1:
                container["args"].append("--hyperconverged=openshift-cnv/kubevirt-hyperconverged")
        if obj["kind"] == "CustomResourceDefinition":
            obj["metadata"].setdefault("annotations", {})["helm.sh/resource-policy"] = "keep"
    return objects


def in_order(rules: list[Object]) -> list[Object]:
    """Rules are sorted by names, also by those that a template leaves open."""
    return sorted(
        ({name: sorted(values) for name, values in rule.items()} for rule in rules),
        key=lambda rule: sorted(rule.items()),
    )


def parts(wishes: InstallOptions) -> list[Object]:
    return [obj for topic, objects in installed(wishes).items() if topic != "namespace" for obj in objects]


def test_a_chart_without_values_is_the_usual_installation(engine: Path) -> None:
    found = by_name(rendered(engine, CHART, "elsewhere", {}, POLICIES))
    assert found == by_name(told(parts(InstallOptions(Installation("elsewhere")))))


def test_values_say_what_differs(engine: Path) -> None:
    values = {
        "image": "mirror/virt-steward:9",
        "replicas": 1,
        "resources": {"limits": {"memory": "1Gi"}},
        "hyperconverged": {"namespace": "virtualization", "name": "mine"},
        "controllers": {
            "approver": {"enabled": False},
            "placement": {"args": ["--placement-strategy=weight", "--x=a b"]},
        },
    }
    found = by_name(rendered(engine, CHART, "here", values, POLICIES))
    wanted = by_name(
        parts(InstallOptions(Installation("here"), "mirror/virt-steward:9", Key("virtualization", "mine")))
    )
    gone = {key for key in wanted if key not in found}
    assert {name for _, _, name in gone} == {"virt-steward-approver"}
    assert {key for key in found if found[key]["kind"].endswith("Role")} == {
        key for key in wanted if wanted[key]["kind"].endswith("Role") and key not in gone
    }
    for key in found:
        if key[0].endswith("Role"):
            assert in_order(found[key]["rules"]) == in_order(wanted[key]["rules"])
    deployment = found["Deployment", "here", "virt-steward-placement"]["spec"]
    [container] = deployment["template"]["spec"]["containers"]
    assert deployment["replicas"] == 1
    assert container["args"] == ["--controllers=placement", "--placement-strategy=weight", "--x=a b"]
    assert container["image"] == "mirror/virt-steward:9"
    assert container["resources"] == RESOURCES | {"limits": {"memory": "1Gi"}}


def test_rights_that_are_asked_for_are_added(engine: Path) -> None:
    usual = by_name(rendered(engine, CHART, "here", {}))
    more = by_name(rendered(engine, CHART, "here", {"secretNamespaces": ["fleet", "here"], "optOutDeletes": True}))
    assert usual.items() <= more.items()
    assert more.keys() - usual.keys() == {
        *(
            (kind, place, "virt-steward-placement-secrets")
            for kind in ("Role", "RoleBinding")
            for place in ("fleet", "here")
        ),
        *((kind, "", "virt-steward-autopilot-opt-out-deletes") for kind in ("ClusterRole", "ClusterRoleBinding")),
    }
    binding = more["RoleBinding", "fleet", "virt-steward-placement-secrets"]
    assert binding["roleRef"]["name"] == "virt-steward-placement-secrets"
    assert binding["subjects"][0]["namespace"] == "here"


def test_the_console_is_served_if_it_is_asked_for(engine: Path) -> None:
    usual = by_name(rendered(engine, CHART, "here", {}, POLICIES))
    more = by_name(rendered(engine, CHART, "here", {"console": {"enabled": True}}, POLICIES))
    wanted = by_name(told(parts(InstallOptions(Installation("here"), console=True))))
    assert more == wanted
    assert {name for _, _, name in more.keys() - usual.keys()} == {"virt-steward-console"}


def test_metrics_are_scraped_where_somebody_can(engine: Path) -> None:
    usual = by_name(rendered(engine, CHART, "here", {}))
    more = by_name(rendered(engine, CHART, "here", {}, MONITORS))
    assert more.keys() - usual.keys() == {("ServiceMonitor", "here", "virt-steward")}


def test_a_cluster_without_admission_policies_gets_none(engine: Path) -> None:
    kinds = {kind for kind, _, _ in by_name(rendered(engine, CHART, "here", {}))}
    assert not {kind for kind in kinds if kind.startswith("ValidatingAdmission")}


@pytest.mark.parametrize(
    "values",
    [
        pytest.param({"hyperconvergd": {}}, id="a misspelt name"),
        pytest.param({"controllers": {"adviser": {"enabled": False}}}, id="no such controller"),
        pytest.param({"replicas": "two"}, id="no number"),
        pytest.param({"image": ""}, id="no image"),
    ],
)
def test_values_are_refused_that_make_no_sense(engine: Path, values: Object) -> None:
    with pytest.raises(NotRendered, match="don't meet the specifications of the schema"):
        rendered(engine, CHART, "here", values)


async def test_an_api_server_takes_what_is_rendered(engine: Path, admin: Client, namespace: str) -> None:
    for obj in rendered(engine, CHART, namespace, {"secretNamespaces": [namespace], "optOutDeletes": True}, POLICIES):
        answer = await admin.apply(obj, manager="installer", dry_run=True)
        assert answer.object["metadata"]["uid"]


async def test_olm_installs_the_bundle_with_its_rights(olm: LifecycleManager) -> None:
    async with a_client(olm.control_plane) as client:
        namespace = await OperatorNamespace.create(client, "steward", everywhere=True)
        await namespace.install(STEWARD, STEWARD.versions[0])
        deployments = await client.list(Kind("apps", "Deployment"), Selection(namespace.name))
        assert sorted(one["metadata"]["name"] for one in deployments) == sorted(
            f"virt-steward-{name}" for name in NAMES
        )
        roles = await client.list(Kind("rbac.authorization.k8s.io", "ClusterRole"))
    granted = [role["rules"] for role in roles if role["metadata"]["name"].startswith(STEWARD.csv(STEWARD.versions[0]))]
    wanted = [obj["rules"] for obj in parts(InstallOptions()) if obj["kind"] == "ClusterRole"]
    assert len(wanted) == len(NAMES)
    assert [rules for rules in wanted if rules not in granted] == []
    olm.check()
