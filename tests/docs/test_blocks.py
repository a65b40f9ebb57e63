"""Every code block of the documentation is executed, or says why not.

Commands of ours run for real against an API server that has our CRDs and stubs of others, and no objects: that an
object is not found is an answer. What they print for `kubectl apply` is applied as a server-side dry run, and so are
manifests. Of kubectl, verbs, flags and kinds are checked; that it works is not ours to test.
"""

import re
import shlex
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.cli.commands import Ended, steward
from tests.docs.blocks import FOLLOWED, INDENTED, ROOT, Block, blocks_of, executed, pages
from tests.test_house import targets
from virt_steward.apis.crds import CRDS
from virt_steward.holds.gate_settings import decode_gates
from virt_steward.kube.client import Client
from virt_steward.kube.errors import AlreadyExists
from virt_steward.runtime.notification_endpoints import load_endpoints
from virt_steward_demo.local.controlplane import ControlPlane
from virt_steward_demo.simulation.install import definition, install

Object = dict[str, Any]

STUBS = (
    "HyperConverged",
    "KubeDescheduler",
    "Subscription",
    "InstallPlan",
    "Machine",
    "MachineConfigPool",
    "PrometheusRule",
    "ServiceMonitor",
)
PLACES = ("virt-steward", "cert-manager", "kubevirt-secrets", "openshift-cnv", "shop", "kube-system")
"""Namespaces of manifests: a dry run does not create them."""
WORDS = {
    "PROFILE": "load-aware-rebalancing",
    "ASSET": "swap-enable",
    "NAMESPACE": "default",
    "KIND": "configmap",
    "$IMAGE": "registry.example/virt-steward:0.2.0",
    "GROUP": "example",
}
"""What a reader puts in the place of these words."""
ONLY_PARSED = ("run", "demo", "local")
"""They do not end by themselves, or need more than an API server."""
SWITCHES = {
    "-A",
    "--show-managed-fields",
    "--server-side",
    "--force-conflicts",
    "--overwrite",
    "--ignore-not-found",
    "-w",
}
"""Flags of kubectl without a value."""
VERBS = {
    "get": {"-A", "-o", "-l", "-w", "--field-selector", "--show-managed-fields"},
    "apply": {"-f", "-k", "--field-manager", "--server-side", "--force-conflicts"},
    "annotate": {"--overwrite"},
    "label": {"--overwrite"},
    "patch": {"--type", "-p"},
    "delete": {"--ignore-not-found", "-l", "-f"},
    "port-forward": set(),
    "logs": {"-l", "--tail"},
    "create": {
        "--from-literal",
        "--from-file",
        "--dry-run",
        "-o",
        "--clusterrole",
        "--serviceaccount",
        "--cert",
        "--key",
    },
}
BUILT_IN = {
    *("pods", "leases", "lease", "configmap", "configmaps", "secret", "events", "crd", "storageclass", "deployments"),
    *(
        "controllerrevisions",
        "validatingadmissionpolicies",
        "events.events.k8s.io",
        "KIND",
        "service",
        "rolebinding",
        "clusterrolebinding",
        "clusterserviceversion",
    ),
}
PRINTS_MANIFESTS = ("crds", "rbac", "policies", "manifests")

VPC = {"apiVersion": "advisor.kubevirt.io/v1alpha1", "kind": "VirtPlatformConfig"}
PROFILE = {**VPC, "metadata": {"name": "load-aware-rebalancing"}, "spec": {"profile": "load-aware-rebalancing"}}
APPROVER = {
    "apiVersion": "operators.bapu.cloud/v1alpha1",
    "kind": "InstallPlanApprover",
    "metadata": {"name": "pinned", "namespace": "virt-steward"},
}
HCO = {
    "apiVersion": "hco.kubevirt.io/v1",
    "kind": "HyperConverged",
    "metadata": {"name": "kubevirt-hyperconverged", "namespace": "openshift-cnv"},
}
PARTS = {"spec.policy": APPROVER, "spec.dryRun": APPROVER, "spec": PROFILE, "metadata.annotations": HCO}
"""Of which object a part is shown, by the first path that it has."""


def _our_commands() -> dict[str, dict[str, Block]]:
    """By page: the commands of ours, each with the block that has it first. One that several pages have runs once."""
    found: dict[str, Block] = {}
    for block in executed():
        if block.language != "yaml":
            found |= {line: found.get(line, block) for line in block.commands if line.startswith("virt-steward ")}
    pages_with_commands = sorted({block.page for block in found.values()})
    return {page: {line: one for line, one in found.items() if one.page == page} for page in pages_with_commands}


OUR_COMMANDS = _our_commands()


@pytest.fixture
async def served(admin: Client) -> Client:
    """Our CRDs and some of others."""
    await install(admin, *(crd.manifest() for crd in CRDS), *STUBS)
    for name in PLACES:
        await _create_namespace(admin, name)
    return admin


async def _create_namespace(client: Client, name: str) -> None:
    try:
        await client.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    except AlreadyExists:
        return


def test_pages_have_no_blocks_without_a_fence() -> None:
    assert not [str(path.relative_to(ROOT)) for path in pages() if INDENTED.search(path.read_text())]


def test_pages_with_tests_of_their_own_exist() -> None:
    assert all((ROOT / page).exists() and (ROOT / test).exists() for page, test in FOLLOWED.items())


