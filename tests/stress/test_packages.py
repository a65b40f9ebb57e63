"""The chart as Helm renders it, and the bundle as OLM installs it."""

import uuid
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests import helm
from tests.cli.commands import steward
from tests.clients import a_client
from tests.cluster import a_control_plane
from tests.eventually import eventually
from tests.helm import MONITORS, PERSES, POLICIES, RULES, NotRendered, rendered
from tests.howtos import Follower
from tests.olm.catalog import STEWARD
from tests.olm.lifecycle_manager import LifecycleManager
from tests.olm.namespaces import OperatorNamespace
from virt_steward.apis.crds import CRDS
from virt_steward.controllers import NAMES
from virt_steward.kube.client import Client, Selection
from virt_steward.objects.identity import Key, Kind, ref_of
from virt_steward.packaging.monitoring import MonitoringApis, MonitoringOptions, alerts
from virt_steward.packaging.operation import OperationOptions, resources_of
from virt_steward.packaging.parts import OF_THE_PLATFORM, InstallOptions, installed, together
from virt_steward.removal.found import HELM as MANAGED_BY
from virt_steward.runtime.access import ALL_IN_ONE, Installation
from virt_steward_demo.local.controlplane import ControlPlane
from virt_steward_demo.simulation.install import make_namespace

CHART = Path(__file__).parents[2] / "deploy" / "chart"

Object = dict[str, Any]
PEOPLE = ("roles", "aggregated-roles")
DIGEST = f"registry.example:5000/virt-steward@sha256:{'0a' * 32}"


@pytest.fixture(scope="module")
def engine() -> Path:
    return helm.build()


def by_name(objects: list[Object]) -> dict[tuple[str, str, str], Object]:
    """Objects by kind, namespace and name, without duplicates; the order of arguments has no meaning."""
    for obj in objects:
        if obj["kind"] == "Deployment":
            obj["spec"]["template"]["spec"]["containers"][0]["args"].sort()
    found = {(obj["kind"], obj["metadata"].get("namespace", ""), obj["metadata"]["name"]): obj for obj in objects}
    assert len(found) == len(objects)
    return found


def as_chart(objects: list[Object]) -> list[Object]:
    """The parts as the chart renders them: always with the HyperConverged, and with CRDs that are kept."""
    for obj in objects:
        if obj["kind"] == "Deployment":
            container = obj["spec"]["template"]["spec"]["containers"][0]
            is_named = any(one.startswith("--hyperconverged=") for one in container["args"])
            if container["name"] in (*OF_THE_PLATFORM, ALL_IN_ONE) and not is_named:
                container["args"].insert(1, "--hyperconverged=openshift-cnv/kubevirt-hyperconverged")
        if obj["kind"] == "CustomResourceDefinition":
            obj["metadata"].setdefault("annotations", {})["helm.sh/resource-policy"] = "keep"
    return objects


def sort_rules(rules: list[Object]) -> list[Object]:
    """Sort rules and their values: a template may render them in another order."""
    return sorted(
        ({name: sorted(values) for name, values in rule.items()} for rule in rules),
        key=lambda rule: sorted(rule.items()),
    )


def parts(options: InstallOptions) -> list[Object]:
    return [obj for topic, objects in installed(options).items() if topic != "namespace" for obj in objects]


def test_chart_without_values_renders_default_installation(engine: Path) -> None:
    found = by_name(rendered(engine, CHART, "elsewhere", {}, POLICIES))
    assert found == by_name(as_chart(parts(InstallOptions(Installation("elsewhere")))))


def test_chart_values_change_installation(engine: Path) -> None:
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
    assert {name for _, _, name in gone} == {
        f"virt-steward-approver{part}" for part in ("", "-targets", "-metrics-token")
    }
    assert {key for key in found if found[key]["kind"].endswith("Role")} == {
        key for key in wanted if wanted[key]["kind"].endswith("Role") and key not in gone
    }
    for key in found:
        if key[0].endswith("Role"):
            assert sort_rules(found[key]["rules"]) == sort_rules(wanted[key]["rules"])
    deployment = found["Deployment", "here", "virt-steward-placement"]["spec"]
    [container] = deployment["template"]["spec"]["containers"]
    assert deployment["replicas"] == 1
    [usual] = wanted["Deployment", "here", "virt-steward-placement"]["spec"]["template"]["spec"]["containers"]
    assert container["args"] == sorted([*usual["args"], "--placement-strategy=weight", "--x=a b"])
    assert container["image"] == "mirror/virt-steward:9"
    assert container["resources"] == resources_of("placement") | {"limits": {"memory": "1Gi"}}


