"""The first page: what needs a person, and what was done without one."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from virt_steward.apis.kubevirtconfig import KUBEVIRT_CONFIG
from virt_steward.apis.virtplatformconfig import VIRT_PLATFORM_CONFIG
from virt_steward.console.page_context import PageContent, holds
from virt_steward.controllers.approver.olm import INSTALL_PLAN
from virt_steward.controllers.placement.observation import MACHINE
from virt_steward.insight.activity import summary

if TYPE_CHECKING:
    from virt_steward.console.page_context import PageContext
    from virt_steward.insight.inbox import InboxItem

SHOWN = 100
LATELY = timedelta(days=1)
NUMBERS = ("No", "One", "Two", "Three", "Four", "Five", "Six", "Seven", "Eight", "Nine", "Ten", "Eleven", "Twelve")


async def page(visit: PageContext) -> PageContent:
    count = len(visit.matters) + len(visit.held)
    found = visit.inbox(count if visit.words else SHOWN)
    matters = [one for one in found if holds(_text(one), visit.words)]
    values = {
        "headline": _headline(count),
        "matters": matters[:SHOWN],
        "more": max((len(matters) if visit.words else count) - SHOWN, 0),
        "found": len(matters),
        "lately": summary(visit.told, visit.now - LATELY),
    }
    return PageContent(
        "inbox.html",
        "Inbox",
        values,
        frozenset({"profiles", "approvals", "placement", "autopilot", "rollout", "activity"}),
        missing=(VIRT_PLATFORM_CONFIG, INSTALL_PLAN, MACHINE, KUBEVIRT_CONFIG),
    )


def _headline(count: int) -> str:
    if count == 0:
        return "Nothing waits for you. Everything that you may see is in order."
    number = NUMBERS[count] if count < len(NUMBERS) else f"{count:,}"
    return f"{number} thing{' waits' if count == 1 else 's wait'} for a person. Everything else is in order."


def _text(matter: InboxItem) -> str:
    return f"{matter.tag} {matter.subject} {matter.says} {matter.why}"
