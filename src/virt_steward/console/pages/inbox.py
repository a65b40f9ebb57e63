"""What needs a person, and what was done without one."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from virt_steward.apis.kubevirtconfig import KUBEVIRT_CONFIG
from virt_steward.apis.virtplatformconfig import VIRT_PLATFORM_CONFIG
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
SUMMARY_PERIOD = timedelta(days=1)
NUMBERS = ("No", "One", "Two", "Three", "Four", "Five", "Six", "Seven", "Eight", "Nine", "Ten", "Eleven", "Twelve")


async def page(context: PageContext) -> PageContent:
    count = len(context.inbox_items) + len(context.held_plans)
    items = [one for one in context.inbox(count if context.search else SHOWN) if matches(_text(one), context.search)]
    values = {
        "headline": headline(count),
        "items": items[:SHOWN],
        "more": max((len(items) if context.search else count) - SHOWN, 0),
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


def headline(count: int) -> str:
    """How many items need a person, as a sentence."""
    if count == 0:
        return "Nothing needs your attention."
    number = NUMBERS[count] if count < len(NUMBERS) else f"{count:,}"
    return f"{number} item{' needs' if count == 1 else 's need'} your attention."


def _text(item: InboxItem) -> str:
    return f"{item.tag} {item.subject} {item.says} {item.why}"