def test_chart_passes_policy_namespaces(engine: Path) -> None:
    values = {"policyNamespaces": ["policies", "platform"], "console": {"enabled": True}}
    wanted = by_name(
        as_chart(parts(InstallOptions(Installation("here"), console=True, policy_namespaces=("policies", "platform"))))
    )
    found = by_name(rendered(engine, CHART, "here", values, POLICIES))
    for name in ("virt-steward-approver", "virt-steward-console"):
        key = ("Deployment", "here", name)
        assert found[key] == wanted[key]
    with pytest.raises(NotRendered):
        rendered(engine, CHART, "here", {"policyNamespaces": ["a: b"]})


@pytest.mark.parametrize("all_in_one", [False, True])
def test_chart_passes_notifications(engine: Path, *, all_in_one: bool) -> None:
    values = {"notifications": True, "allInOne": all_in_one}
    options = InstallOptions(Installation("here"), notifications=True)
    wanted = as_chart(parts(together(options) if all_in_one else options))
    assert by_name(rendered(engine, CHART, "here", values, POLICIES)) == by_name(wanted)


def test_chart_adds_optional_rights(engine: Path) -> None:
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


def test_chart_adds_console_if_enabled(engine: Path) -> None:
    usual = by_name(rendered(engine, CHART, "here", {}, POLICIES))
    more = by_name(rendered(engine, CHART, "here", {"console": {"enabled": True}}, POLICIES))
    wanted = by_name(as_chart(parts(InstallOptions(Installation("here"), console=True))))
    assert more == wanted
    assert {name for _, _, name in more.keys() - usual.keys()} == {
        "virt-steward-console",
        "virt-steward-console-targets",
        "virt-steward-console-metrics-token",
    }


def test_chart_runs_all_controllers_in_one_deployment(engine: Path) -> None:
    values = {"allInOne": True, "console": {"enabled": True}, "image": DIGEST}
    found = by_name(rendered(engine, CHART, "here", values, POLICIES))
    assert found == by_name(as_chart(parts(together(InstallOptions(Installation("here"), DIGEST, console=True)))))


def test_chart_runs_some_controllers_in_one_deployment(engine: Path) -> None:
    controllers = {"approver": {"enabled": False, "args": ["--none"]}, "placement": {"args": ["--x=a b"]}}
    values = {"allInOne": True, "controllers": controllers, "secretNamespaces": ["fleet"], "optOutDeletes": True}
    found = by_name(rendered(engine, CHART, "here", values, POLICIES))
    [container] = found["Deployment", "here", "virt-steward-all-in-one"]["spec"]["template"]["spec"]["containers"]
    assert {"--controllers=advisor,autopilot,placement", "--x=a b"} <= set(container["args"])
    assert "--none" not in container["args"]
    bindings = [obj for obj in found.values() if component_of(obj) in (*NAMES, ALL_IN_ONE) and "subjects" in obj]
    bound = {(obj["roleRef"]["name"], subject["name"]) for obj in bindings for subject in obj["subjects"]}
    roles = {name for (kind, _, name), obj in found.items() if kind.endswith("Role") and component_of(obj) in NAMES}
    assert {"virt-steward-placement-secrets", "virt-steward-autopilot-opt-out-deletes"} <= roles
    assert not {name for name in roles if "approver" in name}
    assert bound == {(role, "virt-steward-all-in-one") for role in roles}
    assert [name for kind, _, name in found if kind == "ServiceAccount"] == ["virt-steward-all-in-one"]


def component_of(obj: Object) -> str:
    return str(obj["metadata"].get("labels", {}).get("app.kubernetes.io/component", ""))


