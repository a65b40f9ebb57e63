"""Another editor who sets a field again and again."""

from tests.eventually import eventually
from tests.widgets import a_widget, the_widget
from virt_steward.kube.client import Client
from virt_steward_demo.simulation.control_loop import in_background
from virt_steward_demo.simulation.faults import OtherEditor


async def test_other_editor_edits_until_it_is_cancelled(admin: Client, widgets: str) -> None:
    await admin.create(a_widget(widgets, size=1, colour="red"))
    editor = OtherEditor(admin, the_widget(widgets), ("spec", "size"), (7, 8), interval=0.01)
    async with in_background(editor):
        assert await eventually(lambda: editor.edits > 4)
    found = await admin.get(the_widget(widgets))
    assert found["spec"] in ({"size": 7, "colour": "red"}, {"size": 8, "colour": "red"})
    (theirs,) = [one for one in found["metadata"]["managedFields"] if one["manager"] == "other-editor"]
    assert theirs["fieldsV1"] == {"f:spec": {"f:size": {}}}


async def test_other_editor_continues_after_a_refusal(admin: Client, widgets: str) -> None:
    editor = OtherEditor(admin, the_widget(widgets, "late"), ("spec", "size"), (7,), interval=0.01)
    async with in_background(editor):
        await admin.create(a_widget(widgets, "late", size=1))
        assert await eventually(lambda: editor.edits > 0)
