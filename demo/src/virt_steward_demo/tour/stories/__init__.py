"""One story per controller, told in this order."""

from __future__ import annotations

from typing import TYPE_CHECKING

from virt_steward_demo.tour.stories.advisor import advisor
from virt_steward_demo.tour.stories.approver import approver
from virt_steward_demo.tour.stories.autopilot import autopilot
from virt_steward_demo.tour.stories.placement import placement

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from virt_steward_demo.tour.narrator import Narrator
    from virt_steward_demo.tour.stage import DemoCluster

STORIES: tuple[Callable[[DemoCluster, Narrator], Awaitable[None]], ...] = (approver, placement, autopilot, advisor)
