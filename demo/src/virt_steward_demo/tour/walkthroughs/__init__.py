"""One walkthrough per controller, in the order of the tour."""

from __future__ import annotations

from typing import TYPE_CHECKING

from virt_steward_demo.tour.walkthroughs.advisor import advisor
from virt_steward_demo.tour.walkthroughs.approver import approver
from virt_steward_demo.tour.walkthroughs.autopilot import autopilot
from virt_steward_demo.tour.walkthroughs.placement import placement

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from virt_steward_demo.tour.environment import DemoCluster
    from virt_steward_demo.tour.narrator import Narrator

WALKTHROUGHS: tuple[Callable[[DemoCluster, Narrator], Awaitable[None]], ...] = (approver, placement, autopilot, advisor)
