"""One timeline of what all controllers have told."""

from __future__ import annotations

from typing import TYPE_CHECKING

from virt_steward.console.visits import Page
from virt_steward.controllers import NAMES
from virt_steward.insight.activity import timeline
from virt_steward.kube.events import EVENT

if TYPE_CHECKING:
    from virt_steward.console.visits import Visit

SHOWN = 200


async def page(visit: Visit) -> Page:
    controller = visit.query.get("controller", "")
    chosen = controller if controller in NAMES else ""
    found = timeline(visit.told, words=visit.words, controller=chosen)
    values = {
        "told": found[:SHOWN],
        "more": max(len(found) - SHOWN, 0),
        "controllers": NAMES,
        "chosen": chosen,
    }
    return Page("activity.html", "Activity", values, frozenset({"activity"}), missing=(EVENT,))
