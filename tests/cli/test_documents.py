"""`-o json`: every command has one schema, in camelCase, and prints what it says."""

import re
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.cli.commands import ANSWERS, check_answer, steward
from tests.cli.test_help import COMMANDS
from tests.cli.test_inbox import ASSET, waiting
from tests.machines import a_config
from virt_steward.apis.profiles import EXAMPLE
from virt_steward.kube.client import Client
from virt_steward.objects.identity import Key, ref_of
from virt_steward_demo.local.controlplane import ControlPlane

__all__ = ("waiting",)  # a fixture
CAMEL = re.compile(r"[a-z][a-zA-Z0-9]*")
SEEN_ELSEWHERE = {
    "release": "tests/controllers/autopilot/test_rollouts.py",
    "watch": "tests/controllers/advisor/test_approve_command.py",
    **{command: "tests/local/test_session.py" for command in ANSWERS if command.startswith("local ")},
}
"""Commands that need more than objects; `steward` checks their answers there."""


def calls(namespace: str, hco: Path) -> dict[str, tuple[str, ...]]:
    """Arguments with which each command prints an answer; a decision may be refused."""
    example = (EXAMPLE, "--example-profile")
    return {
        "inbox": (),
        "plan": example,
        "diff": ("--show-excluded",),
        "explain installplan": (f"{namespace}/install-1",),
        "explain plan": example,
        "explain machine": (f"{namespace}/web",),
        "explain asset": (ASSET,),
        "reject": (EXAMPLE, "--plan", "0" * 64),
        "rollback": (EXAMPLE, "--cancel"),
        "replan": ("no-such-profile",),
        "approve profile": (EXAMPLE, "--yes"),
        "approve installplan": (f"{namespace}/install-1", "--yes"),
        "resume": (ASSET,),
        "choose": (f"{namespace}/web", "json-east"),
        "place": ("--all", "--dry-run", "--placement-strategy", "round-robin"),
        "status": (),
        "switch-check": (),
        "render": ("--hco-file", str(hco), "--show-excluded"),
        "crds": (),
        "rbac": ("--controllers", "advisor"),
        "policies": (),
        "roles": (),
        "manifests": (),
        "uninstall": ("--dry-run",),
        "version": (),
    }


@pytest.fixture
async def cluster(admin: Client, waiting: str) -> AsyncIterator[None]:
    config = await admin.create(a_config("json-east", Key(waiting, "json-east")))
    yield
    await admin.delete(ref_of(config))


@pytest.mark.usefixtures("cluster")
async def test_every_answer_is_as_its_schema_says(waiting: str, control_plane: ControlPlane, tmp_path: Path) -> None:
    hco = tmp_path / "hco.yaml"
    hco.write_text("apiVersion: hco.kubevirt.io/v1beta1\nkind: HyperConverged\nmetadata:\n  name: x\n  namespace: y\n")
    wanted = calls(waiting, hco)
    assert {*wanted, *SEEN_ELSEWHERE} == set(ANSWERS)
    for command, arguments in wanted.items():
        ended = await steward(*command.split(), *arguments, "-o", "json", kubeconfig=control_plane.kubeconfig)
        assert ended.stdout, (command, ended.stderr)  # steward has checked it


def test_every_command_with_json_has_a_schema() -> None:
    offered = {
        " ".join(path)
        for path, command in COMMANDS.items()
        for parameter in command.params
        if parameter.name == "output" and "json" in parameter.type.choices
    }
    assert offered == set(ANSWERS)


@pytest.mark.parametrize("command", ANSWERS)
def test_names_are_in_camel_case(command: str) -> None:
    assert [name for name in names_in(msgspec.json.schema(ANSWERS[command])) if not CAMEL.fullmatch(name)] == []


def names_in(schema: Any) -> Iterator[str]:
    if isinstance(schema, list):
        for one in schema:
            yield from names_in(one)
    if isinstance(schema, dict):
        yield from schema.get("properties", {})
        for one in schema.values():
            yield from names_in(one)


@pytest.mark.parametrize(
    "text",
    ['{"version":"1","more":1}', '{"version":1}', "{}"],
    ids=["unknown field", "number as text", "missing field"],
)
def test_check_refuses_other_answers(text: str) -> None:
    with pytest.raises(msgspec.ValidationError):
        check_answer(("version",), text)
