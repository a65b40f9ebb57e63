"""How pods are run: priority, spread, disruption, network, one Deployment for all, and the image."""

import os
from functools import cache, partial
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.audit import AuditLog
from tests.cli.commands import PROGRAM, steward
from tests.console.objects import define_all
from tests.eventually import eventually
from tests.leftovers import delete_all
from virt_steward.apis.virtplatformconfig import VIRT_PLATFORM_CONFIG
from virt_steward.controllers import NAMES
from virt_steward.kube.client import Client, Selection
from virt_steward.packaging.bundle import bundle, cluster_service_version
from virt_steward.packaging.operation import OperationOptions
from virt_steward.packaging.overlay import all_in_one_overlay
from virt_steward.packaging.parts import SECURE_METRICS, InstallOptions, installed, kustomization, together
from virt_steward.runtime.access import ALL_IN_ONE, LEASE, Installation
from virt_steward_demo.local.accounts import token_for, write_kubeconfig
from virt_steward_demo.local.controlplane import ControlPlane
from virt_steward_demo.local.processes import Child

Object = dict[str, Any]
ALL = InstallOptions(console=True)
VARIANTS = pytest.mark.parametrize("options", [ALL, together(ALL)], ids=["one for each", "all in one"])
DIGEST = f"registry.example:5000/virt-steward@sha256:{'0a' * 32}"


@cache
def all_parts(options: InstallOptions) -> dict[str, list[Object]]:
    return installed(options)


def every(options: InstallOptions, kind: str = "") -> list[Object]:
    return [obj for objects in all_parts(options).values() for obj in objects if kind in ("", obj["kind"])]


def selected(selector: Object, options: InstallOptions) -> list[str]:
    """The Deployments whose pods a selector selects."""
    labels = selector["matchLabels"].items()
    assert [*selector] == ["matchLabels"]
    found = every(options, "Deployment")
    return [obj["metadata"]["name"] for obj in found if labels <= obj["spec"]["template"]["metadata"]["labels"].items()]


def pods(options: InstallOptions) -> dict[str, Object]:
    return {obj["metadata"]["name"]: obj["spec"]["template"]["spec"] for obj in every(options, "Deployment")}


@VARIANTS
def test_budget_covers_pods_of_one_deployment(options: InstallOptions) -> None:
    budgets = every(options, "PodDisruptionBudget")
    assert [obj["metadata"]["name"] for obj in budgets] == [*pods(options)]
    for obj in budgets:
        assert selected(obj["spec"]["selector"], options) == [obj["metadata"]["name"]]
        # With minAvailable, a single replica would block the drain of its node for ever.
        assert obj["spec"] | {"selector": {}} == {
            "maxUnavailable": 1,
            "unhealthyPodEvictionPolicy": "AlwaysAllow",
            "selector": {},
        }


@VARIANTS
def test_replicas_are_spread_over_nodes_and_zones(options: InstallOptions) -> None:
    for name, pod in pods(options).items():
        keys = {}
        for constraint in pod["topologySpreadConstraints"]:
            assert selected(constraint["labelSelector"], options) == [name]
            keys[constraint["topologyKey"]] = constraint["whenUnsatisfiable"]
        assert keys == dict.fromkeys(("kubernetes.io/hostname", "topology.kubernetes.io/zone"), "ScheduleAnyway")


@VARIANTS
def test_pods_have_priority_class_that_evicts_nothing(options: InstallOptions) -> None:
    [found] = every(options, "PriorityClass")
    assert {pod["priorityClassName"] for pod in pods(options).values()} == {found["metadata"]["name"]}
    assert found["preemptionPolicy"] == "Never"
    assert 0 < found["value"] < 1_000_000_000  # that of KubeVirt itself
    assert not found.get("globalDefault")


def test_other_priority_class_is_used_and_not_installed() -> None:
    options = InstallOptions(operation=OperationOptions(priority_class="system-cluster-critical"))
    assert {pod["priorityClassName"] for pod in pods(options).values()} == {"system-cluster-critical"}
    assert every(options, "PriorityClass") == []
    without = InstallOptions(operation=OperationOptions(priority_class=""))
    assert not any("priorityClassName" in pod for pod in pods(without).values())


@VARIANTS
def test_network_policies_open_metrics_and_console_alone(options: InstallOptions) -> None:
    opened: dict[str, set[int]] = {name: set() for name in pods(options)}
    for policy in every(options, "NetworkPolicy"):
        names = selected(policy["spec"]["podSelector"], options)
        assert "Ingress" in policy["spec"]["policyTypes"]
        for name in names:
            opened[name] |= {one["port"] for rule in policy["spec"]["ingress"] for one in rule["ports"]}
    metrics = {one["containerPort"] for pod in pods(options).values() for one in port_named("metrics", pod)}
    assert opened == {name: metrics | ({8090} if "console" in name else set()) for name in opened}


