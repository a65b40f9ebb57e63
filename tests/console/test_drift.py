"""The drift on the page of a profile: live values against applied values."""

import pytest
import pytest_asyncio

from tests.console.clicks import PAGE, shown
from tests.console.objects import MOMENT, a_drift, no_config, put, put_config
from tests.console.people import People, a_rule
from tests.console.rig import Browser, Served
from tests.controllers.advisor.rig import a_descheduler
from tests.eventually import eventually
from virt_steward.controllers.advisor.profiles.load_aware_rebalancing import DESCHEDULER, PSI
from virt_steward.kube.client import Client, Object
from virt_steward_demo.simulation.install import make_namespace

pytestmark = pytest.mark.asyncio(loop_scope="module")
APPLIED = a_descheduler(mode="Automatic")
MINUS, PLUS = '<span class="removed">-  mode: Predictive', '<span class="added">+  mode: Automatic'


@pytest_asyncio.fixture(loop_scope="module", autouse=True)
async def clean(client: Client) -> None:
    await no_config(client)
    await make_namespace(client, DESCHEDULER.key.namespace)


def with_users(*hashes: str) -> Object:
    users = [{"name": "core", "passwordHash": one} for one in hashes]
    return {
        "apiVersion": "machineconfiguration.openshift.io/v1",
        "kind": "MachineConfig",
        "metadata": {"name": PSI.key.name},
        "spec": {"config": {"passwd": {"users": users}}},
    }


async def test_drift_shows_live_and_applied_fields(browser: Browser, client: Client) -> None:
    await put(client, a_descheduler(mode="Predictive", logLevel="Debug"))
    status = a_drift(APPLIED, "spec.mode", "spec.profiles")
    entry = {"path": "/spec/mode", "live": "Predictive", "planned": "Automatic", "manager": "<editor>", "time": MOMENT}
    status["items"][0]["drift"] = [entry]
    await put_config(client, status, action="Apply")
    page = (await shown(browser, PAGE, MINUS)).text
    assert PLUS in page
    assert f"/spec/mode is Predictive, planned Automatic (changed by &lt;editor&gt;, {MOMENT})" in page
    assert "LongLifecycle" in page, "our own, around it"
    assert "Debug" not in page, "of somebody else"
    await put(client, APPLIED)

    async def is_over() -> bool:
        return MINUS not in (await browser.get(PAGE)).text

    assert await eventually(is_over)
    await client.delete(DESCHEDULER)
    page = (await shown(browser, PAGE, "The object was deleted")).text
    assert PLUS in page


async def test_drift_is_hidden_without_list_right(served: Served, people: People, client: Client) -> None:
    await put(client, a_descheduler(mode="Predictive"))
    await put_config(client, a_drift(APPLIED, "spec.mode"), action="Apply")
    async with served.browser() as browser:
        await browser.sign_in(await people.somebody(a_rule("advisor.kubevirt.io")))
        page = await shown(browser, PAGE, "you may not list kubedeschedulers.operator.openshift.io")
        assert "Predictive" not in page.text
    await client.delete(DESCHEDULER)


async def test_drift_masks_secrets(browser: Browser, client: Client) -> None:
    await put(client, with_users("$6$now"))
    await put_config(client, a_drift(with_users("$6$before", "$6$more"), "spec.config"), action="Apply")
    page = (await shown(browser, PAGE, "are live now")).text
    assert "passwordHash: •••" in page
    assert "$6$" not in page
    await client.delete(PSI)


async def test_drift_is_empty_for_unchanged_object(browser: Browser, client: Client) -> None:
    await put(client, APPLIED)
    await put_config(client, {**a_drift(APPLIED, "spec.mode"), "planHash": "7" * 64}, action="Apply")
    assert "are live now" not in (await shown(browser, PAGE, "7" * 64)).text
    await client.delete(DESCHEDULER)
