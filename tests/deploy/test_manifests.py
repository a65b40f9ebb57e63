"""What is installed follows from the code, and an API server takes it."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.cli.commands import steward
from virt_steward.cli.manifests import PackageFormat, files_of
from virt_steward.controllers import NAMES
from virt_steward.controllers.autopilot.overrides.scope import Activation
from virt_steward.kube.client import Client
from virt_steward.objects.identity import Key
from virt_steward.packaging.monitoring import MonitoringApis, MonitoringOptions, monitor
from virt_steward.packaging.parts import SECURE_METRICS, InstallOptions, installed, together
from virt_steward.runtime.access import ALL_IN_ONE, Installation

DEPLOY = Path(__file__).parents[2] / "deploy"
BASE = DEPLOY / "base"
FOLDERS = {
    PackageFormat.KUSTOMIZE: BASE,
    PackageFormat.HELM: DEPLOY / "chart",
    PackageFormat.OLM: DEPLOY / "bundle",
    PackageFormat.ALL_IN_ONE: DEPLOY / "all-in-one",
    PackageFormat.PROMETHEUS: DEPLOY / "monitoring",
}


@pytest.mark.parametrize("package", PackageFormat)
def test_generated_files_are_current(package: PackageFormat) -> None:
    folder = FOLDERS[package]
    found = {str(path.relative_to(folder)): path.read_text() for path in folder.rglob("*") if path.is_file()}
    apis = MonitoringApis.PROMETHEUS if package is PackageFormat.OLM else MonitoringApis.NONE
    options = InstallOptions(monitoring=MonitoringOptions(apis))
    assert found == files_of(package, options), "run 'make manifests'"


def test_kustomization_is_complete() -> None:
    listed = yaml.safe_load((BASE / "kustomization.yaml").read_text())["resources"]
    assert {*listed, "kustomization.yaml"} == {path.name for path in BASE.iterdir()}
    assert {f"{name}.yaml" for name in NAMES} <= set(listed)


def test_deployment_uses_own_service_account() -> None:
    parts = installed(InstallOptions())
    for name in NAMES:
        [account] = [obj["metadata"]["name"] for obj in parts[name] if obj["kind"] == "ServiceAccount"]
        pod = the_deployment(parts[name])["spec"]["template"]["spec"]
        assert pod["serviceAccountName"] == account
        assert pod["containers"][0]["args"] == [f"--controllers={name}", *SECURE_METRICS]


def test_other_hyperconverged_is_passed_and_granted() -> None:
    parts = installed(InstallOptions(hco=Key("virtualization", "mine"), console=True))
    for name in ("advisor", "autopilot", "console"):
        container = the_deployment(parts[name])["spec"]["template"]["spec"]["containers"][0]
        assert container["args"][-1] == "--hyperconverged=virtualization/mine"
        role = next(obj for obj in parts[name] if obj["kind"] == "ClusterRole")
        named = {one for rule in role["rules"] for one in rule.get("resourceNames", ())}
        assert "mine" in named
        assert "kubevirt-hyperconverged" not in named


def test_policy_namespaces_are_passed() -> None:
    parts = installed(InstallOptions(console=True, policy_namespaces=("policies", "platform")))
    flag = "--policy-namespaces=policies,platform"
    assert {name for name, objects in parts.items() if flag in str(objects)} == {"approver", "console"}
    assert "--policy-namespaces" not in str(installed(InstallOptions(console=True)))


def test_notifications_are_passed() -> None:
    options = InstallOptions(console=True, notifications=True, notify=(("autopilot", "ops"), ("placement", "team")))
    parts = installed(options)
    flag = "--notify-config=/etc/virt-steward/notify/notify.yaml"
    assert {name for name, objects in parts.items() if flag in str(objects)} == set(NAMES)
    assert [name for name, objects in parts.items() if "--notify=autopilot=ops'" in str(objects)] == ["autopilot"]
    assert [name for name, objects in parts.items() if "--notify=placement=team'" in str(objects)] == ["placement"]
    assert "--notify=autopilot=ops,placement=team" in str(installed(together(options))[ALL_IN_ONE])
    assert "--notify" not in str(installed(InstallOptions(console=True)))


def test_activation_is_passed() -> None:
    parts = installed(InstallOptions(console=True, activation=Activation.OPT_OUT))
    assert {name for name, objects in parts.items() if "--activation=opt-out" in str(objects)} == {
        "autopilot",
        "console",
    }
    assert "--activation" not in str(installed(InstallOptions(console=True)))


def test_metrics_service_selects_all_controllers() -> None:
    parts = installed(InstallOptions(console=True))
    service = parts["metrics"][0]
    chosen = monitor(Installation())["spec"]["selector"]["matchLabels"]
    assert chosen.items() <= service["metadata"]["labels"].items()
    [port] = service["spec"]["ports"]
    assert monitor(Installation())["spec"]["endpoints"][0]["port"] == port["name"]
    for name in (*NAMES, "console"):
        pod = the_deployment(parts[name])["spec"]["template"]
        assert service["spec"]["selector"].items() <= pod["metadata"]["labels"].items()
        assert port["targetPort"] in [one["containerPort"] for one in pod["spec"]["containers"][0]["ports"]]


def test_metrics_are_served_with_the_certificate_of_the_service() -> None:
    parts = installed(InstallOptions(Installation("here"), console=True))
    service, authority, reader, *_ = parts["metrics"]
    [endpoint] = monitor(Installation("here"))["spec"]["endpoints"]
    tls = endpoint["tlsConfig"]
    assert (endpoint["scheme"], tls["serverName"]) == ("https", f"{service['metadata']['name']}.here.svc")
    assert tls["ca"]["configMap"]["name"] == authority["metadata"]["name"]
    assert reader["rules"] == [{"nonResourceURLs": ["/metrics"], "verbs": ["get"]}]
    secret = service["metadata"]["annotations"]["service.beta.openshift.io/serving-cert-secret-name"]
    for name in (*NAMES, "console"):
        pod = the_deployment(parts[name])["spec"]["template"]["spec"]
        [volume, *_], [container] = pod["volumes"], pod["containers"]
        assert volume["secret"] == {"secretName": secret, "optional": True}
        [mount, *_] = container["volumeMounts"]
        assert f"--metrics-cert-path={mount['mountPath']}" in container["args"]
        assert container["livenessProbe"]["httpGet"].get("scheme", "HTTP") == "HTTP"
        granted = [
            rule["resources"] for obj in parts[name] for rule in obj.get("rules", ()) if rule["verbs"] == ["create"]
        ]
        assert ["tokenreviews"] in granted
        assert ["subjectaccessreviews"] in granted


def the_deployment(objects: list[dict[str, Any]]) -> dict[str, Any]:
    [deployment] = [obj for obj in objects if obj["kind"] == "Deployment"]
    return deployment


ALL = InstallOptions(console=True)


@pytest.mark.parametrize("topic", [*installed(ALL) | installed(together(ALL))])
async def test_api_server_accepts_manifests(admin: Client, namespace: str, topic: str) -> None:
    options = replace(ALL, installation=Installation(namespace))
    for obj in (installed(options) | installed(together(options)))[topic]:
        answer = await admin.apply(obj, manager="installer", dry_run=True)
        assert answer.object["metadata"]["uid"]


def test_bundle_grants_same_as_kustomization() -> None:
    csv = yaml.safe_load((DEPLOY / "bundle" / "manifests" / "virt-steward.clusterserviceversion.yaml").read_text())
    spec = csv["spec"]["install"]["spec"]
    parts = [obj for name in NAMES for obj in installed(InstallOptions())[name]]
    for kind, listed in (("ClusterRole", spec["clusterPermissions"]), ("Role", spec["permissions"])):
        granted = [one["rules"] for one in listed]
        assert granted == [obj["rules"] for obj in parts if obj["kind"] == kind]
        accounts = {obj["metadata"]["name"] for obj in parts if obj["kind"] == "ServiceAccount"}
        assert {one["serviceAccountName"] for one in listed} == accounts
    assert [one["name"] for one in spec["deployments"]] == [f"virt-steward-{name}" for name in NAMES]


@pytest.mark.parametrize("name", [*NAMES, "console"])
async def test_arguments_of_deployments_are_accepted(name: str, tmp_path: Path) -> None:
    """Once, `run` took some of them for flags of the Go operators, and no pod could start."""
    [container] = the_deployment(installed(InstallOptions(console=True))[name])["spec"]["template"]["spec"][
        "containers"
    ]
    command = [*container["command"], *container["args"]]
    ended = await steward(*command[1:], kubeconfig=tmp_path / "none")
    [line] = ended.stderr.splitlines()
    assert line.startswith("virt-steward: no kubeconfig found"), "which is all that it misses"
