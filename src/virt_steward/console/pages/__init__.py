"""The pages, one module for each part of the navigation.

Not here: HTML, which is in the templates, and anything that asks the server for more than rights.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from virt_steward.apis.installplanapprover import INSTALL_PLAN_APPROVER
from virt_steward.console.pages import activity, approvals, autopilot, inbox, placement, profiles
from virt_steward.console.sources import EVENTS_OF_OLD
from virt_steward.controllers.approver.olm import SUBSCRIPTION
from virt_steward.kube.events import EVENT
from virt_steward.objects.corekinds import NODE

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from virt_steward.console.page_context import PageContent, PageContext
    from virt_steward.objects.identity import Kind

EVENTS = frozenset({EVENT, EVENTS_OF_OLD})
APPROVAL_KINDS = EVENTS | {INSTALL_PLAN_APPROVER, SUBSCRIPTION}


@dataclass(frozen=True, slots=True)
class Route:
    """One sort of page."""

    path: re.Pattern[str]
    nav: str
    """The entry of the navigation to which it belongs."""
    page: Callable[[PageContext], Awaitable[PageContent]]
    kinds: frozenset[Kind] = EVENTS
    """What it shows, besides what every page counts."""
    all_assets: bool = False


def _at(path: str) -> re.Pattern[str]:
    """A path in which `<name>` is the name of an object."""
    return re.compile(re.sub(r"<(\w+)>", r"(?P<\1>[A-Za-z0-9.:-]+)", path))


PAGES = (
    Route(_at("/"), "inbox", inbox.page, APPROVAL_KINDS),
    Route(_at("/profiles"), "profiles", profiles.page),
    Route(_at("/profiles/<name>"), "profiles", profiles.plan, EVENTS | {NODE}),
    Route(_at("/autopilot"), "autopilot", autopilot.page, all_assets=True),
    Route(_at("/autopilot/<name>"), "autopilot", autopilot.asset, all_assets=True),
    Route(_at("/approvals"), "approvals", approvals.page, APPROVAL_KINDS),
    Route(_at("/approvals/<namespace>/<name>"), "approvals", approvals.plan, APPROVAL_KINDS),
    Route(_at("/placement"), "placement", placement.page),
    Route(_at("/placement/machines/<namespace>/<name>"), "placement", placement.machine),
    Route(_at("/placement/clusters/<name>"), "placement", placement.cluster),
    Route(_at("/activity"), "activity", activity.page),
)
