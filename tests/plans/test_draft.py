"""Drafts on the real API server: what is shown, what is taken, what is refused."""

from typing import Any

import pytest

from tests.clients import a_client
from tests.grants import an_account
from tests.widgets import V1, WIDGET, a_widget, the_widget
from virt_steward.apis.virtplatformconfig import TakenField
from virt_steward.kube.client import Client, Selection
from virt_steward.plans.annotations import APPLIED_HASH, GOVERNED_BY
from virt_steward.plans.draft import LONGEST_DIFF, Drafted, DraftRejected, TargetsMoving, draft, fitted, judged
from virt_steward.plans.execute import ItemOutdated, WriteRefused, Written, is_applied, write
from virt_steward.plans.fields import fields_set_by
from virt_steward.plans.fingerprint import plan_hash
from virt_steward.plans.intent import Impacts, Intent
from virt_steward.plans.owner import PlanOwner
from virt_steward.platform.health import NotReady, Ready
from virt_steward.runtime.access import Access, Installation
from virt_steward.ssa.managers import ADVISOR
from virt_steward.ssa.preview import fetch
from virt_steward_demo.local.controlplane import ControlPlane

OWNER = PlanOwner("big", ADVISOR, "tests")


def an_intent(namespace: str, *, moot: str = "", **spec: Any) -> Intent:
    desired = a_widget(namespace, **spec)
    return Intent("resize", desired, fields_set_by(desired), Impacts("Medium", "Low"), "It will be resized", moot)


async def drafted(client: Client, intent: Intent) -> Any:
    found = await draft(client, OWNER, [intent], {intent.ref: await fetch(client, intent.ref)})
    assert isinstance(found, Drafted), found
    return found.items[0]


async def test_draft_of_new_object_shows_additions(admin: Client, widgets: str) -> None:
    item = await drafted(admin, an_intent(widgets, size=3))
    assert (item.state, item.impact_severity) == ("Pending", "Medium")
    lines = item.diff.splitlines()
    assert lines[0].endswith("(absent)")
    assert lines[3:] == [
        f"+apiVersion: {V1}",
        "+kind: Widget",
        "+metadata:",
        "+  name: one",
        f"+  namespace: {widgets}",
        "+spec:",
        "+  size: 3",
    ]
    assert await admin.list(WIDGET, Selection(widgets)) == []


async def test_draft_takes_only_changed_fields_of_others(admin: Client, widgets: str) -> None:
    await admin.apply(a_widget(widgets, size=2, colour="red"), manager="argocd")
    item = await drafted(admin, an_intent(widgets, size=3))
    assert "-  size: 2\n+  size: 3\n" in item.diff
    assert "colour" not in item.diff
    assert item.takes == (TakenField("argocd", ".spec.size"),)
    assert item.impact_severity == "Medium"  # for what is taken
    assert item.message == "It will be resized; takes over .spec.size of argocd"


async def test_draft_without_changes_is_completed(admin: Client, widgets: str) -> None:
    await admin.apply(a_widget(widgets, size=3), manager="argocd")
    item = await drafted(admin, an_intent(widgets, size=3))
    assert (item.state, item.impact_severity, item.diff, item.takes) == ("Completed", "Low", "", ())
    assert item.hash == item.planned_hash


async def test_draft_without_changes_waits_until_ready(admin: Client, widgets: str) -> None:
    changes = await drafted(admin, an_intent(widgets, size=3))
    moot = await drafted(admin, an_intent(widgets, moot="Somebody else did it", size=3))
    await admin.apply(a_widget(widgets, size=3), manager="argocd")
    item = await drafted(admin, an_intent(widgets, size=3))
    waits = judged(item, NotReady("2/10"))
    assert (waits.state, waits.message) == (
        "InProgress",
        "Already in desired state, but not ready yet: 2/10",
    )
    assert plan_hash("big", [waits]) == plan_hash("big", [item])
    assert judged(item, Ready("ready")) == item
    assert (judged(changes, NotReady("2/10")), judged(moot, NotReady("2/10"))) == (changes, moot)


async def test_draft_skips_moot_intent(admin: Client, widgets: str) -> None:
    item = await drafted(admin, an_intent(widgets, moot="Somebody else did it", size=3))
    assert (item.state, item.message, item.desired_state, item.managed_fields) == (
        "Completed",
        "Somebody else did it",
        {},
        (),
    )


