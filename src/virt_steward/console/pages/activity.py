"""The events of all controllers: a chart, and one list."""

from __future__ import annotations

from typing import TYPE_CHECKING

from virt_steward.console.page_context import PageContent
from virt_steward.console.pictures.activity_chart import activity_chart
from virt_steward.controllers import NAMES
from virt_steward.insight.activity import timeline
from virt_steward.kube.events import EVENT

if TYPE_CHECKING:
    from virt_steward.console.page_context import PageContext

SHOWN = 200


async def page(context: PageContext) -> PageContent:
    controller = context.query.get("controller", "")
    chosen = controller if controller in NAMES else ""
    events = context.events
    found = timeline(events, words=context.search, controller=chosen)
    values = {
        "chart": activity_chart(events, (chosen,) if chosen else NAMES, context.now),
        "events": found[:SHOWN],
        "more": max(len(found) - SHOWN, 0),
        "controllers": NAMES,
        "chosen": chosen,
    }
    return PageContent("activity.html", "Activity", values, frozenset({"activity"}), kinds=(EVENT,))
