"""Manual approvals: of the reviewed plan, or of none."""

from datetime import UTC, datetime
from typing import Any

import pytest
from aiohttp import web

from tests.clients import a_client
from tests.controllers.advisor.builders import PLAN, a_config, a_status, true
from tests.controllers.advisor.reviews import config_in_review, write_status
from tests.gateway import Gateway
from virt_steward.apis.profiles import EXAMPLE
from virt_steward.controllers.advisor.annotation_keys import APPROVAL_COMMENT, APPROVED_BY, APPROVED_PLAN, DECISION
from virt_steward.controllers.advisor.observation import VirtPlatformConfig
from virt_steward.decisions.configs import plan_changed
from virt_steward.decisions.outcomes import NotApproved
from virt_steward.decisions.plans import PlanApproved, approve_plan, reason_not_approvable
from virt_steward.kube.client import Client
from virt_steward_demo.local.controlplane import ControlPlane

NOW = datetime(2026, 6, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    ("config", "why"),
    [
        pytest.param(a_config(a_status(None)), "still being drafted", id="no-phase"),
        pytest.param(a_config(a_status("Ignored")), "set spec.action to DryRun", id="ignored"),
        pytest.param(a_config(a_status("InProgress")), "already being executed", id="in-progress"),
        pytest.param(a_config(a_status("Completed")), "is already Completed", id="completed"),
        pytest.param(a_config(a_status("Failed")), "DryRun to get a new plan", id="failed"),
        pytest.param(a_config(a_status(), generation=2), "not ready yet", id="spec-changed"),
        pytest.param(a_config(a_status(conditions=true("PlanStale"))), "out of date", id="stale"),
    ],
)
def test_plan_is_not_approvable(config: VirtPlatformConfig, why: str) -> None:
    found = reason_not_approvable(config)
    assert found is not None
    assert why in found


@pytest.mark.parametrize(
    "config",
    [
        pytest.param(a_config(a_status()), id="in-review"),
        pytest.param(
            a_config(a_status(conditions=true("PlanStale")), bypass_optimistic_lock=True), id="stale-with-bypass"
        ),
        pytest.param(a_config(a_status(plan_action="Rollback"), action="Rollback"), id="rollback"),
    ],
)
def test_plan_is_approvable(config: VirtPlatformConfig) -> None:
    assert reason_not_approvable(config) is None


@pytest.mark.parametrize(
    ("before", "after"),
    [
        pytest.param("DryRun", "Apply", id="dry-run"),
        pytest.param("Apply", "Apply", id="apply"),
        pytest.param("Rollback", "Rollback", id="rollback"),
    ],
)
async def test_approval_sets_action_and_annotations(before: str, after: str, configs: Client) -> None:
    rig = await config_in_review(configs, action=before)
    await rig.annotate(approval_comment="of somebody before", rejected_plan=PLAN, rejected_by="admin")
    assert await approve_plan(configs, EXAMPLE, PLAN, "", NOW) == PlanApproved(
        EXAMPLE, PLAN, after, "admin", "", "the advisor executes the plan now"
    )  # type: ignore[arg-type]
    config = await rig.config()
    assert config["spec"]["action"] == after
    assert config["metadata"]["annotations"] == {
        APPROVED_PLAN: PLAN,
        APPROVED_BY: "admin",
        DECISION.decision: f"approve plan {PLAN[:12]}",
        DECISION.by: "admin",
        DECISION.at: "2026-06-01T00:00:00Z",
    }


async def test_approval_refuses_other_plan(configs: Client) -> None:
    rig = await config_in_review(configs)
    answer = await approve_plan(configs, EXAMPLE, "another", "", NOW)
    assert isinstance(answer, NotApproved)
    assert answer.reason == plan_changed(PLAN)
    assert (await rig.config())["spec"]["action"] == "DryRun"


@pytest.mark.parametrize(
    ("changes", "approved"),
    [
        pytest.param({"impact_severity": "Low"}, True, id="status-changes"),
        pytest.param({"plan_hash": "b" * 64}, False, id="plan-changes"),
    ],
)
async def test_approval_survives_status_change_but_not_new_plan(
    changes: dict[str, Any], approved: bool, configs: Client, control_plane: ControlPlane, gateway: Gateway
) -> None:
    rig = await config_in_review(configs)
    tried: list[str] = []

    async def changed_meanwhile(request: web.Request) -> None:
        if request.method == "PATCH":
            tried.append(request.path)
            if len(tried) == 1:
                await write_status(rig, phase="ReviewRequired", **changes)

    gateway.intercept = changed_meanwhile
    async with a_client(control_plane, server=gateway.server) as client:
        answer = await approve_plan(client, EXAMPLE, PLAN, "agreed", NOW)
    config = await rig.config()
    assert isinstance(answer, PlanApproved) is approved
    assert config["spec"]["action"] == ("Apply" if approved else "DryRun")
    assert (config["metadata"].get("annotations", {}).get(APPROVAL_COMMENT) == "agreed") is approved
    assert len(tried) == (2 if approved else 1)