@pytest.mark.parametrize("block", executed(), ids=str)
def test_block_can_be_executed(block: Block) -> None:
    """Each line is a command of ours, of kubectl or of make; anything else is an excerpt, and says why."""
    if block.language == "yaml":
        assert all(isinstance(one, dict) for one in yaml.safe_load_all(block.text))
        return
    for line in block.commands:
        for command in _split(shlex.split(line)):
            match command:
                case ["virt-steward", *_]:
                    pass  # it is executed below
                case ["kubectl", *_]:
                    _kubectl(command)
                case ["make", target]:
                    assert target in targets()
                case _:
                    pytest.fail(f"not executed: {shlex.join(command)}. Say why above it: <!-- excerpt: REASON -->")


@pytest.mark.parametrize("page", OUR_COMMANDS)
async def test_commands_of_blocks_run(served: Client, control_plane: ControlPlane, tmp_path: Path, page: str) -> None:
    """Page by page, so that a busy machine has the time limit of a test for few commands, not for all."""
    for line, block in OUR_COMMANDS[page].items():
        command, *_ = _split(shlex.split(line))
        words = [_filled(word, block, control_plane, tmp_path) for word in command[1:]]
        if words[0] in ONLY_PARSED:
            words.append("--help")
        ended = await steward(*words, kubeconfig=control_plane.kubeconfig)
        assert "Traceback" not in ended.stderr, f"{block}: {ended.stderr}"
        assert "see --help" not in ended.stderr, f"{block}: {line}: {ended.stderr}"
        if words[0] in PRINTS_MANIFESTS:
            await _apply_all(served, ended, block)


async def test_manifests_of_blocks_are_accepted(served: Client, tmp_path: Path) -> None:
    blocks = [block for block in executed() if block.language == "yaml"]
    assert blocks
    for block in blocks:
        for manifest in yaml.safe_load_all(block.text):
            await _check(served, manifest, block, tmp_path)


async def _check(client: Client, manifest: Object, block: Block, folder: Path) -> None:
    if "gates" in manifest and "apiVersion" not in manifest:
        assert decode_gates(block.text.encode()).gates
    elif "notify-config" in block.text:
        (folder / "notify.yaml").write_text(block.text)
        assert load_endpoints(str(folder / "notify.yaml"))
    else:
        await _dry_run(client, manifest if "apiVersion" in manifest else _completed(manifest, block), block)


async def _dry_run(client: Client, manifest: Object, block: Block) -> None:
    try:
        await client.apply(manifest, manager="kubectl", force=True, dry_run=True)
    except Exception as error:  # noqa: BLE001 - any error is one of the page
        pytest.fail(f"{block}: {error}")


async def _apply_all(client: Client, ended: Ended, block: Block) -> None:
    assert ended.code == 0, f"{block}: {ended.stderr}"
    for manifest in filter(None, yaml.safe_load_all(ended.stdout)):
        if manifest["kind"] != "ServiceMonitor":  # its CRD is not ours
            await _dry_run(client, manifest, block)


def _completed(part: Object, block: Block) -> Object:
    """The object that a page shows a part of."""
    for path, whole in PARTS.items():
        if _has(part, path.split(".")):
            return _merged(whole, part)
    return pytest.fail(f"{block}: of which object is it a part? Complete PARTS")


def _has(part: Any, names: list[str]) -> bool:
    return not names or (isinstance(part, dict) and names[0] in part and _has(part[names[0]], names[1:]))


def _merged(whole: Any, part: Any) -> Any:
    if not (isinstance(whole, dict) and isinstance(part, dict)):
        return part
    return whole | {name: _merged(whole.get(name), value) for name, value in part.items()}


def _split(words: list[str]) -> list[list[str]]:
    """The commands of a pipe."""
    found: list[list[str]] = [[]]
    for word in words:
        if word == "|":
            found.append([])
        else:
            found[-1].append(word)
    return [one for one in found if one]


def _filled(word: str, block: Block, control_plane: ControlPlane, folder: Path) -> str:
    """A word of a command with what a reader would put there: names, and files that the page shows."""
    if word == "KUBECONFIG":
        return str(control_plane.kubeconfig)
    if word == "FOLDER":
        return str(folder / "folder")
    if word.endswith(".yaml"):
        shown = [
            one.text
            for one in blocks_of(ROOT / block.page)
            if one.language == "yaml" and f"\n{word.removesuffix('.yaml')}:" in f"\n{one.text}"
        ]
        (folder / word).write_text(shown[0])
        return str(folder / word)
    return re.sub("|".join(map(re.escape, WORDS)), lambda found: WORDS[found[0]], word)


def _kubectl(command: list[str]) -> None:
    """Read it as kubectl would: verbs and flags that we know, on kinds that exist."""
    words, flags = [], set()
    following = iter(command[1:])
    for word in following:
        name, _, value = word.partition("=")
        if not word.startswith("-") or word == "-":
            words.append(word)
            continue
        flags.add(name)
        if not value and name not in SWITCHES:
            next(following)
    verb, *rest = words
    assert flags <= VERBS[verb] | {"-n"}, f"kubectl {verb} has no {flags - VERBS[verb]}"
    if verb in ("get", "annotate", "label", "patch", "delete"):
        assert set(rest[0].split(",")) <= _kinds(), f"kubectl does not know {rest[0]}"


@cache
def _kinds() -> frozenset[str]:
    definitions = [crd.manifest() for crd in CRDS] + [definition(name) for name in STUBS]
    names = [one["spec"]["names"] for one in definitions]
    ours = {name for one in names for name in (one["plural"], one["singular"], *one.get("shortNames", ()))}
    groups = {f"{one['spec']['names']['plural']}.{one['spec']['group']}" for one in definitions}
    return frozenset(ours | groups | BUILT_IN)
