"""What needs a person, and what was done without one."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

from virt_steward.apis.kubevirtconfig import KUBEVIRT_CONFIG
from virt_steward.apis.virtplatformconfig import VIRT_PLATFORM_CONFIG
from virt_steward.console import paths
from virt_steward.console.page_context import PageContent, matches
from virt_steward.controllers.approver.olm import INSTALL_PLAN
from virt_steward.controllers.placement.observation import MACHINE
from virt_steward.insight.activity import summary

if TYPE_CHECKING:
    from virt_steward.console.page_context import PageContext
    from virt_steward.insight.inbox import InboxItem

SHOWN = 100
KINDS = (VIRT_PLATFORM_CONFIG, INSTALL_PLAN, MACHINE, KUBEVIRT_CONFIG)
"""The kinds of objects that can need a person, besides assets."""
AREAS = {"profiles": "Profiles", "autopilot": "Autopilot", "approvals": "Approvals", "placement": "Placement"}
"""The pages whose objects can need a person."""
SUMMARY_PERIOD = timedelta(days=1)
NUMBERS = ("No", "One", "Two", "Three", "Four", "Five", "Six", "Seven", "Eight", "Nine", "Ten", "Eleven", "Twelve")


@dataclass(frozen=True, slots=True)
class WaitingCount:
    """How many objects of one page need a person."""

    page: str
    title: str
    count: int


async def page(context: PageContext) -> PageContent:
    waiting = waiting_counts(context)
    count = sum(one.count for one in waiting)
    chosen = context.query.get("of", "") if context.query.get("of") in AREAS else ""
    is_filtered = bool(context.search or chosen)
    items = [
        one
        for one in context.inbox(count if is_filtered else SHOWN)
        if chosen in ("", paths.page_of_inbox_item(one)) and matches(_text(one), context.search)
    ]
    values = {
        "headline": headline(count),
        "waiting": waiting,
        "chosen": chosen,
        "items": items[:SHOWN],
        "more": max((len(items) if is_filtered else count) - SHOWN, 0),
        "found": len(items),
        "summary": summary(context.events, context.now - SUMMARY_PERIOD),
    }
    return PageContent(
        "inbox.html",
        "Inbox",
        values,
        frozenset({"profiles", "approvals", "placement", "autopilot", "rollout", "activity"}),
        kinds=KINDS,
    )


def waiting_counts(context: PageContext) -> list[WaitingCount]:
    """What needs a person, by the page of its objects."""
    counts = dict.fromkeys(AREAS, 0)
    for item in context.inbox_items:
        counts[paths.page_of_inbox_item(item)] += 1
    counts["approvals"] += len(context.held_plans)
    return [WaitingCount(name, AREAS[name], count) for name, count in counts.items()]


def headline(count: int) -> str:
    """How many items need a person, as a sentence."""
    if count == 0:
        return "Nothing needs your attention."
    number = NUMBERS[count] if count < len(NUMBERS) else f"{count:,}"
    return f"{number} item{' needs' if count == 1 else 's need'} your attention."


def _text(item: InboxItem) -> str:
    return f"{item.tag} {item.subject} {item.says} {item.why}"
