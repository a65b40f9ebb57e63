"""Rollbacks on the real API server: of one plan or several, with changes of others in between."""

from dataclasses import replace

from tests.plans.test_draft import OWNER, an_intent
from tests.widgets import a_widget, the_widget
from virt_steward.apis.virtplatformconfig import PlanItem
from virt_steward.kube.client import Client
from virt_steward.plans.annotations import GOVERNED_BY
from virt_steward.plans.draft import Drafted, TargetsMoving, draft
from virt_steward.plans.execute import ItemOutdated, Written, write
from virt_steward.plans.fields import fields_set_by
from virt_steward.plans.intent import Intent
from virt_steward.plans.preimage import PreImage, capture
from virt_steward.plans.rollback import FOREIGN, AlreadyGone, draft_rollback, write_rollback
from virt_steward.ssa.preview import fetch


async def planned(client: Client, intent: Intent, earlier: PreImage | None = None) -> tuple[PlanItem, PreImage]:
    """An item, and the record of what is there before it is written."""
    targets = {intent.ref: await fetch(client, intent.ref)}
    found = await draft(client, OWNER, [intent], targets)
    assert isinstance(found, Drafted), found
    return found.items[0], capture(OWNER, "a" * 64, found.items, targets, earlier)


async def applied(client: Client, intent: Intent, earlier: PreImage | None = None) -> PreImage:
    """Execute a plan, and return the record of what was there before."""
    item, image = await planned(client, intent, earlier)
    assert isinstance(await write(client, OWNER, item, bypass=False), Written)
    return image


async def back(client: Client, namespace: str, image: PreImage) -> PlanItem:
    ref = the_widget(namespace)
    found = await draft_rollback(client, OWNER, image, {ref: await fetch(client, ref)})
    assert isinstance(found, Drafted), found
    [item] = found.items
    return item


async def test_rollback_refuses_new_owner_since_review(admin: Client, widgets: str) -> None:
    image = await applied(admin, an_intent(widgets, size=3))
    item = await back(admin, widgets, image)
    await admin.merge_patch(the_widget(widgets), {"spec": {"colour": "red"}}, manager="ben")
    result = await write_rollback(admin, OWNER, item)
    assert isinstance(result, ItemOutdated), result
    assert "ben" in result.why


async def test_rollback_keeps_value_with_other_owner(admin: Client, widgets: str) -> None:
    await admin.create(a_widget(widgets, size=1))
    image = await applied(admin, an_intent(widgets, size=3))
    await admin.apply(a_widget(widgets, size=3), manager="argocd")
    item = await back(admin, widgets, image)
    assert "spec.size" in item.message
    assert isinstance(await write_rollback(admin, OWNER, item), Written)
    assert (await admin.get(the_widget(widgets)))["spec"] == {"size": 3}


async def test_rollback_refuses_value_with_new_owner_since_review(admin: Client, widgets: str) -> None:
    await admin.create(a_widget(widgets, size=1))
    item = await back(admin, widgets, await applied(admin, an_intent(widgets, size=3)))
    await admin.apply(a_widget(widgets, size=3), manager="argocd")
    result = await write_rollback(admin, OWNER, item)
    assert isinstance(result, ItemOutdated)
    assert "argocd" in result.why
    assert (await admin.get(the_widget(widgets)))["spec"] == {"size": 3}


async def test_rollback_reports_moving_target(admin: Client, widgets: str) -> None:
    await admin.create(a_widget(widgets, size=1))
    image = await applied(admin, an_intent(widgets, size=3))
    ref = the_widget(widgets)
    old = await fetch(admin, ref)
    await admin.merge_patch(ref, {"status": {"busy": True}}, subresource="status")
    assert isinstance(await draft_rollback(admin, OWNER, image, {ref: old}), TargetsMoving)


async def test_rollback_removes_added_label(admin: Client, widgets: str) -> None:
    await admin.create(a_widget(widgets, size=1))
    desired = a_widget(widgets, labels={"role": "worker"}, size=3)
    image = await applied(admin, replace(an_intent(widgets), desired=desired, fields=fields_set_by(desired)))
    await write_rollback(admin, OWNER, await back(admin, widgets, image))
    assert "labels" not in (await admin.get(the_widget(widgets)))["metadata"]


async def test_rollback_of_unwritten_item_has_nothing_to_do(admin: Client, widgets: str) -> None:
    await admin.create(a_widget(widgets, size=1))
    _, image = await planned(admin, an_intent(widgets, size=3))
    item = await back(admin, widgets, image)
    assert (item.state, item.message) == ("Completed", "There is nothing to roll back")


