import json
import re

import pytest

from tests.cli.commands import steward
from tests.operators import a_subscription, a_waiting_plan, an_approver, create
from virt_steward.kube.client import Client
from virt_steward_demo.local.controlplane import ControlPlane


@pytest.fixture
async def refused(admin: Client, operators: str) -> str:
    """A namespace with a plan that its approver does not approve."""
    await create(
        admin,
        a_waiting_plan(operators, "1.1.0"),
        a_subscription(operators, pin="1.0.0", offered="1.1.0", installed="1.0.0"),
        an_approver(operators),
    )
    return operators


async def test_explain_tells_facts_and_the_chain_of_checks(control_plane: ControlPlane, refused: str) -> None:
    ended = await steward("explain", "installplan", f"{refused}/install-1", kubeconfig=control_plane.kubeconfig)
    lines = ended.stdout.splitlines()
    assert (ended.code, ended.stderr) == (0, "")
    assert lines[:2] == [
        f"InstallPlan {refused}/install-1: not approved, phase RequiresApproval, approval Manual",
        "  demo-operator.v1.1.0: package demo-operator, pinned demo-operator.v1.0.0, installed demo-operator.v1.0.0",
    ]
    chain = lines[lines.index(next(line for line in lines if f"InstallPlanApprover {refused}/approver" in line)) :]
    assert chain[0].endswith("set startingCSV to demo-operator.v1.1.0 to upgrade")
    assert chain[1] == "  [+] not yet approved"
    assert "  [-] every csv is pinned: NotPinned" in chain


async def test_explain_answers_programs_too(control_plane: ControlPlane, refused: str) -> None:
    ended = await steward(
        "explain", "installplan", f"{refused}/install-1", "-o", "json", kubeconfig=control_plane.kubeconfig
    )
    found = json.loads(ended.stdout)
    assert found["plan"] == f"{refused}/install-1"
    [chain] = [one for one in found["approvers"] if one["approver"] == f"{refused}/approver"]
    assert chain["verdict"] == "waits"
    assert chain["steps"][-1]["refusal"]["reason"] == "NotPinned"


async def test_of_two_that_approve_the_older_is_named_and_one_that_waits_says_until_when(
    admin: Client, control_plane: ControlPlane, operators: str
) -> None:
    never = {"windows": [{"schedule": "0 0 1 1 *", "duration": "1s"}]}
    await create(
        admin,
        a_waiting_plan(operators),
        a_subscription(operators, pin="1.0.0", offered="1.0.0"),
        an_approver(operators, "one"),
        an_approver(operators, "two"),
        an_approver(operators, "three", policy=never),
    )
    ended = await steward("explain", "installplan", f"{operators}/install-1", kubeconfig=control_plane.kubeconfig)
    assert "approves: demo-operator.v1.0.0 is the startingCSV of its Subscription" in ended.stdout
    assert f"would approve it, but the older {operators}/" in ended.stdout
    assert re.search(
        r"^  \[-\] a window is open: OutsideWindow, until 20\d\d-01-01T00:00:00Z$", ended.stdout, re.MULTILINE
    )


async def test_explain_names_the_person_who_approved_and_their_comment(
    admin: Client, control_plane: ControlPlane, operators: str
) -> None:
    await create(admin, a_waiting_plan(operators))
    plan = ("installplan", f"{operators}/install-1")
    await steward("approve", *plan, "--comment", "CHG-7: tested", kubeconfig=control_plane.kubeconfig)
    ended = await steward("explain", *plan, kubeconfig=control_plane.kubeconfig)
    assert re.search(r"^  approved by \S+, by hand at 20\d\d-\S+Z: CHG-7: tested$", ended.stdout, re.MULTILINE)


async def test_what_an_approved_plan_has_installed_is_not_called_unknown(
    admin: Client, control_plane: ControlPlane, operators: str
) -> None:
    await create(
        admin,
        a_waiting_plan(operators, phase="Complete", approved=True),
        a_subscription(operators, pin="1.1.0", offered="1.1.0", installed="1.1.0"),
    )
    ended = await steward("explain", "installplan", f"{operators}/install-1", kubeconfig=control_plane.kubeconfig)
    assert "  demo-operator.v1.0.0: no Subscription is for it now" in ended.stdout.splitlines()
