"""Commands that we print or document are applied one after the other, and none takes away what an earlier one gave."""

import asyncio
import json
import re
import shlex
from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from tests.clients import a_client
from tests.eventually import eventually
from virt_steward.cli.manifests import manifests, rbac
from virt_steward.controllers import NAMES
from virt_steward.kube.client import Client
from virt_steward.kube.errors import NotFound
from virt_steward.objects.identity import Key, Kind, Ref, ref_of
from virt_steward.runtime.access import ALL_IN_ONE
from virt_steward_demo.local.controlplane import ControlPlane

ROOT = Path(__file__).parents[2]
PRINTED = r"virt-steward ((?:rbac|manifests) --[^`'|#\n]*)"
OURS = ("ServiceAccount", "Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding", "Deployment", "Namespace")
"""Kinds whose content flags can change. CRDs and policies are the same with every flag, and concern other tests."""
IMAGE = "registry.example/virt-steward:tested"
GATES = """\
gates:
  no-migrations:
    objects: {apiVersion: kubevirt.io/v1, kind: VirtualMachineInstanceMigration, namespace: shop, absent: true}
readyMade: [cluster-operators]
"""
DEPLOYMENT = Kind("apps", "Deployment", "deployments")
NAMESPACES = ("virt-steward", "shop", "kubevirt-secrets", "cert-manager", "elsewhere")
"""Those of the commands. Each test has its own, with a prefix: namespaces are deleted slowly."""
EARLIER = (
    'manifests --image "$IMAGE"',
    "rbac --controllers placement --secret-namespaces virt-steward",
    "rbac --controllers approver --target-namespaces virt-steward,shop",
    "rbac --controllers advisor --example-profile",
)
"""What an admin may have applied before."""

app = typer.Typer()
app.command()(rbac)
app.command()(manifests)


def printed_commands() -> list[str]:
    """Those of the pages and of the texts in the code."""
    pages = [*(ROOT / "docs" / "howto").glob("*.md"), *(ROOT / "docs" / "runbooks").glob("*.md"), ROOT / "README.md"]
    found = [one for path in sorted(pages) for one in re.findall(PRINTED, path.read_text().replace("\\\n", " "))]
    for path in sorted((ROOT / "src").rglob("*.py")):
        text = re.sub(r'"\n\s*f?"', "", path.read_text())  # a text in several literals
        text = re.sub(r"\{[a-z_.]*controller\}", "NAME", text)
        found += [re.sub(r"\{[a-z_.]*\}", "", one.partition('"')[0]) for one in re.findall(PRINTED, text)]
    return list(dict.fromkeys(one.strip() for one in found if "--into" not in one))  # which writes files


def words_of(command: str, folder: Path, prefix: str) -> list[str]:
    """The words of a command, with values for its placeholders."""
    gates = folder / "gates.yaml"
    gates.write_text(GATES.replace("namespace: ", f"namespace: {prefix}"))
    values = {
        "$IMAGE": IMAGE,
        "NAME": "advisor",
        "NAMESPACE": "elsewhere",
        "NAME[,NAME]": "elsewhere",
        "FILE": str(gates),
        gates.name: str(gates),
    }
    words = [values.get(word, word) for word in shlex.split(command)]
    words += ["elsewhere"] if words[-1].endswith("-namespaces") else []
    for number, word in enumerate(words[:-1], start=1):
        if word.endswith("-namespaces"):
            words[number] = ",".join(f"{prefix}{name}" for name in words[number].split(","))
    return [*words, "--namespace", f"{prefix}virt-steward"]


