"""What comes of an approved plan, as whoever approved it hears."""

import asyncio
from functools import partial
from typing import Any

import pytest

from tests.clients import a_client
from tests.controllers.advisor.builders import EARLIER, PLAN, a_config, a_status, an_item
from tests.controllers.advisor.reviews import config_in_review
from tests.controllers.advisor.rig import the_config
from tests.eventually import eventually
from tests.gateway import Gateway, no_streaming_list
from tests.grants import an_account
from virt_steward.apis.meta import Condition
from virt_steward.apis.profiles import EXAMPLE
from virt_steward.controllers.advisor.follow import PlanCompleted, PlanFailed, PlanInProgress, follow, progress
from virt_steward.controllers.advisor.observation import VirtPlatformConfig
from virt_steward.kube.client import Client
from virt_steward.kube.errors import Forbidden
from virt_steward.runtime.access import Access, Installation
from virt_steward_demo.local.controlplane import ControlPlane

CLOSED = Condition("WaitingForWindow", "True", "WindowClosed", "begins at noon", EARLIER)
BROKEN = Condition("Failed", "True", "ItemFailed", "one failed", EARLIER)

JUDGE = partial(progress, plan_hash=PLAN)


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        pytest.param(None, PlanFailed("the VirtPlatformConfig has been deleted"), id="without a config"),
        pytest.param(
            a_config(a_status(), action="Apply"),
            PlanInProgress(("approved; the advisor has not started it yet",)),
            id="that nobody has seen",
        ),
        pytest.param(a_config(a_status()), PlanFailed("action was set to DryRun"), id="that was called back"),
        pytest.param(
            a_config(a_status(plan_hash="new"), action="Apply"),
            PlanFailed("it was replaced by plan new"),
            id="that is void",
        ),
        pytest.param(
            a_config(a_status("InProgress", an_item("a", "Completed", message="ok"), an_item("b"))),
            PlanInProgress(("[1/2] a Completed: ok",)),
            id="with one of two done",
        ),
        pytest.param(
            a_config(a_status("InProgress", an_item("a"), conditions=(CLOSED,))),
            PlanInProgress(("begins at noon",)),
            id="that waits for its window",
        ),
        pytest.param(a_config(a_status("Completed")), PlanCompleted(), id="that is done"),
        pytest.param(
            a_config(a_status("Failed", conditions=(BROKEN,))),
            PlanFailed("it is in phase Failed: one failed"),
            id="that has failed",
        ),
        pytest.param(
            a_config(a_status("CompletedWithErrors")),
            PlanFailed("it is in phase CompletedWithErrors"),
            id="with errors",
        ),
    ],
)
def test_progress_follows_phase(config: VirtPlatformConfig | None, expected: Any) -> None:
    assert progress(config, PLAN) == expected


async def test_follow_raises_forbidden(configs: Client, control_plane: ControlPlane, namespace: str) -> None:
    account = await an_account(configs, Access("bystander"), Installation(namespace))
    async with a_client(control_plane, account.token) as client:
        with pytest.raises(Forbidden):
            await asyncio.wait_for(follow(client, EXAMPLE, JUDGE, print), 20)


async def test_follow_works_without_streaming_lists(
    configs: Client, control_plane: ControlPlane, gateway: Gateway
) -> None:
    gateway.intercept = no_streaming_list
    await config_in_review(configs, action="DryRun")
    async with a_client(control_plane, server=gateway.server) as client:
        assert await follow(client, EXAMPLE, JUDGE, print) == PlanFailed("action was set to DryRun")


async def test_follow_ends_when_config_is_deleted(configs: Client) -> None:
    await config_in_review(configs, action="Apply")
    said: list[str] = []
    following = asyncio.create_task(follow(configs, EXAMPLE, JUDGE, said.append))
    assert await eventually(lambda: said == ["approved; the advisor has not started it yet"])
    await configs.delete(the_config(EXAMPLE))
    assert await asyncio.wait_for(following, 20) == PlanFailed("the VirtPlatformConfig has been deleted")