def test_chart_values_change_operation(engine: Path) -> None:
    values = {
        "console": {"enabled": True},
        "priorityClassName": "system-cluster-critical",
        "networkPolicy": {"egressPorts": [443, 16443]},
        "image": DIGEST,
    }
    options = OperationOptions(priority_class="system-cluster-critical", egress_ports=(443, 16443))
    wanted = InstallOptions(Installation("here"), DIGEST, console=True, operation=options)
    assert by_name(rendered(engine, CHART, "here", values, POLICIES)) == by_name(as_chart(parts(wanted)))
    without = by_name(rendered(engine, CHART, "here", {"networkPolicy": {"enabled": False}, "aggregateRoles": False}))
    assert not {name for kind, _, name in without if kind == "NetworkPolicy" or "aggregate-to" in name}
    [limits] = [
        obj
        for obj in rendered(engine, CHART, "here", {"networkPolicy": {"egressPorts": []}})
        if obj["kind"] == "NetworkPolicy"
    ]
    assert limits["spec"]["egress"][-1] == {"ports": []}


def test_chart_adds_monitoring_where_its_kinds_are_served(engine: Path) -> None:
    wanted = by_name(
        as_chart(parts(InstallOptions(Installation("here"), monitoring=MonitoringOptions(MonitoringApis.ALL))))
    )
    assert by_name(rendered(engine, CHART, "here", {}, POLICIES, MONITORS, RULES, PERSES)) == wanted
    usual = by_name(rendered(engine, CHART, "here", {}))
    assert {kind for kind, _, _ in by_name(rendered(engine, CHART, "here", {}, RULES)).keys() - usual.keys()} == {
        "PrometheusRule"
    }
    assert by_name(rendered(engine, CHART, "here", {}, MONITORS)).keys() - usual.keys() == {
        ("ServiceMonitor", "here", "virt-steward")
    }


def test_chart_values_change_monitoring(engine: Path) -> None:
    values = {
        "controllers": {"approver": {"enabled": False}},
        "monitoring": {
            "prometheus": {"namespace": "monitoring", "name": "prom"},
            "labels": {"release": "kube-prometheus-stack"},
            "runbooks": "https://docs.example/%s/",
        },
    }
    found = by_name(rendered(engine, CHART, "here", values, MONITORS, RULES))
    rules = {name: obj for (kind, _, name), obj in found.items() if kind == "PrometheusRule"}
    assert {*rules} == {f"virt-steward-{name}" for name in (*NAMES, "processes")} - {"virt-steward-approver"}
    wanted = alerts(Installation("here"), MonitoringOptions(runbooks="https://docs.example/%s/"))
    assert rules["virt-steward-autopilot"]["spec"] == wanted["autopilot"]["spec"]
    for obj in (*rules.values(), found["ServiceMonitor", "here", "virt-steward"]):
        assert obj["metadata"]["labels"]["release"] == "kube-prometheus-stack"
    for kind, namespace, name in (
        ("ClusterRoleBinding", "", "virt-steward-metrics-reader-monitoring-prom"),
        ("RoleBinding", "here", "virt-steward-metrics-discovery-monitoring-prom"),
    ):
        [subject] = found[kind, namespace, name]["subjects"]
        assert (subject["namespace"], subject["name"]) == ("monitoring", "prom")
    folder = by_name(rendered(engine, CHART, "here", {"monitoring": {"runbooks": "https://docs.example/"}}, RULES))
    text = str(folder["PrometheusRule", "here", "virt-steward-advisor"])
    assert "https://docs.example/AdvisorNotRunning.md" in text


def test_chart_omits_admission_policies_if_kind_is_not_served(engine: Path) -> None:
    kinds = {kind for kind, _, _ in by_name(rendered(engine, CHART, "here", {}))}
    assert not {kind for kind in kinds if kind.startswith("ValidatingAdmission")}