@dataclass(slots=True)
class Installer:
    """An admin who applies what commands print, as kubectl does: fields that are gone from it are removed."""

    client: Client
    folder: Path
    prefix: str
    given: set[tuple[str, ...]] = field(default_factory=set)
    """All rights that a command has given."""
    printed: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    applied: dict[Ref, dict[str, Any]] = field(default_factory=dict)

    async def apply(self, command: str) -> None:
        if command not in self.printed:
            result = await asyncio.to_thread(
                CliRunner().invoke, app, [*words_of(command, self.folder, self.prefix), "-o", "json"]
            )
            assert result.exit_code == 0, f"{command}: {result.output} {result.exception}"
            self.printed[command] = [one for one in json.loads(result.stdout)["items"] if one["kind"] in OURS]
        objects = self.printed[command]
        for one in objects:
            if self.applied.get(ref_of(one)) != one:  # else there is nothing to change
                await self.client.apply(one, manager="kubectl", force=True)
            self.applied[ref_of(one)] = one
        self.given |= rights(objects)

    async def lost(self) -> list[tuple[str, ...]]:
        ordered = sorted(self.given)
        allowed = await asyncio.gather(*(self._is_allowed(right) for right in ordered))
        return [right for right, is_allowed in zip(ordered, allowed, strict=True) if not is_allowed]

    async def _is_allowed(self, right: tuple[str, ...]) -> bool:
        user, namespace, verb, group, resource, name = right
        plural, _, subresource = resource.partition("/")
        attributes = {
            "namespace": namespace,
            "verb": verb,
            "group": group,
            "resource": plural,
            "subresource": subresource,
            "name": name,
        }
        review = {"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "metadata": {"name": ""}}
        answer = await self.client.create({**review, "spec": {"user": user, "resourceAttributes": attributes}})
        return bool(answer["status"]["allowed"])


def rights(objects: list[dict[str, Any]]) -> set[tuple[str, ...]]:
    """One right of each rule of each bound role: its last verb on its first resource and name. Paths are left out."""
    roles = {(one["kind"], ref_of(one).key): one["rules"] for one in objects if one["kind"].endswith("Role")}
    found = set()
    for binding in (one for one in objects if one["kind"].endswith("RoleBinding")):
        [subject] = binding["subjects"]
        user = f"system:serviceaccount:{subject['namespace']}:{subject['name']}"
        key = Key(binding["metadata"].get("namespace", ""), binding["roleRef"]["name"])
        for rule in roles[binding["roleRef"]["kind"], key]:
            if "nonResourceURLs" in rule:
                continue
            name = rule.get("resourceNames", [""])[0]
            found.add((user, key.namespace, rule["verbs"][-1], rule["apiGroups"][0], rule["resources"][0], name))
    return found


@pytest.fixture
async def installer(control_plane: ControlPlane, namespace: str, tmp_path: Path) -> AsyncIterator[Installer]:
    async with a_client(control_plane) as client:
        prefix = f"{namespace}-"
        for name in (f"{prefix}{one}" for one in NAMESPACES):
            await client.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}, manager="tests")
        yield Installer(client, tmp_path, prefix)
        for kind in ("ClusterRole", "ClusterRoleBinding"):
            for one in await client.list(Kind("rbac.authorization.k8s.io", kind, f"{kind.lower()}s")):
                if one["metadata"]["name"].startswith("virt-steward-"):
                    await client.delete(ref_of({**one, "apiVersion": "rbac.authorization.k8s.io/v1", "kind": kind}))
        for name in (f"{prefix}{one}" for one in NAMESPACES):
            with suppress(NotFound):
                await client.delete(Ref(Kind("", "Namespace", "namespaces"), Key("", name)))


def test_printed_commands_are_found() -> None:
    """Else the test below would check nothing."""
    found = printed_commands()
    for part in ("--secret-namespaces", "--target-namespaces", "--opt-out-deletes", "--gates", "--only console"):
        assert any(part in one for one in found), part


async def test_no_printed_command_takes_rights_or_images_away(installer: Installer) -> None:
    in_order = printed_commands()
    for command in (*EARLIER, *in_order):
        await installer.apply(command)
    await nothing_is_lost(installer)
    for command in reversed(in_order):
        await installer.apply(command)
    await nothing_is_lost(installer)


APART, TOGETHER = 'manifests --image "$IMAGE"', 'manifests --image "$IMAGE" --all-in-one'
LATER = "rbac --controllers placement,console --secret-namespaces shop --all-in-one"


@pytest.mark.parametrize("order", [(APART, TOGETHER), (TOGETHER, APART)], ids=["apart-first", "together-first"])
async def test_all_in_one_and_separate_deployments_take_nothing_from_each_other(
    installer: Installer, order: tuple[str, str]
) -> None:
    for command in (*order, LATER):
        await installer.apply(command)
    assert {f"virt-steward-{name}" for name in (*NAMES, ALL_IN_ONE)} <= accounts(installer.given)
    assert accounts(rights(installer.printed[LATER])) == {f"virt-steward-{ALL_IN_ONE}", "virt-steward-console"}
    await no_right_is_lost(installer)
    former, latter = ({ref_of(one): one for one in installer.printed[command]} for command in order)
    shared = former.keys() & latter.keys()
    assert {"Role", "ClusterRole"} <= {ref.kind.name for ref in shared}
    assert [ref for ref in shared if former[ref] != latter[ref]] == []


def accounts(given: set[tuple[str, ...]]) -> set[str]:
    return {right[0].rpartition(":")[2] for right in given}


async def no_right_is_lost(installer: Installer) -> None:
    async def all_rights_stand() -> bool:  # the authorizer reads roles from a cache
        return not await installer.lost()

    assert await eventually(all_rights_stand, within=5), await installer.lost()


async def nothing_is_lost(installer: Installer) -> None:
    await no_right_is_lost(installer)
    for name in (*NAMES, "console"):
        deployment = await installer.client.get(
            Ref(DEPLOYMENT, Key(f"{installer.prefix}virt-steward", f"virt-steward-{name}"))
        )
        assert [one["image"] for one in deployment["spec"]["template"]["spec"]["containers"]] == [IMAGE], name