async def test_draft_is_rejected_by_server(admin: Client, widgets: str) -> None:
    bad = {**a_widget(widgets), "metadata": {"name": "No Name", "namespace": widgets}}
    intent = Intent("bad", bad, (), Impacts("Low", "Low"), "")
    found = await draft(admin, OWNER, [intent], {})
    assert isinstance(found, DraftRejected)
    assert found.item == "bad"


async def test_draft_reports_moving_target(admin: Client, widgets: str) -> None:
    old = await admin.create(a_widget(widgets, size=1))
    await admin.merge_patch(the_widget(widgets), {"spec": {"size": 2}})
    intent = an_intent(widgets, size=3)
    assert isinstance(await draft(admin, OWNER, [intent], {intent.ref: old}), TargetsMoving)
    assert isinstance(await draft(admin, OWNER, [intent], {}), TargetsMoving)  # it seemed absent


async def test_write_sets_annotations(admin: Client, widgets: str) -> None:
    await admin.apply(a_widget(widgets, size=2, colour="red"), manager="argocd")
    item = await drafted(admin, an_intent(widgets, size=3))
    result = await write(admin, OWNER, item, bypass=False)
    assert isinstance(result, Written)
    live = await admin.get(the_widget(widgets))
    assert live["spec"] == {"size": 3, "colour": "red"}
    assert live["metadata"]["annotations"] == {GOVERNED_BY: "big", APPLIED_HASH: item.planned_hash}
    assert is_applied(item, live, "big")
    assert not is_applied(item, live, "small")
    again = await write(admin, OWNER, item, bypass=False)
    assert isinstance(again, Written)
    assert again.object["metadata"]["resourceVersion"] == live["metadata"]["resourceVersion"]  # nothing was sent


async def test_write_refuses_unlisted_takeover(admin: Client, widgets: str) -> None:
    await admin.apply(a_widget(widgets, size=2), manager="argocd")
    item = await drafted(admin, an_intent(widgets, size=3))
    await admin.apply(a_widget(widgets, size=2), manager="kubectl", force=True)  # the same value, one more owner
    result = await write(admin, OWNER, item, bypass=False)
    assert isinstance(result, ItemOutdated)
    assert "of kubectl" in result.why
    assert (await admin.get(the_widget(widgets)))["spec"]["size"] == 2


async def test_write_overwrites_in_bypass_mode(admin: Client, widgets: str) -> None:
    item = await drafted(admin, an_intent(widgets, size=3))
    await admin.create(a_widget(widgets, size=9, colour="red"))
    assert isinstance(await write(admin, OWNER, item, bypass=False), ItemOutdated)
    assert isinstance(await write(admin, OWNER, item, bypass=True), Written)
    assert (await admin.get(the_widget(widgets)))["spec"] == {"size": 3, "colour": "red"}


async def test_write_reports_refusal(admin: Client, widgets: str, control_plane: ControlPlane) -> None:
    item = await drafted(admin, an_intent(widgets, size=3))
    account = await an_account(admin, Access("bystander"), Installation(widgets, prefix=widgets))
    async with a_client(control_plane, account.token) as powerless:
        result = await write(powerless, OWNER, item, bypass=False)
    assert isinstance(result, WriteRefused)
    assert "cannot get resource" in result.why


@pytest.mark.parametrize("owned_by_us", [True, False])
async def test_write_keeps_value_of_dropped_field(admin: Client, widgets: str, *, owned_by_us: bool) -> None:
    first = await drafted(admin, an_intent(widgets, size=3, colour="blue"))
    await write(admin, OWNER, first, bypass=False)
    if not owned_by_us:
        await admin.apply(a_widget(widgets, colour="blue"), manager="argocd")
    item = await drafted(admin, an_intent(widgets, size=4))
    assert "colour" not in item.diff
    assert isinstance(await write(admin, OWNER, item, bypass=False), Written)
    assert (await admin.get(the_widget(widgets)))["spec"] == {"size": 4, "colour": "blue"}


def test_long_diff_is_cut_with_note() -> None:
    lines = [f"+line {number}" for number in range(20_000)]
    whole = "\n".join(lines) + "\n"
    shown = fitted(whole)
    assert len(shown) <= LONGEST_DIFF < len(whole)
    *kept, note = shown.splitlines()
    assert kept == lines[: len(kept)]
    assert note == f"\\ {len(lines) - len(kept)} more lines are not shown"
    assert fitted("+short\n") == "+short\n"