@pytest.mark.parametrize(
    "values",
    [
        pytest.param({"hyperconvergd": {}}, id="unknown value"),
        pytest.param({"controllers": {"adviser": {"enabled": False}}}, id="unknown controller"),
        pytest.param({"replicas": "two"}, id="not a number"),
        pytest.param({"image": ""}, id="no image"),
        pytest.param({"image": "virt-steward@sha256:12"}, id="short digest"),
        pytest.param({"networkPolicy": {"egressPorts": ["https"]}}, id="port by name"),
    ],
)
def test_chart_refuses_invalid_values(engine: Path, values: Object) -> None:
    with pytest.raises(NotRendered, match="don't meet the specifications of the schema"):
        rendered(engine, CHART, "here", values)


async def test_chart_is_accepted_by_api_server(engine: Path, admin: Client, namespace: str) -> None:
    for obj in rendered(engine, CHART, namespace, {"secretNamespaces": [namespace], "optOutDeletes": True}, POLICIES):
        answer = await admin.apply(obj, manager="installer", dry_run=True)
        assert answer.object["metadata"]["uid"]


async def test_bundle_is_installed_by_olm_with_its_rights(olm: LifecycleManager) -> None:
    async with a_client(olm.control_plane) as client:
        namespace = await OperatorNamespace.create(client, f"steward-{uuid.uuid4().hex[:8]}", everywhere=True)
        await namespace.install(STEWARD, STEWARD.versions[0])
        deployments = await client.list(Kind("apps", "Deployment"), Selection(namespace.name))
        assert sorted(one["metadata"]["name"] for one in deployments) == sorted(
            f"virt-steward-{name}" for name in NAMES
        )
        roles = await client.list(Kind("rbac.authorization.k8s.io", "ClusterRole"))
        wanted_monitoring = InstallOptions(
            Installation(namespace.name), monitoring=MonitoringOptions(MonitoringApis.PROMETHEUS)
        )
        for obj in parts(wanted_monitoring):
            if obj["kind"] in ("PrometheusRule", "ServiceMonitor"):
                live = await client.get(ref_of(obj))
                assert live["spec"].get("groups") == obj["spec"].get("groups")
        bindings = await client.list(Kind("rbac.authorization.k8s.io", "RoleBinding"), Selection(namespace.name))
        budgets = await client.list(Kind("policy", "PodDisruptionBudget"), Selection(namespace.name))
        classes = await client.list(Kind("scheduling.k8s.io", "PriorityClass"))
        [network] = await client.list(Kind("networking.k8s.io", "NetworkPolicy"), Selection(namespace.name))
    assert "virt-steward-metrics-discovery-openshift-monitoring-prometheus-k8s" in {
        one["metadata"]["name"] for one in bindings
    }
    granted = [role["rules"] for role in roles if role["metadata"]["name"].startswith(STEWARD.csv(STEWARD.versions[0]))]
    shipped = installed(InstallOptions())
    wanted = [obj["rules"] for name in NAMES for obj in shipped[name] if obj["kind"] == "ClusterRole"]
    assert [rules for rules in wanted if rules not in granted] == []
    people = {obj["metadata"]["name"]: obj["rules"] for topic in PEOPLE for obj in shipped[topic]}
    assert people.items() <= {role["metadata"]["name"]: role.get("rules") for role in roles}.items()
    assert {one["metadata"]["name"] for one in budgets} == {f"virt-steward-{name}" for name in NAMES}
    assert "virt-steward" in {one["metadata"]["name"] for one in classes}
    [limits] = shipped["network"]
    assert (network["metadata"]["name"], network["spec"]) == (limits["metadata"]["name"], limits["spec"])
    olm.check()
    async with a_client(olm.control_plane) as client:
        await removed_from_olm(olm, OperatorNamespace(client, namespace.name))


