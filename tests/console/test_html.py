"""Pages escape all text that comes from objects and queries."""

import json
import uuid
from collections.abc import AsyncIterator
from datetime import UTC, datetime

import pytest
import pytest_asyncio

from tests.console.objects import a_condition, a_review, an_item, put, put_config
from tests.console.rig import Browser
from tests.eventually import eventually
from tests.machines import a_config, a_machine, the_config, the_machine
from virt_steward.apis.profiles import LOAD_AWARE
from virt_steward.controllers import REPORTERS
from virt_steward.controllers.autopilot.options import HCO
from virt_steward.kube.client import Client
from virt_steward.objects.identity import Key, Ref, ref_of
from virt_steward.objects.wallclock import rfc3339_micro
from virt_steward.platform.hco import HYPERCONVERGED
from virt_steward.platform.machineconfigs import MACHINE_CONFIG_POOL
from virt_steward_demo.simulation.install import make_namespace
from virt_steward_demo.simulation.installplans import a_subscription
from virt_steward_demo.simulation.nodes import add_pool

pytestmark = pytest.mark.asyncio(loop_scope="module")

EVIL = "<script>alert('x')</script><img src=x onerror=alert(1)>\"'></textarea>{{ 7*7 }}"
ESCAPED = "&lt;script&gt;alert("
PLACE = "xss"
CSV = "evil<script>alert(1)</script>.v1.0.0"


@pytest_asyncio.fixture(loop_scope="module", scope="module", autouse=True)
async def evil(client: Client) -> AsyncIterator[None]:
    """Put markup into every field that a user can write."""
    await make_namespace(client, PLACE)
    await _profile(client)
    await _machine(client)
    await _plan(client)
    await _asset(client)
    await _event(client)
    await _pool(client)
    yield
    for ref in (
        Ref(HYPERCONVERGED, HCO),
        Ref(MACHINE_CONFIG_POOL, Key("", "evil")),
        the_config("evil"),
        the_machine(PLACE, "evil"),
    ):
        await client.delete(ref)


@pytest.mark.parametrize(
    "path",
    [
        "/",
        "/inbox",
        "/pools/evil",
        "/profiles",
        f"/profiles/{LOAD_AWARE}",
        "/autopilot",
        "/autopilot/hco-golden-config",
        "/approvals",
        f"/approvals/{PLACE}/install-evil",
        "/placement",
        f"/placement/machines/{PLACE}/evil",
        "/placement/clusters/evil",
        "/activity",
    ],
)
async def test_pages_escape_object_text(browser: Browser, path: str) -> None:
    async def is_there() -> bool:
        return ESCAPED in (await browser.get(path)).text

    assert await eventually(is_there, within=20), (await browser.get(path)).text[-4000:]
    for text in ((await browser.get(path)).text, await _live(browser, path)):
        assert "<script>alert" not in text
        assert "<img src=x" not in text
        assert ">49<" not in text
        assert text.count("<script") == (1 if "<html" in text else 0), "our own"


async def test_pages_escape_query(browser: Browser) -> None:
    for path in ("/approvals", "/activity", "/placement", "/autopilot", "/inbox"):
        text = (await browser.get(f"{path}?q=%3Cscript%3Ealert(1)%3C/script%3E&controller=%22%3E&state=%22%3E")).text
        assert "<script>alert" not in text


async def _live(browser: Browser, path: str) -> str:
    async with browser.live(path) as stream:
        assert await eventually(lambda: stream.received("page"))
        return str(json.loads(stream.events[0][1])["page"])


async def _profile(client: Client) -> None:
    item = an_item(diff=f"+ {EVIL}\n- {EVIL}\n", message=EVIL, takes=[{"manager": EVIL, "field": EVIL}])
    condition = [a_condition("ReviewRequired", EVIL), a_condition("UpgradeAvailable", EVIL)]
    history = [
        {"planHash": "3" * 64, "at": "2026-03-01T12:00:00Z", "outcome": "Completed", "by": EVIL, "comment": EVIL}
    ]
    status = {
        **a_review(item),
        "conditions": condition,
        "history": history,
        "inputs": [{"name": EVIL[:200], "value": EVIL}],
        "approval": {"planHash": "3" * 64, "at": "2026-03-01T12:00:00Z", "by": EVIL, "comment": EVIL},
    }
    notes = {f"advisor.kubevirt.io/{name}": EVIL for name in ("rejected-plan", "rejected-by", "rejection-comment")}
    await put_config(client, status, annotations=notes)


async def _machine(client: Client) -> None:
    condition = a_condition("Placed", EVIL, status="False", reason=EVIL)
    notes = {"vitistack.io/cluster-selector": EVIL, "vitistack.io/placement-strategy": EVIL}
    machine = a_machine(PLACE, "evil", annotations=notes)
    await put(client, machine)
    await client.merge_patch(the_machine(PLACE, "evil"), {"status": {"conditions": [condition]}}, subresource="status")
    await put(client, a_config("evil", Key(PLACE, "none")))
    reachable = a_condition("Reachable", EVIL, status="False", reason="Silent")
    status = {"conditions": [reachable], "phase": EVIL[:60], "version": EVIL[:60], "machines": 1}
    await client.merge_patch(the_config("evil"), {"status": status}, subresource="status")


async def _plan(client: Client) -> None:
    subscription = a_subscription(Key(PLACE, "evil"), pin=CSV)
    await put(client, subscription)
    plan = {
        "apiVersion": "operators.coreos.com/v1alpha1",
        "kind": "InstallPlan",
        "metadata": {"name": "install-evil", "namespace": PLACE},
        "spec": {"approval": "Manual", "approved": False, "clusterServiceVersionNames": [CSV], "generation": 1},
    }
    await put(client, plan)
    await client.merge_patch(ref_of(plan), {"status": {"phase": "RequiresApproval"}}, subresource="status")


async def _asset(client: Client) -> None:
    notes = {"platform.kubevirt.io/autopilot": "true", "platform.kubevirt.io/mode": EVIL}
    metadata = {"name": HCO.name, "namespace": HCO.namespace, "annotations": notes}
    hco = {"apiVersion": "hco.kubevirt.io/v1", "kind": HYPERCONVERGED.name, "metadata": metadata}
    await put(client, hco)
    on_hco = {"kind": HYPERCONVERGED.name, "namespace": HCO.namespace, "name": HCO.name}
    await _event(client, "evil-asset", REPORTERS["autopilot"], on_hco, on_hco)


async def _pool(client: Client) -> None:
    await add_pool(client, "evil")
    degraded = {"conditions": [a_condition("Degraded", EVIL)], "degradedMachineCount": 1}
    await client.merge_patch(Ref(MACHINE_CONFIG_POOL, Key("", "evil")), {"status": degraded}, subresource="status")


async def _event(
    client: Client,
    name: str = "evil",
    controller: str = "approver",
    regarding: dict[str, str] | None = None,
    related: dict[str, str] | None = None,
) -> None:
    reference = regarding or {"kind": "InstallPlan", "namespace": PLACE, "name": EVIL, "apiVersion": EVIL}
    event = {
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": {"name": f"{name}-{uuid.uuid4().hex[:6]}", "namespace": reference["namespace"]},
        "eventTime": rfc3339_micro(datetime.now(UTC)),
        "reportingController": controller,
        "reportingInstance": "tests",
        "type": "Warning",
        "reason": "ApplyFailed" if related else "Evil",
        "action": "Test",
        "note": EVIL,
        "regarding": reference,
    }
    if related:
        event["related"] = related
    await put(client, event)