def port_named(name: str, pod: Object) -> list[Object]:
    return [one for one in pod["containers"][0]["ports"] if one["name"] == name]


@VARIANTS
def test_network_policy_limits_all_pods_to_known_ports(options: InstallOptions) -> None:
    [limits] = [obj for obj in every(options, "NetworkPolicy") if "Egress" in obj["spec"]["policyTypes"]]
    assert selected(limits["spec"]["podSelector"], options) == [*pods(options)]
    assert reached(limits) == {
        *((port, protocol) for port in (53, 5353) for protocol in ("UDP", "TCP")),
        *((port, "TCP") for port in (443, 6443, 8443, 9091)),
    }


def test_network_policy_opens_port_of_gates() -> None:
    gates = "prometheus: {url: 'https://prometheus.example:10443'}\n"
    [policy] = every(InstallOptions(gates=gates), "NetworkPolicy")
    assert (10443, "TCP") in reached(policy)
    anything = InstallOptions(gates=gates, operation=OperationOptions(egress_ports=()))
    [policy] = every(anything, "NetworkPolicy")
    assert policy["spec"]["egress"][-1] == {"ports": []}  # all ports
    assert every(InstallOptions(operation=OperationOptions(network_policies=False)), "NetworkPolicy") == []


def reached(policy: Object) -> set[tuple[int, str]]:
    rules = policy["spec"]["egress"]
    assert all([*rule] == ["ports"] and rule["ports"] for rule in rules)  # to any address, but not to any port
    return {(one["port"], one["protocol"]) for rule in rules for one in rule["ports"]}


def test_all_in_one_has_rights_and_flags_of_each_controller() -> None:
    options = InstallOptions(policy_namespaces=("policies",), activation="opt-out", example_profile=True, gates="{}")
    apart, one = installed(options), installed(together(options))
    assert apart.keys() - one.keys() == set(NAMES)
    assert one.keys() - apart.keys() == {ALL_IN_ONE}
    account = f"virt-steward-{ALL_IN_ONE}"
    [(name, pod)] = pods(together(options)).items()
    assert (name, pod["serviceAccountName"]) == (account, account)
    separate = [obj for each in NAMES for obj in apart[each]]
    assert rights(one[ALL_IN_ONE]) == rights(separate)
    assert {subject["name"] for obj in one[ALL_IN_ONE] for subject in obj.get("subjects", ())} == {account}
    flags = {flag for each in pods(options).values() for flag in each["containers"][0]["args"]}
    [container] = pod["containers"]
    expected = {flag for flag in flags if not flag.startswith("--controllers=")}
    assert set(container["args"]) == expected | {f"--controllers={','.join(NAMES)}"}
    assert {one["name"] for one in container["volumeMounts"]} == {one["name"] for one in pod["volumes"]}


def rights(objects: list[Object]) -> dict[tuple[str, str, str], Object]:
    found = [obj for obj in objects if "rules" in obj]
    return {(obj["kind"], obj["metadata"].get("namespace", ""), obj["metadata"]["name"]): obj for obj in found}


def test_overlay_makes_all_in_one_of_base() -> None:
    """As kustomize does it: resources first, then patches of what their targets select."""
    files = kustomization(InstallOptions())
    overlay = all_in_one_overlay(InstallOptions())
    listing = yaml.safe_load(overlay["kustomization.yaml"])
    assert listing["resources"] == ["../base", "all-in-one.yaml"]
    base = [obj for name in yaml.safe_load(files["kustomization.yaml"])["resources"] for obj in read(files[name])]
    found = [*base, *read(overlay["all-in-one.yaml"])]
    for one in listing["patches"]:
        found = patched(found, one["target"], yaml.safe_load(one["patch"]))
    wanted = {name_of(obj): obj for obj in every(together(InstallOptions()))}
    assert {name_of(obj): obj for obj in found} == wanted
    assert len(found) == len(wanted)


def read(text: str) -> list[Object]:
    return list(yaml.safe_load_all(text))


def name_of(obj: Object) -> tuple[str, str, str]:
    return obj["kind"], obj["metadata"].get("namespace", ""), obj["metadata"]["name"]


def patched(objects: list[Object], target: Object, patch: Object) -> list[Object]:
    label, _, names = target["labelSelector"].partition(" in ")
    chosen = names.strip("()").split(",")
    is_target = [
        obj["kind"] == target["kind"] and obj["metadata"].get("labels", {}).get(label) in chosen for obj in objects
    ]
    assert any(is_target)
    assert patch["$patch"] == "delete"
    return [obj for obj, chosen_one in zip(objects, is_target, strict=True) if not chosen_one]


BESIDE_CSV = ("PodDisruptionBudget", "PriorityClass", "NetworkPolicy")
"""Kinds that OLM installs as they are in the bundle."""


