"""The colleague who sets a field again and again."""

from tests.eventually import soon
from tests.widgets import a_widget, the_widget
from virt_steward.kube.client import Client
from virt_steward_demo.simulation.background import in_background
from virt_steward_demo.simulation.colleague import Colleague


async def test_a_colleague_insists_until_the_end(admin: Client, widgets: str) -> None:
    await admin.create(a_widget(widgets, size=1, colour="red"))
    colleague = Colleague(admin, the_widget(widgets), ("spec", "size"), (7, 8), every=0.01)
    async with in_background(colleague):
        assert await soon(lambda: colleague.edits > 4)
    edits = colleague.edits
    found = await admin.get(the_widget(widgets))
    assert found["spec"] == {"size": 7 if edits % 2 else 8, "colour": "red"}
    (theirs,) = [one for one in found["metadata"]["managedFields"] if one["manager"] == "impatient-colleague"]
    assert theirs["fieldsV1"] == {"f:spec": {"f:size": {}}}


async def test_a_refusal_does_not_put_them_off(admin: Client, widgets: str) -> None:
    colleague = Colleague(admin, the_widget(widgets, "late"), ("spec", "size"), (7,), every=0.01)
    async with in_background(colleague):
        await admin.create(a_widget(widgets, "late", size=1))
        assert await soon(lambda: colleague.edits > 0)
