"""Events that tenants write in the name of a controller: they change no state, and count only on their own objects."""

import uuid

import pytest

from tests.console.objects import put
from tests.console.rig import Browser
from tests.eventually import eventually
from virt_steward.controllers import REPORTERS
from virt_steward.controllers.autopilot.options import HCO
from virt_steward.kube.client import Client, Object
from virt_steward.platform.hco import HYPERCONVERGED
from virt_steward_demo.simulation.install import make_namespace

pytestmark = pytest.mark.asyncio(loop_scope="module")
ON_HCO = {
    "apiVersion": "hco.kubevirt.io/v1",
    "kind": HYPERCONVERGED.name,
    "namespace": HCO.namespace,
    "name": HCO.name,
}


def an_event(namespace: str, note: str, controller: str, regarding: Object, related: Object | None = None) -> Object:
    return {
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": {"name": f"event-{uuid.uuid4().hex[:8]}", "namespace": namespace},
        "eventTime": "2099-03-01T12:00:00.000000Z",
        "reportingController": REPORTERS[controller],
        "reportingInstance": "virt-steward",
        "type": "Warning",
        "reason": "ApplyFailed",
        "action": "Apply",
        "note": note,
        "regarding": regarding,
        **({"related": related} if related else {}),
    }


async def test_forged_event_changes_no_asset(client: Client, browser: Browser) -> None:
    tenant = f"tenant-{uuid.uuid4().hex[:8]}"
    await make_namespace(client, tenant)
    annotations = {"platform.kubevirt.io/autopilot": "true"}
    metadata = {"name": HCO.name, "namespace": HCO.namespace, "annotations": annotations}
    await put(client, {"apiVersion": "hco.kubevirt.io/v1", "kind": HYPERCONVERGED.name, "metadata": metadata})
    theirs = {"apiVersion": "v1", "kind": "ConfigMap", "namespace": tenant, "name": "any"}
    await client.create(an_event(tenant, f"forged by {tenant}", "autopilot", theirs, related=ON_HCO))
    await client.create(an_event(tenant, f"forged by {tenant}", "autopilot", ON_HCO | {"namespace": tenant}, ON_HCO))
    await client.create(an_event(tenant, f"forged by {tenant}", "autopilot", ON_HCO, ON_HCO))
    await client.create(an_event(HCO.namespace, f"genuine {tenant}", "autopilot", ON_HCO, ON_HCO | {"name": tenant}))

    async def is_read() -> bool:
        return f"genuine {tenant}" in (await browser.get("/activity")).text

    assert await eventually(is_read)
    for path in ("/activity", "/", "/autopilot", "/autopilot/hco-golden-config"):
        assert f"forged by {tenant}" not in (await browser.get(path)).text


async def test_event_of_tenant_namespace_is_marked(client: Client, browser: Browser) -> None:
    tenant = f"tenant-{uuid.uuid4().hex[:8]}"
    await make_namespace(client, tenant)
    plan = {"apiVersion": "operators.coreos.com/v1alpha1", "kind": "InstallPlan", "namespace": tenant, "name": "one"}
    await client.create(an_event(tenant, f"claimed by {tenant}", "approver", plan))

    async def is_read() -> bool:
        return f"claimed by {tenant}" in (await browser.get(f"/activity?q={tenant}")).text

    assert await eventually(is_read)
    assert "approver, not verified" in (await browser.get(f"/activity?q={tenant}")).text
