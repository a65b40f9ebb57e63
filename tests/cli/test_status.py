"""`virt-steward status`: a health check of the controllers, seen while they run, are stopped, or cannot work."""

import json
import os
import signal
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import typer

from tests.cli.commands import Ended, steward
from tests.controllers.approver.process import FREQUENT_RENEWALS, a_process, an_installation, home_of
from tests.eventually import eventually
from tests.grants import Account, an_account
from tests.operators import an_approver, create
from tests.otheroperator import OtherOperator
from virt_steward.cli import status as command
from virt_steward.cli.status import EXIT_CODES, status_lines
from virt_steward.controllers import NAMES
from virt_steward.insight.health import HealthObservation, Verdict, judge
from virt_steward.insight.health_survey import ControllerStatus, InstallationStatus
from virt_steward.insight.inbox import InboxLine
from virt_steward.insight.status import GO_LEASES, AssetRow, ProfileRow, Section, UnplacedRow
from virt_steward.kube.client import Client
from virt_steward.objects.identity import Key, Ref, ref_of
from virt_steward.runtime.access import LEASE, Access, Installation
from virt_steward_demo.local.controlplane import ControlPlane

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)


async def health_of(ended: Ended, controller: str) -> dict[str, Any]:
    found = json.loads(ended.stdout)
    assert ended.code == EXIT_CODES[Verdict(found["verdict"])], ended.stderr
    return next(one["health"] for one in found["controllers"] if one["health"]["controller"] == controller)