async def removed_from_olm(olm: LifecycleManager, namespace: OperatorNamespace) -> None:
    """As the page on removal says: OLM deletes what it installed; CRDs and their objects stay."""
    howto = Follower("remove", namespace.client, olm.control_plane.kubeconfig)
    config = {
        "apiVersion": "advisor.kubevirt.io/v1alpha1",
        "kind": "VirtPlatformConfig",
        "metadata": {"name": "virt-higher-density"},
        "spec": {"profile": "virt-higher-density", "action": "Ignore"},
    }
    await namespace.client.create(config)
    assert {one["action"] for one in await planned(olm, namespace.name) if one["kind"] == "Deployment"} == {"keep"}
    csv = STEWARD.csv(STEWARD.versions[0])
    names = {"virt-steward": namespace.name, "SUBSCRIPTION": "virt-steward", "NAME": csv}
    [subscription] = (await howto.kubectl("-n virt-steward get subscriptions", **names))["items"]
    assert subscription["status"]["installedCSV"] == csv
    for what in ("subscription SUBSCRIPTION", "clusterserviceversion NAME"):
        deleted = await howto.kubectl(f"-n virt-steward delete {what} --ignore-not-found", **names)
        assert len(deleted["deleted"]) == 1

    async def still_there() -> list[str]:
        kinds = (Kind("apps", "Deployment"), Kind("networking.k8s.io", "NetworkPolicy"))
        found = [one for kind in kinds for one in await namespace.client.list(kind, Selection(namespace.name))]
        roles = await namespace.client.list(Kind("rbac.authorization.k8s.io", "ClusterRole"))
        found += [one for one in roles if one["metadata"]["name"].startswith(csv)]
        return [one["metadata"]["name"] for one in found]

    async def is_gone() -> bool:
        return not await still_there()

    assert await eventually(is_gone, within=180), await still_there()
    left = [one for one in await planned(olm, namespace.name) if one["part"] == "CRD"]
    assert [(one["action"], one["name"]) for one in left] == [
        ("keep", f"{crd.kind.plural}.{crd.kind.group}") for crd in sorted(CRDS, key=lambda crd: crd.kind.plural)
    ]
    assert await namespace.client.get(ref_of(config))
    await namespace.client.delete(ref_of(config))


async def planned(olm: LifecycleManager, namespace: str) -> list[Object]:
    arguments = ("uninstall", "--dry-run", "-o", "json", "--namespace", namespace)
    ended = await steward(*arguments, kubeconfig=olm.control_plane.kubeconfig)
    steps: list[Object] = msgspec.json.decode(ended.stdout)["steps"]
    return [one for one in steps if one["namespace"] in ("", namespace)]


async def test_chart_is_uninstalled_as_helm_does(engine: Path, tmp_path: Path) -> None:
    """Helm deletes the objects of a release, except those that its annotation keeps; `uninstall` removes the rest."""
    release = {"annotations": {"meta.helm.sh/release-name": "virt-steward"}, "labels": {MANAGED_BY: "Helm"}}
    with a_control_plane(tmp_path) as control_plane:
        async with a_client(control_plane) as client:
            await make_namespace(client, "virt-steward")
            objects = rendered(engine, CHART, "virt-steward", {"replicas": 0}, POLICIES)
            for obj in objects:
                for part, values in release.items():
                    obj["metadata"][part] = obj["metadata"].get(part, {}) | values
                await client.create(obj)
            found = await helm_rows(control_plane)
            assert {(one["action"], one["part"]) for one in found} == {
                ("keep", part) for part in ("installation", "admission policy", "CRD", "namespace")
            }
            for obj in reversed(objects):
                if obj["metadata"]["annotations"].get("helm.sh/resource-policy") != "keep":
                    await client.delete(ref_of(obj))
            assert {one["part"] for one in await helm_rows(control_plane)} == {"CRD", "namespace"}
            arguments = ("uninstall", "--yes", "--delete-crds")
            ended = await steward(*arguments, kubeconfig=control_plane.kubeconfig)
            assert ended.code == 0, ended.stderr
            found = await helm_rows(control_plane)
            assert [one["name"] for one in found] == ["kubevirtconfigs.vitistack.io", "virt-steward"]


async def helm_rows(control_plane: ControlPlane) -> list[Object]:
    ended = await steward("uninstall", "--dry-run", "-o", "json", kubeconfig=control_plane.kubeconfig)
    assert ended.code == 0, ended.stderr
    steps: list[Object] = msgspec.json.decode(ended.stdout)["steps"]
    return steps