async def test_rollback_of_rolled_back_item_has_nothing_to_do(admin: Client, widgets: str) -> None:
    await admin.create(a_widget(widgets, size=1))
    image = await applied(admin, an_intent(widgets, size=3))
    await write_rollback(admin, OWNER, await back(admin, widgets, image))
    assert (await back(admin, widgets, image)).state == "Completed"


async def test_rollback_leaves_unmanaged_target_to_user(admin: Client, widgets: str) -> None:
    image = await applied(admin, an_intent(widgets, size=3))
    found = await draft_rollback(admin, OWNER, image, {})
    assert isinstance(found, Drafted)
    assert [(item.state, item.message) for item in found.items] == [("Completed", FOREIGN)]


async def test_rollback_restores_state_before_first_plan(admin: Client, widgets: str) -> None:
    await admin.create(a_widget(widgets, size=1))
    first = await applied(admin, an_intent(widgets, size=3, colour="blue"))
    second = await applied(admin, an_intent(widgets, size=4), first)
    await write_rollback(admin, OWNER, await back(admin, widgets, second))
    assert (await admin.get(the_widget(widgets)))["spec"] == {"size": 1}


async def test_rollback_deletes_object_of_first_plan(admin: Client, widgets: str) -> None:
    first = await applied(admin, an_intent(widgets, size=3))
    second = await applied(admin, an_intent(widgets, size=4), first)
    assert isinstance(await write_rollback(admin, OWNER, await back(admin, widgets, second)), AlreadyGone)


async def test_rollback_of_two_plans_restores_one_moment(admin: Client, widgets: str) -> None:
    """Neither plan was in force with size 2 and without a colour: ben set it between them."""
    await admin.create(a_widget(widgets, size=1))
    first = await applied(admin, an_intent(widgets, size=3, colour="blue"))
    await admin.merge_patch(the_widget(widgets), {"spec": {"size": 2}}, manager="ben")
    second = await applied(admin, an_intent(widgets, size=4, colour="blue"), first)
    third = await applied(admin, an_intent(widgets, size=5, colour="blue"), second)
    item = await back(admin, widgets, third)
    assert "not restored, as others set it between two plans: spec.size (was 2)" in item.message
    await write_rollback(admin, OWNER, item)
    assert (await admin.get(the_widget(widgets)))["spec"] == {"size": 1}


async def test_rollback_restores_what_others_took_back_between_plans(admin: Client, widgets: str) -> None:
    """Without the annotation no plan governs the object: the values of that moment belong together."""
    await admin.create(a_widget(widgets, size=1))
    first = await applied(admin, an_intent(widgets, size=3, colour="blue"))
    taken_back = {"metadata": {"annotations": {GOVERNED_BY: None}}, "spec": {"size": 2}}
    await admin.merge_patch(the_widget(widgets), taken_back, manager="ben")
    second = await applied(admin, an_intent(widgets, size=4, colour="green"), first)
    await write_rollback(admin, OWNER, await back(admin, widgets, second))
    assert (await admin.get(the_widget(widgets)))["spec"] == {"size": 2, "colour": "blue"}


async def test_rollback_warns_of_new_combination(admin: Client, widgets: str) -> None:
    await admin.create(a_widget(widgets, size=1))
    image = await applied(admin, an_intent(widgets, size=3, colour="blue"))
    assert "combination" not in (await back(admin, widgets, image)).message
    await admin.merge_patch(the_widget(widgets), {"spec": {"size": 2}}, manager="ben")
    message = (await back(admin, widgets, image)).message
    assert "kept as others have changed it since: spec.size" in message
    assert "have not been in force in this combination" in message


async def test_rollback_names_values_that_stay_in_object_of_others(admin: Client, widgets: str) -> None:
    image = await applied(admin, an_intent(widgets, size=3))
    await admin.merge_patch(the_widget(widgets), {"spec": {"colour": "red"}}, manager="ben")
    message = (await back(admin, widgets, image)).message
    assert "the object stays, since others own fields of it: ben" in message
    assert "the values of the plan stay, too: spec.size; remove those that you do not want" in message


async def test_pre_image_of_rolled_back_plan_is_not_carried_over(admin: Client, widgets: str) -> None:
    await admin.create(a_widget(widgets, size=1))
    first = await applied(admin, an_intent(widgets, size=3))
    await write_rollback(admin, OWNER, await back(admin, widgets, first))
    await admin.merge_patch(the_widget(widgets), {"spec": {"size": 3}}, manager="ben")
    second = await applied(admin, an_intent(widgets, size=4), first)
    await write_rollback(admin, OWNER, await back(admin, widgets, second))
    assert (await admin.get(the_widget(widgets)))["spec"] == {"size": 3}