@VARIANTS
def test_bundle_has_same_objects(options: InstallOptions) -> None:
    files = bundle(options)
    shipped = {name_of(obj): obj for path, text in files.items() if path.startswith("manifests/") for obj in read(text)}
    for obj in every(options):
        if obj["kind"] in BESIDE_CSV and "console" not in obj["metadata"]["name"]:
            metadata = {name: value for name, value in obj["metadata"].items() if name != "namespace"}
            assert shipped[obj["kind"], "", metadata["name"]] == {**obj, "metadata": metadata}
    people = [obj for topic in ("roles", "aggregated-roles") for obj in installed(options)[topic]]
    assert {name_of(obj): obj for obj in people}.items() <= shipped.items()
    deployments = cluster_service_version(options)["spec"]["install"]["spec"]["deployments"]
    assert [one["name"] for one in deployments] == [name for name in pods(options) if "console" not in name]


async def test_image_by_digest_is_taken_by_all_methods(tmp_path: Path) -> None:
    ended = await steward("manifests", "--image", DIGEST, "--console", kubeconfig=tmp_path / "none")
    printed = yaml.safe_load_all(ended.stdout)
    images = {
        container["image"]
        for obj in printed
        if obj["kind"] == "Deployment"
        for container in obj["spec"]["template"]["spec"]["containers"]
    }
    assert images == {DIGEST}
    csv = cluster_service_version(InstallOptions(image=DIGEST))["spec"]
    assert csv["relatedImages"] == [{"name": "virt-steward", "image": DIGEST}]
    assert "virt-steward:0" not in str(csv)
    # kustomize replaces an image by its name before the tag: images: [{name: virt-steward, newName: …, digest: …}]
    assert {pod["containers"][0]["image"].partition(":")[0] for pod in pods(ALL).values()} == {"virt-steward"}


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        pytest.param(("--image", "virt-steward@sha256:abc"), "must be NAME:TAG or NAME@sha256", id="short digest"),
        pytest.param(("--image", ""), "must be NAME:TAG", id="no image"),
        pytest.param(("--egress-ports", "443,https"), "must be numbers", id="port by name"),
        pytest.param(("--egress-ports", "0"), "must be numbers from 1", id="no port"),
    ],
)
async def test_manifests_refuses_invalid_values(arguments: tuple[str, ...], complaint: str, tmp_path: Path) -> None:
    ended = await steward("manifests", *arguments, kubeconfig=tmp_path / "none")
    assert (ended.code, ended.stdout) == (1, "")
    assert complaint in ended.stderr


async def test_all_in_one_runs_with_its_rights(
    admin: Client, control_plane: ControlPlane, namespace: str, audit_log: AuditLog, tmp_path: Path
) -> None:
    """Each controller leads and works, and nothing is forbidden."""
    await define_all(admin)
    options = together(InstallOptions(Installation(namespace, prefix=namespace)))
    [account, *rbac] = [obj for obj in installed(options)[ALL_IN_ONE] if obj["kind"] not in NOT_RBAC]
    write_kubeconfig(tmp_path / "kubeconfig", control_plane, await token_for(admin, [account, *rbac]))
    [container] = pods(options)[account["metadata"]["name"]]["containers"]
    for_the_test = [f"--kubeconfig={tmp_path / 'kubeconfig'}", f"--namespace={namespace}"]
    nothing_served = [f"--{name}-bind-address=0" for name in ("metrics", "debug", "health-probe")]
    flags = [flag for flag in container["args"] if flag not in SECURE_METRICS]
    command = [str(PROGRAM), *container["command"][1:], *flags, *for_the_test, *nothing_served]
    mark = audit_log.mark()
    child = Child(command, log=tmp_path / "log", cwd=tmp_path, env=dict(os.environ))
    try:
        assert await eventually(partial(all_lead, admin, namespace)), child.last_output()
        assert await eventually(partial(profiles_are_offered, admin))
    finally:
        child.stop(grace=10)
        await delete_all(admin, VIRT_PLATFORM_CONFIG)
    user = f"system:serviceaccount:{namespace}:{account['metadata']['name']}"
    requests = [one for one in audit_log.since(mark) if one.user == user]
    assert requests
    assert [f"{one.verb} {one.uri}" for one in requests if one.code == 403] == []


NOT_RBAC = ("Deployment", "PodDisruptionBudget")


async def all_lead(client: Client, namespace: str) -> bool:
    leases = await client.list(LEASE, Selection(namespace))
    holders = {one["metadata"]["name"]: one["spec"].get("holderIdentity") for one in leases}
    return all(holders.get(f"virt-steward-{name}") for name in NAMES)


async def profiles_are_offered(client: Client) -> bool:
    return bool(await client.list(VIRT_PLATFORM_CONFIG))