class Installed:
    """An approver with its own rights in its own namespace, and what `status` says about it."""

    def __init__(self, admin: Client, control_plane: ControlPlane, account: Account, folder: Path) -> None:
        self.home = home_of(account)
        self.kubeconfig = account.write_kubeconfig(folder / "approver.kubeconfig", control_plane)
        self.account = account.user.rpartition(":")[2]
        self.lease = Ref(LEASE, Key(self.home, "virt-steward-approver"))
        self._admin = admin
        self._control_plane = control_plane

    async def health(self) -> dict[str, Any]:
        arguments = ("status", "--namespace", self.home, "-o", "json")
        return await health_of(await steward(*arguments, kubeconfig=self._control_plane.kubeconfig), "approver")

    async def is_leading(self) -> bool:
        found = await self.health()
        return found["leading"]["state"] == "leading" and found["lastSuccess"] is not None

    async def deploy(self) -> None:
        """A Deployment as the manifests have it; nothing here runs its pods."""
        labels = {"app.kubernetes.io/name": "virt-steward", "app.kubernetes.io/component": "approver"}
        container = {"name": "approver", "image": "none", "args": ["--controllers=approver"]}
        pod = {"serviceAccountName": self.account, "containers": [container]}
        spec = {"selector": {"matchLabels": labels}, "template": {"metadata": {"labels": labels}, "spec": pod}}
        metadata = {"name": "virt-steward-approver", "namespace": self.home, "labels": labels}
        await self._admin.create({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": spec})


@pytest.fixture
async def installed(admin: Client, control_plane: ControlPlane, tmp_path: Path) -> AsyncIterator[Installed]:
    found = Installed(admin, control_plane, await an_installation(control_plane), tmp_path)
    approver = an_approver(found.home)
    await create(admin, approver)
    yield found
    await admin.delete(ref_of(approver))


async def test_status_follows_a_controller_from_start_to_stop(installed: Installed, admin: Client) -> None:
    assert (await installed.health())["installed"] is False
    with a_process(installed.kubeconfig, installed.home, *FREQUENT_RENEWALS) as process:
        assert await eventually(installed.is_leading)
        leading = await installed.health()
        assert leading["problems"] == []
        assert leading["leading"]["since"] <= leading["leading"]["renewed"]
        os.kill(process.pid, signal.SIGTERM)
        assert await eventually(lambda: not process.alive)
    stopped = await installed.health()
    assert (stopped["verdict"], stopped["leading"]["state"]) == ("needs a person", "nobody")
    assert stopped["lastSuccess"] >= leading["lastSuccess"]
    gone = {"holderIdentity": "pod-1", "leaseDurationSeconds": 15, "renewTime": "2026-03-01T12:00:00.000000Z"}
    await admin.merge_patch(installed.lease, {"spec": gone})
    assert (await installed.health())["leading"]["state"] == "expired"


async def test_status_says_which_right_keeps_controller_from_electing(installed: Installed, admin: Client) -> None:
    await installed.deploy()
    with a_process(installed.kubeconfig, installed.home, *FREQUENT_RENEWALS):
        assert await eventually(installed.is_leading)
        assert (await installed.health())["problems"] == []  # it has all of its rights
    rbac = "rbac.authorization.k8s.io/v1"
    role = {"apiVersion": rbac, "kind": "Role", "metadata": {"name": installed.account, "namespace": installed.home}}
    await admin.delete(ref_of(role))
    await admin.delete(installed.lease)
    found = partial(_names, installed, f"get leases.coordination.k8s.io virt-steward-approver in {installed.home}")
    assert await eventually(found)
    stuck = await installed.health()
    assert (stuck["installed"], stuck["leading"]["state"]) == (True, "nobody")
    assert stuck["deployments"][0]["replicas"] == 1


async def _names(installed: Installed, text: str) -> bool:
    return any(text in one for one in (await installed.health())["problems"])


async def test_status_says_that_controller_stands_by(installed: Installed, admin: Client) -> None:
    await installed.deploy()
    async with OtherOperator(admin, Key(installed.home, GO_LEASES["approver"])).running():
        found = await installed.health()
    await admin.delete(Ref(LEASE, Key(installed.home, GO_LEASES["approver"])))
    assert found["leading"]["state"] == "standing by"
    assert f"go-1 holds Lease {installed.home}/08a05259.bapu.cloud" in found["leading"]["message"]


async def test_status_tells_what_it_can_to_a_person_without_rights(
    installed: Installed, admin: Client, control_plane: ControlPlane, tmp_path: Path
) -> None:
    account = await an_account(admin, Access("bystander"), Installation(installed.home))
    kubeconfig = account.write_kubeconfig(tmp_path / "kubeconfig", control_plane)
    ended = await steward("status", "--namespace", installed.home, "-o", "json", kubeconfig=kubeconfig)
    assert ended.code == 1, ended.stderr
    found = await health_of(ended, "approver")
    for part in ("who leads: ", "Deployments: ", "its objects: ", "what waits: "):
        assert any(one.startswith(part) and "forbidden" in one for one in found["unread"]), (part, found["unread"])
    text = await steward("status", "--namespace", installed.home, kubeconfig=kubeconfig, COLUMNS="80")
    assert text.stdout.splitlines()[-1] == "Cannot tell: advisor, autopilot, approver, placement"


async def test_status_reads_the_named_hyperconverged(control_plane: ControlPlane) -> None:
    named = ("--hyperconverged", "elsewhere/another")
    ended = await steward("status", *named, "-o", "json", kubeconfig=control_plane.kubeconfig)
    sections = {one["objects"]["controller"]: one["objects"] for one in json.loads(ended.stdout)["controllers"]}
    assert list(sections) == list(NAMES)
    assert "elsewhere/another" in sections["autopilot"]["summary"]


def a_status(verdict: Verdict, *waiting: InboxLine, **objects: Any) -> InstallationStatus:
    health = judge(HealthObservation("placement", Key("steward", "a"), waiting=len(waiting)), NOW)
    section = Section(controller="placement", summary="clusters: 2", **objects)
    return InstallationStatus(verdict, NOW, "steward", (ControllerStatus(health, section, waiting),))


@pytest.mark.parametrize(("verdict", "code"), [(Verdict.WELL, 0), (Verdict.NEEDS_PERSON, 2), (Verdict.CANNOT_TELL, 1)])
def test_status_ends_with_the_code_of_its_verdict(
    verdict: Verdict, code: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    async def read(*_: object) -> InstallationStatus:
        return a_status(verdict)

    monkeypatch.setattr(command, "_read", read)
    with pytest.raises(typer.Exit) as ended:
        command.status()
    assert ended.value.exit_code == code
    assert capsys.readouterr().out.startswith("placement: not installed\n")


def test_status_names_what_waits_and_unplaced_machines_within_80_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    sentence = "2 clusters are suitable, and no strategy is set; choose one of east, west"
    machines = tuple(UnplacedRow(f"shop/web-{number}", "AmbiguousPlacement", sentence) for number in range(23))
    lines = InboxLine("Machine shop/web-0", "Ambiguous", "shop/web-0 has no cluster", sentence, "virt-steward …")
    text = list(status_lines(a_status(Verdict.NEEDS_PERSON, *[lines] * 7, machines=machines)))
    assert max(map(len, text)) <= 80
    assert "    Ambiguous: shop/web-0 has no cluster" in text
    assert "    and 2 more" in text
    assert sum("shop/web-" in line and "AmbiguousPlacement" in line for line in text) == 20
    assert "    and 3 more; -o json lists all" in text


def test_status_says_that_impact_of_inactive_profile_is_the_usual_one() -> None:
    rows = (
        ProfileRow("a", "Ignore", "Ignored", "Medium", NOW, ""),
        ProfileRow("b", "Apply", "Failed", "High", NOW, ""),
    )
    text = "\n".join(status_lines(a_status(Verdict.WELL, profiles=rows)))
    assert "a        Ignore  Ignored  usually Medium\n" in text
    assert "b        Apply   Failed   High\n" in text


def test_status_counts_assets_that_are_left_alone_and_lists_the_others() -> None:
    assets = (AssetRow("psi-enable", "Left alone", "Not in the allow-list"), AssetRow("swap-enable", "Staged", "waits"))
    text = "\n".join(status_lines(a_status(Verdict.WELL, assets=assets)))
    assert "swap-enable  Staged  waits" in text
    assert "psi-enable" not in text
    assert "virt-steward diff --show-excluded" in text
