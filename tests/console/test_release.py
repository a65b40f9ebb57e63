"""Staged changes in the console: shown, and released with the viewer's own credentials."""

from collections.abc import AsyncIterator
from contextlib import suppress
from datetime import UTC, datetime

import msgspec
import pytest
import pytest_asyncio

from tests.console.clicks import shown
from tests.console.rig import Browser
from virt_steward.controllers.autopilot.annotation_keys import ROLLOUT_RELEASE, SCOPE
from virt_steward.controllers.autopilot.options import HCO
from virt_steward.controllers.autopilot.rollouts.staged import Occasion, StagedChange, ref_of_staging, staging_intent
from virt_steward.kube.client import Client
from virt_steward.kube.errors import NotFound
from virt_steward.objects.field_changes import FieldChange
from virt_steward.objects.identity import Ref, Regarding, ref_of
from virt_steward.platform.hco import HYPERCONVERGED

pytestmark = pytest.mark.asyncio(loop_scope="module")

ASSET = "swap-enable"
PAGE = f"/autopilot/{ASSET}"
HCO_REF = Ref(HYPERCONVERGED, HCO)


def a_change(desired: str) -> StagedChange:
    staged_at = datetime(2026, 3, 1, 12, tzinfo=UTC)
    fields = (FieldChange("/spec/kernelArguments/0", "<old>", "psi=1"), FieldChange("/spec/fips", planned=True))
    recorded = StagedChange(staged_at, desired, ("worker",), asset=ASSET, occasion=Occasion.UPDATE, live_hash="live")
    return msgspec.structs.replace(recorded, fields=fields, more_fields=7)


@pytest_asyncio.fixture(loop_scope="module")
async def hco(client: Client) -> AsyncIterator[Regarding]:
    metadata = {"name": HCO.name, "namespace": HCO.namespace, "annotations": {SCOPE: ASSET}}
    made = await client.apply(
        {"apiVersion": "hco.kubevirt.io/v1", "kind": "HyperConverged", "metadata": metadata, "spec": {}},
        manager="admin",
        force=True,
    )
    pool = {
        "apiVersion": "machineconfiguration.openshift.io/v1",
        "kind": "MachineConfigPool",
        "metadata": {"name": "worker"},
        "spec": {"nodeSelector": {"matchLabels": {"pool": "worker"}}},
    }
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "node-of-pool", "labels": {"pool": "worker"}}}
    for obj in (pool, node):
        await client.apply(obj, manager="admin", force=True)
    yield Regarding(HCO_REF, "hco.kubevirt.io/v1", made.object["metadata"]["uid"])
    for ref in (ref_of_staging(HCO.namespace), HCO_REF, ref_of(node)):
        with suppress(NotFound):
            await client.delete(ref)


async def stage(client: Client, hco: Regarding, change: StagedChange) -> None:
    await client.apply(staging_intent(hco, {"90-worker-swap-online": change}), manager="admin", force=True)


async def test_release_is_of_the_change_that_was_shown(client: Client, browser: Browser, hco: Regarding) -> None:
    await stage(client, hco, a_change("1"))
    page = await shown(browser, PAGE, "a change is staged since 2026-03-01T12:00:00Z")
    inbox = await shown(browser, "/", "Review and release")
    assert "has a change that waits, for nodes reboot when it is written" in inbox.text
    assert (
        "It changes /spec/kernelArguments/0: &lt;old&gt; -&gt; psi=1; /spec/fips: true (added) and 7 more" in inbox.text
    )
    page = await shown(browser, PAGE, "1 nodes reboot (worker: 1 in 1 rounds); 0 VMs must migrate")
    assert '<span class="removed">-/spec/kernelArguments/0: &lt;old&gt;' in page.text
    assert '<span class="added">+/spec/kernelArguments/0: psi=1' in page.text
    assert '<span class="added">+/spec/fips: true' in page.text
    assert "7 more fields" in page.text
    form = page.form(f"{PAGE}/release")
    await stage(client, hco, a_change("2"))
    answer = await browser.post(f"{PAGE}/release", form)
    assert answer.status == 409
    assert "is not staged any more, or has changed" in answer.text
    assert ROLLOUT_RELEASE not in (await client.get(HCO_REF))["metadata"]["annotations"]
    await shown(browser, PAGE, a_change("2").id)
    answer = await browser.post(f"{PAGE}/release", (await browser.get(PAGE)).form(f"{PAGE}/release"))
    assert "Released swap-enable@" in answer.text
    assert (await client.get(HCO_REF))["metadata"]["annotations"][ROLLOUT_RELEASE] == a_change("2").id
