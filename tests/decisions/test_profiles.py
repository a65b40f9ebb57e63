"""Decisions about a profile, made with a client alone: no console, no form."""

from datetime import UTC, datetime
from typing import Any

import pytest

from tests.controllers.advisor.builders import PLAN, a_config, a_status
from tests.controllers.advisor.reviews import config_in_review, write_status
from tests.controllers.advisor.rig import AdvisorRig
from virt_steward.apis.profiles import EXAMPLE
from virt_steward.apis.virtplatformconfig import Input
from virt_steward.controllers.advisor.annotation_keys import (
    APPROVED_PLAN,
    REJECTED_BY,
    REJECTED_PLAN,
    REJECTION_COMMENT,
)
from virt_steward.controllers.advisor.observation import VirtPlatformConfig
from virt_steward.decisions.outcomes import Decided, NotDecided
from virt_steward.decisions.plans import action_after_rejection, reject_plan
from virt_steward.decisions.profiles import (
    activate,
    cancel_rollback,
    is_rolling_back,
    replan,
    roll_back,
    stop_managing,
)
from virt_steward.decisions.signatures import Signature
from virt_steward.kube.client import Client

BY_ADMIN = Signature("admin", "after the audit", datetime(2026, 6, 1, tzinfo=UTC))
APPLIED = {"applied_inputs": (Input("a", "1"),)}


def no_options(_current: object) -> None:
    return None


async def action_of(rig: AdvisorRig) -> str:
    return str((await rig.config())["spec"]["action"])


@pytest.mark.parametrize(
    ("config", "action"),
    [
        pytest.param(a_config(a_status(), action="DryRun"), "Ignore", id="first-plan"),
        pytest.param(a_config(a_status(**APPLIED), action="DryRun"), "DryRun", id="applied-before"),
        pytest.param(a_config(a_status(), action="Apply"), "Apply", id="apply"),
        pytest.param(a_config(a_status(), action="Rollback"), "DryRun", id="rollback"),
    ],
)
def test_rejection_keeps_active_profiles_active(config: VirtPlatformConfig, action: str) -> None:
    assert action_after_rejection(config) == action


@pytest.mark.parametrize(
    ("action", "status", "expected"),
    [
        pytest.param("Rollback", a_status("InProgress", plan_action="Rollback"), True, id="in-progress"),
        pytest.param("Rollback", a_status("Completed", plan_action="Apply"), True, id="not-planned-yet"),
        pytest.param("Rollback", a_status("Completed", plan_action="Rollback"), False, id="completed"),
        pytest.param("Apply", a_status("InProgress"), False, id="forward"),
    ],
)
def test_rollback_lasts_until_it_is_completed(action: str, status: Any, expected: bool) -> None:
    assert is_rolling_back(a_config(status, action=action)) is expected


async def test_reject_records_who_and_why(configs: Client) -> None:
    rig = await config_in_review(configs)
    assert isinstance(await reject_plan(configs, EXAMPLE, PLAN, BY_ADMIN), Decided)
    annotations = (await rig.config())["metadata"]["annotations"]
    assert (annotations[REJECTED_PLAN], annotations[REJECTED_BY]) == (PLAN, "admin")
    assert annotations[REJECTION_COMMENT] == BY_ADMIN.comment
    assert await action_of(rig) == "Ignore"


async def test_reject_refuses_another_plan(configs: Client) -> None:
    rig = await config_in_review(configs)
    assert isinstance(await reject_plan(configs, EXAMPLE, "another", BY_ADMIN), NotDecided)
    assert await action_of(rig) == "DryRun"


async def test_roll_back_asks_for_a_plan_that_needs_an_approval(configs: Client) -> None:
    rig = await config_in_review(configs, action="Apply")
    await write_status(rig, phase="Completed", pre_image="a-record")
    await rig.annotate(approved_plan=PLAN)
    assert isinstance(await roll_back(configs, EXAMPLE, BY_ADMIN), Decided)
    assert await action_of(rig) == "Rollback"
    assert APPROVED_PLAN not in (await rig.config())["metadata"].get("annotations", {})


async def test_roll_back_needs_an_executed_plan(configs: Client) -> None:
    rig = await config_in_review(configs, action="Apply")
    before = await rig.config()
    refused = await roll_back(configs, EXAMPLE, BY_ADMIN)
    assert isinstance(refused, NotDecided)
    assert f"There is no executed plan of {EXAMPLE} to roll back" in refused.reason
    assert await rig.config() == before


async def test_cancel_rollback_manages_the_profile_again(configs: Client) -> None:
    rig = await config_in_review(configs, action="Rollback")
    assert isinstance(await cancel_rollback(configs, EXAMPLE, BY_ADMIN), Decided)
    assert await action_of(rig) == "DryRun"
    assert isinstance(await cancel_rollback(configs, EXAMPLE, BY_ADMIN), NotDecided)


async def test_stop_managing_sets_ignore(configs: Client) -> None:
    rig = await config_in_review(configs, action="Apply")
    await stop_managing(configs, EXAMPLE, BY_ADMIN)
    assert await action_of(rig) == "Ignore"


@pytest.mark.parametrize(("before", "writes"), [("DryRun", 2), ("Apply", 1), ("Ignore", 1)])
async def test_replan_changes_the_spec_and_ends_with_dry_run(configs: Client, before: str, writes: int) -> None:
    rig = await config_in_review(configs, action=before)
    generation = (await rig.config())["metadata"]["generation"]
    assert isinstance(await replan(configs, EXAMPLE, BY_ADMIN), Decided)
    config = await rig.config()
    assert (config["spec"]["action"], config["metadata"]["generation"]) == ("DryRun", generation + writes)


async def test_replan_of_a_rollback_needs_an_executed_plan(configs: Client) -> None:
    rig = await config_in_review(configs, action="Rollback")
    before = await rig.config()
    refused = await replan(configs, EXAMPLE, BY_ADMIN)
    assert isinstance(refused, NotDecided)
    assert refused.reason.endswith("For a plan forward, set spec.action to DryRun.")
    assert await rig.config() == before


async def test_activate_creates_the_config(configs: Client) -> None:
    assert isinstance(await activate(configs, EXAMPLE, no_options, BY_ADMIN), Decided)
    assert await action_of(AdvisorRig(configs, EXAMPLE)) == "DryRun"


async def test_activate_replans_an_active_profile(configs: Client) -> None:
    rig = await config_in_review(configs)
    await write_status(rig, phase="Completed")
    generation = (await rig.config())["metadata"]["generation"]
    assert isinstance(await activate(configs, EXAMPLE, no_options, BY_ADMIN), Decided)
    config = await rig.config()
    assert (config["spec"]["action"], config["metadata"]["generation"]) == ("DryRun", generation + 2)
