"""What is installed follows from the code, and an API server takes it."""

from pathlib import Path

import pytest
import yaml

from virt_steward.cli.manifests import IMAGE, installed, texts
from virt_steward.controllers import NAMES
from virt_steward.kube.client import Client
from virt_steward.runtime.access import Installation

BASE = Path(__file__).parents[2] / "deploy" / "base"


def test_the_generated_manifests_are_current() -> None:
    wanted = texts(installed(Installation(), IMAGE))
    assert {path.name: path.read_text() for path in BASE.iterdir()} == wanted, "run 'make manifests'"


def test_the_kustomization_has_every_file_and_every_controller() -> None:
    listed = yaml.safe_load((BASE / "kustomization.yaml").read_text())["resources"]
    assert {*listed, "kustomization.yaml"} == {path.name for path in BASE.iterdir()}
    assert {f"{name}.yaml" for name in NAMES} <= set(listed)


def test_each_controller_runs_under_its_own_account() -> None:
    files = installed(Installation(), IMAGE)
    for name in NAMES:
        [account] = [obj["metadata"]["name"] for obj in files[f"{name}.yaml"] if obj["kind"] == "ServiceAccount"]
        [deployment] = [obj for obj in files[f"{name}.yaml"] if obj["kind"] == "Deployment"]
        pod = deployment["spec"]["template"]["spec"]
        assert pod["serviceAccountName"] == account
        assert pod["containers"][0]["command"][-1] == f"--controllers={name}"


@pytest.mark.parametrize("file", [*installed(Installation(), IMAGE)])
async def test_an_api_server_takes(admin: Client, namespace: str, file: str) -> None:
    for obj in installed(Installation(namespace), IMAGE)[file]:
        answer = await admin.apply(obj, manager="installer", dry_run=True)
        assert answer.object["metadata"]["uid"]
