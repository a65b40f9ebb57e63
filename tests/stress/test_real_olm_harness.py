"""Whether the real OLM works here as it does on a cluster."""

import time
import uuid
from collections.abc import AsyncIterator

import pytest

from tests.clients import a_client
from tests.eventually import eventually
from tests.olm.catalog import APP, DEMO
from tests.olm.lifecycle_manager import LifecycleManager
from tests.olm.namespaces import OperatorNamespace


@pytest.fixture
async def namespace(olm: LifecycleManager) -> AsyncIterator[OperatorNamespace]:
    async with a_client(olm.control_plane) as client:
        yield await OperatorNamespace.create(client, f"olm-{uuid.uuid4().hex[:8]}")
    olm.check()


async def test_real_olm_installs_pinned_operator_after_approval(namespace: OperatorNamespace) -> None:
    csv = DEMO.csv("1.0.0")
    subscribed = time.monotonic()
    await namespace.subscribe(DEMO, pin="1.0.0")
    plan = await namespace.wait_for_plan(csv)
    waiting = time.monotonic()
    assert await namespace.phase(csv) == ""
    await namespace.approve(plan)
    await namespace.wait_until_installed(csv)
    installed = time.monotonic()
    print(f"\n{csv}: pending after {waiting - subscribed:.2f} s, installed {installed - waiting:.2f} s after that")


async def test_real_olm_keeps_upgrade_plan_after_moved_pin(namespace: OperatorNamespace) -> None:
    await namespace.install(DEMO, "1.0.0")
    offered = await namespace.wait_for_plan(DEMO.csv("1.1.0"))
    await namespace.move_pin(DEMO, "1.1.0")
    await namespace.approve(offered)
    await namespace.wait_until_installed(DEMO.csv("1.1.0"))
    assert [plan["spec"]["clusterServiceVersionNames"] for plan in await namespace.plans()] == [
        [DEMO.csv("1.0.0")],
        [DEMO.csv("1.1.0")],
    ]


async def test_real_olm_installs_dependency_with_own_subscription(namespace: OperatorNamespace) -> None:
    await namespace.subscribe(APP, pin="3.0.0")
    csvs = APP.csv("3.0.0"), DEMO.csv("1.1.0")
    plan = await namespace.wait_for_plan(*csvs)
    await namespace.approve(plan)
    await namespace.wait_until_installed(*csvs)
    assert await eventually(lambda: _has_generated(namespace, plan["metadata"]["name"]))


async def _has_generated(namespace: OperatorNamespace, plan: str) -> bool:
    """Whether OLM has made the Subscription for the dependency, and says so."""
    makers = {
        subscription["spec"]["name"]: subscription["metadata"].get("annotations", {}).get("olm.generated-by")
        for subscription in await namespace.subscriptions()
    }
    return makers == {APP.package: None, DEMO.package: plan}
