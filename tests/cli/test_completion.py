"""Completion, asked for as bash does it: by variables, and one line for each word that is offered."""

from pathlib import Path

import pytest

from tests.cli.commands import steward
from tests.cli.test_inbox import waiting
from virt_steward.apis.profiles import EXAMPLE, LOAD_AWARE
from virt_steward.catalog.load import load
from virt_steward.cli import completion
from virt_steward.cli.main import COMMANDS
from virt_steward_demo.local.controlplane import ControlPlane

__all__ = ("waiting",)  # a fixture


async def completed(line: str, kubeconfig: Path = Path("/nonexistent/kubeconfig")) -> list[str]:
    """What bash offers after this line; the last word is the one that is typed."""
    asked = {"COMP_WORDS": line, "COMP_CWORD": str(len(line.split(" ")) - 1)}
    ended = await steward(kubeconfig=kubeconfig, _VIRT_STEWARD_COMPLETE="complete_bash", **asked)
    assert (ended.code, ended.stderr) == (0, "")
    return ended.stdout.split()


@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("virt-steward ex", ["explain"]),
        ("virt-steward explain pl", ["plan"]),
        ("virt-steward plan lo", [LOAD_AWARE]),
        ("virt-steward explain asset swap-en", ["swap-enable"]),
        ("virt-steward render --asset psi-enable-m", ["psi-enable-master"]),
        ("virt-steward switch-check a", ["advisor", "autopilot", "approver"]),
        ("virt-steward run --controllers advisor,pl", ["advisor,placement"]),
        ("virt-steward rbac --controllers con", ["console"]),
        ("virt-steward place --placement-strategy s", ["spread"]),
        ("virt-steward status --output j", ["json"]),
    ],
)
async def test_completion_offers_names_that_the_program_knows(line: str, offered: list[str]) -> None:
    assert await completed(line) == offered


async def test_completion_offers_every_command() -> None:
    assert await completed("virt-steward ") == list(COMMANDS)


@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("virt-steward approve profile ex", EXAMPLE),
        ("virt-steward reject ex", EXAMPLE),
        ("virt-steward approve installplan {namespace}/i", "{namespace}/install-1"),
        ("virt-steward explain machine {namespace}/", "{namespace}/web"),
        ("virt-steward choose {namespace}/", "{namespace}/web"),
        ("virt-steward diff --hyperconverged openshift", "openshift-cnv/kubevirt-hyperconverged"),
    ],
)
async def test_completion_offers_objects_of_the_cluster(
    line: str, offered: str, waiting: str, control_plane: ControlPlane
) -> None:
    found = await completed(line.format(namespace=waiting), control_plane.kubeconfig)
    assert found == [offered.format(namespace=waiting)]


async def test_completion_takes_the_kubeconfig_of_the_line(waiting: str, control_plane: ControlPlane) -> None:
    line = f"virt-steward explain machine --kubeconfig {control_plane.kubeconfig} {waiting}/"
    assert await completed(line) == [f"{waiting}/web"]


async def test_completion_offers_nothing_if_the_cluster_cannot_be_asked() -> None:
    assert await completed("virt-steward approve profile ") == []


async def test_completion_does_not_wait_for_a_silent_cluster(
    control_plane: ControlPlane, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(completion, "PATIENCE", 0.0)
    with pytest.raises(TimeoutError):
        await completion._names((completion.MACHINE,), str(control_plane.kubeconfig), None)


def test_completion_knows_all_assets() -> None:
    assert completion.assets("") == sorted(asset.name for asset in load().assets)
