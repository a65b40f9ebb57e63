"""`virt-steward inbox`: what waits in a whole cluster, and an exit code that says whether something does."""

import json
from collections.abc import AsyncIterator
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

import pytest
import typer

from tests.cli.commands import steward
from tests.console.objects import define_all, put
from tests.controllers.advisor.reviews import config_in_review
from tests.grants import an_account
from tests.machines import a_machine, the_machine
from tests.operators import a_pending_plan, create, the_plan
from virt_steward.apis.profiles import EXAMPLE
from virt_steward.cli import inbox as command
from virt_steward.controllers.approver.olm import INSTALL_PLAN
from virt_steward.controllers.approver.options import ApproverOptions
from virt_steward.controllers.autopilot.annotation_keys import PAUSED, SCOPE
from virt_steward.controllers.autopilot.options import HCO, AutopilotOptions
from virt_steward.insight import inbox_survey
from virt_steward.insight.inbox import InboxItem, Urgency
from virt_steward.insight.inbox_survey import InboxOptions, WholeInbox, read_inbox
from virt_steward.kube.client import Client
from virt_steward.kube.errors import Forbidden, NotFound
from virt_steward.objects.identity import Key, Ref, ref_of
from virt_steward.platform.hco import HYPERCONVERGED
from virt_steward.runtime.access import Access, Installation
from virt_steward.ssa.managers import PAUSE
from virt_steward_demo.local.controlplane import ControlPlane

ASSET = "swap-enable"
PAUSED_OBJECT = {
    "apiVersion": "machineconfiguration.openshift.io/v1",
    "kind": "MachineConfig",
    "metadata": {"name": "90-worker-swap-online", "annotations": {PAUSED: "true"}},
}
PLATFORM = {
    "apiVersion": "hco.kubevirt.io/v1",
    "kind": "HyperConverged",
    "metadata": {"name": HCO.name, "namespace": HCO.namespace, "annotations": {SCOPE: ASSET}},
    "spec": {},
}


@pytest.fixture
async def waiting(admin: Client, namespace: str) -> AsyncIterator[str]:
    """Something of each controller waits."""
    await define_all(admin)
    await config_in_review(admin)
    await create(admin, a_pending_plan(namespace))
    machine = await admin.create(a_machine(namespace, "web"))
    condition = {"type": "Placed", "status": "False", "reason": "AmbiguousPlacement", "message": "two clusters fit"}
    condition["lastTransitionTime"] = "2026-03-01T12:00:00Z"
    await admin.merge_patch(ref_of(machine), {"status": {"conditions": [condition]}}, subresource="status")
    await put(admin, PLATFORM)
    await admin.apply(PAUSED_OBJECT, manager=PAUSE.name, force=True)
    yield namespace
    for ref in (
        the_machine(namespace, "web"),
        the_plan(namespace),
        ref_of(PAUSED_OBJECT),
        Ref(HYPERCONVERGED, HCO),
    ):
        with suppress(NotFound):
            await admin.delete(ref)


async def test_inbox_lists_what_waits_in_all_controllers(waiting: str, control_plane: ControlPlane) -> None:
    ended = await steward("inbox", "-o", "json", kubeconfig=control_plane.kubeconfig)
    assert ended.code == 2, ended.stderr
    commands = {one["command"] for one in json.loads(ended.stdout)["items"]}
    assert commands >= {
        f"virt-steward approve {EXAMPLE}",
        f"virt-steward approve {waiting}/install-1",
        f"virt-steward explain machine {waiting}/web",
        f"virt-steward resume {ASSET}",
    }
    text = await steward("inbox", kubeconfig=control_plane.kubeconfig, COLUMNS="80")
    assert text.code == 2
    assert f"\n  virt-steward resume {ASSET}\n" in text.stdout
    assert max(map(len, text.stdout.splitlines())) <= 80


async def test_inbox_says_what_it_cannot_tell(
    waiting: str, admin: Client, control_plane: ControlPlane, tmp_path: Path
) -> None:
    account = await an_account(admin, Access("bystander"), Installation(waiting))
    kubeconfig = account.write_kubeconfig(tmp_path / "kubeconfig", control_plane)
    ended = await steward("inbox", kubeconfig=kubeconfig)
    assert (ended.code, ended.stdout) == (1, "")
    problems = ended.stderr.splitlines()
    starts = [f"virt-steward: cannot tell what waits for the {name}: " for name in ("advisor", "autopilot", "approver")]
    assert all(any(line.startswith(start) and "403" in line for line in problems) for start in starts), problems
    assert len(problems) == 4


@pytest.mark.usefixtures("waiting")
async def test_inbox_lists_the_rest_if_staged_changes_are_forbidden(
    admin: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def forbidden(*_: object) -> None:
        raise Forbidden(403, "Forbidden", "configmaps is forbidden")

    monkeypatch.setattr(inbox_survey, "listed", forbidden)
    options = InboxOptions(AutopilotOptions(), ApproverOptions(frozenset()))
    found = await read_inbox(admin, options, datetime.now(UTC))
    assert [one.tag for one in found.items if one.asset == ASSET] == ["Paused"]
    assert found.unknown == ("autopilot: configmaps is forbidden",)


ITEM = InboxItem(Urgency.HELD, "Held", "info", Ref(INSTALL_PLAN, Key("shop", "x")), "shop/x", "waits", "why", "See it")


@pytest.mark.parametrize(
    ("found", "code", "text"),
    [
        pytest.param(WholeInbox((), ()), 0, "Nothing waits for a person\n", id="nothing"),
        pytest.param(WholeInbox((ITEM,), ()), 2, "Held: shop/x waits\n", id="something"),
        pytest.param(WholeInbox((), ("advisor: forbidden",)), 1, "", id="unknown"),
        pytest.param(WholeInbox((ITEM,), ("advisor: forbidden",)), 2, "Held: shop/x waits\n", id="both"),
        pytest.param(WholeInbox((ITEM,) * 101, ()), 2, "and 1 more; -o json lists all\n", id="many"),
    ],
)
def test_inbox_exit_code_says_whether_something_waits(
    found: WholeInbox, code: int, text: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    async def read(*_: object) -> WholeInbox:
        return found

    monkeypatch.setattr(command, "_read", read)
    ended = 0
    try:
        command.inbox()
    except typer.Exit as exit_:
        ended = exit_.exit_code
    assert ended == code
    assert text in capsys.readouterr().out
