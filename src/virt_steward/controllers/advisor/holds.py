"""The rules by which a freeze or a window keeps the next item of a plan from starting. Pure."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

from virt_steward.controllers.advisor.annotation_keys import OVERRIDE_FREEZE_BY, OVERRIDE_FREEZE_COMMENT
from virt_steward.controllers.advisor.observation import InvalidWindow
from virt_steward.controllers.advisor.steps import AwaitFreeze, AwaitWindow, RecordOverride
from virt_steward.holds.freezes import FROZEN, Frozen
from virt_steward.objects.wallclock import rfc3339
from virt_steward.objects.windows import Closed

if TYPE_CHECKING:
    from virt_steward.controllers.advisor.observation import AdvisorObservation
    from virt_steward.controllers.advisor.steps import Step

NEVER_OPENS = "spec.window never opens; no item starts until it is corrected"


def freeze_is_over(observation: AdvisorObservation, _: datetime) -> Step | None:
    """A freeze that begins during the execution stops it before the next item."""
    freeze, config, item = observation.freeze, observation.config, observation.current_item
    if not isinstance(freeze, Frozen) or item is None:
        return None
    if config.overrides_freeze:
        approval, notes = config.status.approval, config.metadata.annotations
        if approval and approval.override_freeze:
            return None
        return RecordOverride(notes.get(OVERRIDE_FREEZE_BY, "")[:253], notes.get(OVERRIDE_FREEZE_COMMENT, "")[:1024])
    return AwaitFreeze(FROZEN, f"{item.name} does not start: {freeze.message}", freeze.until)


def window_is_open(observation: AdvisorObservation, _: datetime) -> Step | None:
    item = observation.current_item
    match observation.window:
        case InvalidWindow(why):
            return AwaitWindow("BadWindow", invalid_window(why), None)
        case Closed(until=None):
            return AwaitWindow("NeverOpen", NEVER_OPENS, None)
        case Closed(until=datetime() as until) if item:
            message = f"{item.name} starts when the maintenance window opens at {rfc3339(until)}"
            return AwaitWindow("WindowClosed", message, until)
    return None


def invalid_window(why: str) -> str:
    return f"spec.window is invalid ({why}); no item starts until it is corrected"
