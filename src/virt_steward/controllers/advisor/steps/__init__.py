"""What can be decided about a config, one class per step.

Not here: which step is next (`decide.py`) and how a step is acted on (`reconcile.py`).
"""

from __future__ import annotations

from virt_steward.controllers.advisor.steps.base import StatusStep
from virt_steward.controllers.advisor.steps.execution import (
    Abort,
    ApplyItem,
    AwaitFreeze,
    AwaitGates,
    AwaitItem,
    AwaitWindow,
    CompleteItem,
    EvaluateGates,
    FailItem,
    Finish,
    RecordOverride,
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

Step = StatusStep | Redraft | ApplyItem | EvaluateGates
"""All but the first ask the API server or others for something first, and are followed by one of the others."""

__all__ = [
    "Abort",
    "AdoptVersion",
    "ApplyItem",
    "AwaitEnforcement",
    "AwaitFreeze",
    "AwaitGates",
    "AwaitItem",
    "AwaitReview",
    "AwaitWindow",
    "Begin",
    "CompleteItem",
    "Enforce",
    "EvaluateGates",
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
    "RecordOverride",
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
