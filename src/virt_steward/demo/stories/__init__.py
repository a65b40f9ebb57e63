"""One story per controller, told in this order."""

from __future__ import annotations

from typing import TYPE_CHECKING

from virt_steward.demo.stories.advisor import advisor
from virt_steward.demo.stories.approver import approver
from virt_steward.demo.stories.autopilot import autopilot
from virt_steward.demo.stories.placement import placement

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from virt_steward.demo.stage import Stage
    from virt_steward.demo.telling import Teller

STORIES: tuple[Callable[[Stage, Teller], Awaitable[None]], ...] = (approver, placement, autopilot, advisor)
