"""The overview and the page of a pool: nodes, rollouts, holds and controllers, as far as the viewer may see them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import pytest_asyncio

from tests.console.objects import a_condition, a_drift, a_review, no_config, put_config
from tests.console.people import a_rule
from tests.console.rig import namespace_of
from tests.controllers.advisor.rig import a_descheduler
from tests.eventually import eventually
from tests.otheroperator import OtherOperator
from virt_steward.apis.profiles import LOAD_AWARE
from virt_steward.console.lease_holders import OUR_LEASES
from virt_steward.controllers.advisor.conditions import GATES
from virt_steward.controllers.advisor.profiles.load_aware_rebalancing import DESCHEDULER
from virt_steward.controllers.autopilot.annotation_keys import SCOPE
from virt_steward.controllers.autopilot.options import HCO, AutopilotOptions
from virt_steward.holds.freezes import CONFIG_MAP_NAME
from virt_steward.objects.corekinds import NODE
from virt_steward.objects.identity import Key, Ref, ref_of
from virt_steward.platform.hco import HYPERCONVERGED
from virt_steward.platform.machineconfigs import MACHINE_CONFIG_POOL
from virt_steward_demo.simulation.install import make_namespace
from virt_steward_demo.simulation.nodedaemon import readiness
from virt_steward_demo.simulation.nodes import Node, add_node, add_pool
from virt_steward_demo.simulation.pools import CURRENT, DESIRED, STATE

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from tests.console.people import People
    from tests.console.rig import Browser, Served
    from tests.grants import Account
    from virt_steward.kube.client import Client

pytestmark = pytest.mark.asyncio(loop_scope="module")

POOL = Ref(MACHINE_CONFIG_POOL, Key("", "board"))
OLD, NEW = "rendered-board-old", "rendered-board-new"


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def board(client: Client) -> AsyncIterator[Client]:
    """A pool of its own with two nodes."""
    await add_pool(client, "board", configuration={"name": OLD})
    for name in ("board-1", "board-2"):
        await add_node(client, Node(name, roles=("board",)))
        await _annotate(client, name, {CURRENT: OLD, DESIRED: OLD, STATE: "Done"})
    await _report(client, OLD, updated=2)
    yield client
    for ref in (POOL, _node("board-1"), _node("board-2")):
        await client.delete(ref)


async def test_overview_shows_nodes_as_they_change(browser: Browser, board: Client) -> None:
    async with browser.live("/") as stream:
        assert await eventually(lambda: stream.has("board-2") and stream.has("2 of 2 nodes updated"))
        assert "Cordoned" not in _tiles(stream.events[-1][1])
        await board.merge_patch(_node("board-1"), {"spec": {"unschedulable": True}})
        assert await eventually(lambda: "Cordoned" in _tiles(stream.events[-1][1]))
        await board.merge_patch(_node("board-1"), {"spec": {"unschedulable": None}})
        assert await eventually(lambda: "Cordoned" not in _tiles(stream.events[-1][1]))


@pytest.mark.usefixtures("board")
async def test_overview_hides_what_the_viewer_may_not_list(served: Served, people: People) -> None:
    async with served.browser() as nobody:
        await nobody.sign_in(await people.stranger())
        page = (await nobody.get("/")).text
        assert "board-1" not in page
        assert "No nodes, or none that you may list" in page
        assert "<code>nodes</code>: you may not list them" in page
        assert (await nobody.get("/pools/board")).status == 404
    async with served.browser() as nodes_only:
        await nodes_only.sign_in(await people.somebody(a_rule("", resources=("nodes",))))
        page = (await nodes_only.get("/")).text
        assert "Nodes without a pool" in page
        assert "board-1" in page
        assert "/pools/board" not in page
    async with served.browser() as pools_only:
        await pools_only.sign_in(await people.somebody(a_rule(MACHINE_CONFIG_POOL.group)))
        page = (await pools_only.get("/pools/board")).text
        assert "You may not list nodes" in page
        assert "board-1" not in page


async def test_pool_page_shows_the_rollout_as_it_happens_and_afterwards(browser: Browser, board: Client) -> None:
    async with browser.live("/pools/board") as stream:
        assert await eventually(lambda: stream.received("page"))
        await board.merge_patch(POOL, {"spec": {"configuration": {"name": NEW}}})
        await _report(board, OLD, updated=0, Updating="True")
        await _annotate(board, "board-1", {DESIRED: NEW, STATE: "Working"})
        assert await eventually(lambda: stream.has('class=\\"b-updating\\"'))
        status = readiness(ready=False)
        await board.merge_patch(_node("board-1"), {"status": status}, subresource="status")
        assert await eventually(lambda: stream.has('class=\\"b-rebooting\\"'))
        await board.merge_patch(_node("board-1"), {"status": readiness(ready=True)}, subresource="status")
        await _annotate(board, "board-1", {CURRENT: NEW, STATE: "Done"})
        assert await eventually(lambda: "1 waits, 1 updated" in stream.events[-1][1])
        await _annotate(board, "board-2", {CURRENT: NEW, DESIRED: NEW})
        await _report(board, NEW, updated=2, Updated="True")
        assert await eventually(lambda: "Last rollout" in stream.events[-1][1])
    page = (await browser.get("/pools/board")).text
    assert "2 of 2 nodes of pool board: 2 updated" in page
    assert '<rect class="b-rebooting"' in page


async def test_overview_lists_what_is_on_hold(browser: Browser, board: Client) -> None:
    async def is_listed() -> bool:
        page = (await browser.get("/")).text
        return "MachineConfigPool board</a>" in page and "no node updates until resumed" in page

    assert not await is_listed()
    await board.merge_patch(POOL, {"spec": {"paused": True}})
    assert await eventually(is_listed)
    await board.merge_patch(POOL, {"spec": {"paused": False}})


async def test_overview_lists_freezes_and_closed_gates(browser: Browser, client: Client) -> None:
    key = Key(AutopilotOptions().namespace, CONFIG_MAP_NAME)
    metadata = {"name": key.name, "namespace": key.namespace}
    freeze = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"reason": "year end"}}
    waiting = [a_condition("InProgress"), a_condition(GATES, "gate pools is closed: worker is Updating")]
    await put_config(client, {**a_review(), "phase": "InProgress", "conditions": waiting}, action="Apply")
    await make_namespace(client, key.namespace)
    await client.create(freeze)

    async def on_hold() -> str:
        return (await browser.get("/")).text.partition('id="holds"')[2].partition("</section>")[0]

    async def are_listed() -> bool:
        found = await on_hold()
        return all(one in found for one in ("The approver", "year end", "gate pools is closed", "Gate closed"))

    async def is_over() -> bool:
        return "The approver" not in await on_hold()

    assert await eventually(are_listed, within=8), await on_hold()
    await client.delete(ref_of(freeze))
    assert await eventually(is_over)
    await no_config(client)


async def test_overview_says_which_replica_leads(
    served: Served, browser: Browser, people: People, client: Client, account: Account
) -> None:
    ours, forged = namespace_of(account.token), OtherOperator(client, Key("default", OUR_LEASES["approver"]))
    leader = OtherOperator(client, Key(ours, OUR_LEASES["advisor"]))
    await forged.renew("forged-0_1", duration=300)
    await leader.renew("advisor-0_1f2e", duration=300)

    async def row(viewer: Browser, controller: str) -> str:
        return (await viewer.get("/")).text.partition(f'<tr id="c-{controller}">')[2].partition("</tr>")[0]

    async def leads() -> bool:
        return "Leading" in await row(browser, "advisor")

    assert await eventually(leads)
    assert "advisor-0</span>" in await row(browser, "advisor")
    assert "nobody holds its Lease" in await row(browser, "approver")
    assert "forged" not in (await browser.get("/")).text
    async with served.browser() as restricted:
        await restricted.sign_in(await people.stranger())
        assert "Leading" in await row(restricted, "advisor")
        assert "advisor-0" not in await row(restricted, "advisor")
    await leader.delete()
    await forged.delete()


async def test_asset_page_says_who_owns_which_field(
    served: Served, browser: Browser, people: People, client: Client
) -> None:
    hco = {
        "apiVersion": "hco.kubevirt.io/v1",
        "kind": HYPERCONVERGED.name,
        "metadata": {"name": HCO.name, "namespace": HCO.namespace, "annotations": {SCOPE: "true"}},
    }
    await client.apply(hco, manager="kubectl-apply-of-a-test", force=True)
    path = "/autopilot/hco-golden-config"

    async def is_shown() -> bool:
        return "kubectl-apply-of-a-test" in (await browser.get(path)).text

    assert await eventually(is_shown, within=20)
    page = (await browser.get(path)).text
    assert "Who owns which field" in page
    assert ".metadata.annotations.platform.kubevirt.io/autopilot" in page
    async with served.browser() as restricted:
        await restricted.sign_in(await people.stranger())
        assert "kubectl-apply-of-a-test" not in (await restricted.get(path)).text
    await client.delete(ref_of(hco))


async def test_plan_page_says_who_owns_which_field(
    served: Served, browser: Browser, people: People, client: Client
) -> None:
    await make_namespace(client, DESCHEDULER.key.namespace)
    await client.apply(a_descheduler(mode="Predictive"), manager="argocd-of-a-test", force=True)
    await put_config(client, a_drift(a_descheduler(mode="Automatic"), "spec.mode"), action="Apply")
    path = f"/profiles/{LOAD_AWARE}"

    async def is_shown() -> bool:
        return "argocd-of-a-test" in (await browser.get(path)).text

    assert await eventually(is_shown)
    assert "Fields of KubeDescheduler cluster by owner: other" in (await browser.get(path)).text
    async with served.browser() as restricted:
        await restricted.sign_in(await people.somebody(a_rule("advisor.kubevirt.io")))
        page = (await restricted.get(path)).text
        assert "configure-descheduler" in page
        assert "argocd-of-a-test" not in page
    await client.delete(DESCHEDULER)
    await no_config(client)


async def test_inbox_can_be_limited_to_one_page(browser: Browser, client: Client) -> None:
    await put_config(client, a_review())
    review = f'Review plan<span class="sr"> of {LOAD_AWARE}'

    async def is_shown() -> bool:
        return review in (await browser.get("/inbox?of=profiles")).text

    assert await eventually(is_shown)
    assert review in (await browser.get("/inbox")).text
    assert review in (await browser.get("/inbox?of=nonsense")).text
    assert review not in (await browser.get("/inbox?of=placement")).text
    assert '<a href="/inbox?of=profiles" class="fact has">' in (await browser.get("/")).text
    await no_config(client)


def _node(name: str) -> Ref:
    return Ref(NODE, Key("", name))


def _tiles(page: str) -> str:
    """The card of the pool."""
    return page.partition('id=\\"pool-board\\"')[2].partition("</ul>")[0]


async def _annotate(client: Client, name: str, annotations: dict[str, str]) -> None:
    await client.merge_patch(_node(name), {"metadata": {"annotations": annotations}})


async def _report(client: Client, config: str, *, updated: int, **conditions: str) -> None:
    """The status of the pool."""
    listed = [
        {"type": name, "status": status, "lastTransitionTime": "2026-03-01T12:00:00Z"}
        for name, status in conditions.items()
    ]
    counts: dict[str, Any] = {"machineCount": 2, "updatedMachineCount": updated, "readyMachineCount": updated}
    status = {"configuration": {"name": config}, "conditions": listed, **counts}
    await client.merge_patch(POOL, {"status": status}, subresource="status")
