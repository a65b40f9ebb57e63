"""What can be decided about a config, one class per step.

Not here: which step is next (`decide.py`) and how a step is acted on (`reconcile.py`).
"""

from __future__ import annotations

from virt_steward.controllers.advisor.steps.base import StatusStep
from virt_steward.controllers.advisor.steps.execution import (
    Abort,
    ApplyItem,
    AwaitItem,
    AwaitWindow,
    CompleteItem,
    FailItem,
    Finish,
    failed_item,
)
from virt_steward.controllers.advisor.steps.integrity import FailTampered, RestoreStatus
from virt_steward.controllers.advisor.steps.review import (
    AwaitEnforcement,
    AwaitReview,
    Begin,
    FailStale,
    Ignore,
    LackPrerequisites,
    NothingToDo,
    Redraft,
    RedraftLater,
    RejectPlan,
    Settle,
)
from virt_steward.controllers.advisor.steps.settled import (
    AdoptVersion,
    Enforce,
    KeepFailed,
    MarkDrifted,
    OfferPlan,
    OfferUpgrade,
    Recover,
    Stay,
)

Step = StatusStep | Redraft | ApplyItem
"""Redraft and ApplyItem ask the API server for something first, and are followed by one of the others."""

__all__ = [
    "Abort",
    "AdoptVersion",
    "ApplyItem",
    "AwaitEnforcement",
    "AwaitItem",
    "AwaitReview",
    "AwaitWindow",
    "Begin",
    "CompleteItem",
    "Enforce",
    "FailItem",
    "FailStale",
    "FailTampered",
    "Finish",
    "Ignore",
    "KeepFailed",
    "LackPrerequisites",
    "MarkDrifted",
    "NothingToDo",
    "OfferPlan",
    "OfferUpgrade",
    "Recover",
    "Redraft",
    "RedraftLater",
    "RejectPlan",
    "RestoreStatus",
    "Settle",
    "StatusStep",
    "Stay",
    "Step",
    "failed_item",
]
