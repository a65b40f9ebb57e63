import json
import re

import pytest

from tests.cli.commands import steward
from tests.console.objects import a_review, no_config, put_config
from tests.operators import a_pending_plan, a_subscription, an_approver, create
from virt_steward.apis.crds import CRDS
from virt_steward.apis.profiles import LOAD_AWARE
from virt_steward.kube.client import Client
from virt_steward_demo.local.controlplane import ControlPlane
from virt_steward_demo.simulation.install import install


@pytest.fixture
async def refused(admin: Client, operators: str) -> str:
    """A namespace with a plan that its approver does not approve."""
    await create(
        admin,
        a_pending_plan(operators, "1.1.0"),
        a_subscription(operators, pin="1.0.0", offered="1.1.0", installed="1.0.0"),
        an_approver(operators),
    )
    return operators


async def test_explain_installplan_shows_facts_and_checks(control_plane: ControlPlane, refused: str) -> None:
    ended = await steward("explain", "installplan", f"{refused}/install-1", kubeconfig=control_plane.kubeconfig)
    lines = ended.stdout.splitlines()
    assert (ended.code, ended.stderr) == (0, "")
    assert lines[:2] == [
        f"InstallPlan {refused}/install-1: not approved, phase RequiresApproval, approval Manual",
        "  demo-operator.v1.1.0: package demo-operator, pinned: demo-operator.v1.0.0, installed: demo-operator.v1.0.0",
    ]
    chain = lines[lines.index(next(line for line in lines if f"InstallPlanApprover {refused}/approver" in line)) :]
    assert chain[0] == f"InstallPlanApprover {refused}/approver: does not approve it yet (NotPinned)"
    assert chain[1] == "  ✓ Not approved yet"
    [failed] = [line for line in chain if "✗" in line]
    assert failed.startswith("  ✗ Every CSV is pinned or allowed by the policy: ")
    assert "set startingCSV to demo-operator.v1.1.0 to upgrade" in failed
    assert failed.endswith(". Stopped here")


async def test_explain_fits_terminals(admin: Client, control_plane: ControlPlane, refused: str) -> None:
    await install(admin, *(crd.manifest() for crd in CRDS))
    await put_config(admin, a_review(message=f"The plan is ready for review{', so that it can be approved' * 4}"))
    for words in (("installplan", f"{refused}/install-1"), ("plan", LOAD_AWARE)):
        text = await steward("explain", *words, kubeconfig=control_plane.kubeconfig, COLUMNS="80")
        assert text.code == 0, text.stderr
        assert [line for line in text.stdout.splitlines() if len(line) > 80] == []
    await no_config(admin)


async def test_explain_installplan_prints_json(control_plane: ControlPlane, refused: str) -> None:
    ended = await steward(
        "explain", "installplan", f"{refused}/install-1", "-o", "json", kubeconfig=control_plane.kubeconfig
    )
    found = json.loads(ended.stdout)
    assert found["plan"] == f"{refused}/install-1"
    [chain] = [one for one in found["approvers"] if one["approver"] == f"{refused}/approver"]
    assert chain["verdict"] == "waits"
    assert chain["reason"] == "NotPinned"
    [failed] = [one for one in chain["checks"] if one["result"] == "fail"]
    assert (failed["title"], failed["decided"]) == ("Every CSV is pinned or allowed by the policy", True)


async def test_explain_installplan_names_older_approver_and_window(
    admin: Client, control_plane: ControlPlane, operators: str
) -> None:
    never = {"windows": [{"schedule": "0 0 1 1 *", "duration": "1s"}]}
    await create(
        admin,
        a_pending_plan(operators),
        a_subscription(operators, pin="1.0.0", offered="1.0.0"),
        an_approver(operators, "one"),
        an_approver(operators, "two"),
        an_approver(operators, "three", policy=never),
    )
    ended = await steward("explain", "installplan", f"{operators}/install-1", kubeconfig=control_plane.kubeconfig)
    assert "approves it: demo-operator.v1.0.0 is the startingCSV of its Subscription" in ended.stdout
    assert f"would approve it, but the older {operators}/" in ended.stdout
    text = " ".join(ended.stdout.split())
    assert re.search(r"three: does not approve it yet \(OutsideWindow, until 20\d\d-01-01T00:00:00Z\)", text)
    assert re.search(r"✗ Inside a maintenance window: .* opens at 20\d\d-01-01T00:00:00Z\. Stopped here", text)


async def test_explain_installplan_names_user_and_comment(
    admin: Client, control_plane: ControlPlane, operators: str
) -> None:
    await create(admin, a_pending_plan(operators))
    plan = ("installplan", f"{operators}/install-1")
    await steward("approve", *plan, "--yes", "--comment", "CHG-7: tested", kubeconfig=control_plane.kubeconfig)
    ended = await steward("explain", *plan, kubeconfig=control_plane.kubeconfig)
    assert re.search(r"^  approved by \S+, manually at 20\d\d-\S+Z: CHG-7: tested$", ended.stdout, re.MULTILINE)


async def test_explain_installplan_of_approved_plan_knows_its_csv(
    admin: Client, control_plane: ControlPlane, operators: str
) -> None:
    await create(
        admin,
        a_pending_plan(operators, phase="Complete", approved=True),
        a_subscription(operators, pin="1.1.0", offered="1.1.0", installed="1.1.0"),
    )
    ended = await steward("explain", "installplan", f"{operators}/install-1", kubeconfig=control_plane.kubeconfig)
    assert "  demo-operator.v1.0.0: no Subscription refers to it now" in ended.stdout.splitlines()
