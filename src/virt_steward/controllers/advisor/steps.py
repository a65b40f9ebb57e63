"""What can be decided about a config: each step is a type that says what is to be done and what is to be told."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from virt_steward.controllers.advisor.phases import On

if TYPE_CHECKING:
    from datetime import datetime

    from virt_steward.apis.virtplatformconfig import PlanApproval, PlanItem


@dataclass(frozen=True, slots=True)
class Ignore:
    """Leave everything as it is."""

    on = On.IGNORED


@dataclass(frozen=True, slots=True)
class Settle:
    """Look again in a moment: not all that matters has been seen."""

    why: str
    on = On.NOT_READY


@dataclass(frozen=True, slots=True)
class LackPrerequisites:
    missing: tuple[str, ...]
    on = On.PREREQUISITES_MISSING


@dataclass(frozen=True, slots=True)
class Redraft:
    """Make a new plan, which changes nothing on the cluster."""

    because: str


@dataclass(frozen=True, slots=True)
class RedraftLater:
    """Something moved while the plan was drafted."""

    why: str
    on = On.TARGETS_MOVING


@dataclass(frozen=True, slots=True)
class RejectPlan:
    """The server would not take an item, so there is no plan."""

    item: str
    why: str
    on = On.PLAN_REJECTED


@dataclass(frozen=True, slots=True)
class NothingToDo:
    """The new plan is empty."""

    on = On.PLAN_EMPTY


@dataclass(frozen=True, slots=True)
class AwaitReview:
    """A person must look at the plan."""

    reason: str
    message: str
    stale: str = ""
    """What has changed since the plan was made; empty if nothing has."""
    on = On.REVIEW_NEEDED


@dataclass(frozen=True, slots=True)
class Begin:
    """Carry the plan out."""

    approval: PlanApproval
    on = On.APPROVED


@dataclass(frozen=True, slots=True)
class FailStale:
    """What was approved no longer fits the cluster: nothing more is written."""

    why: str
    on = On.PLAN_STALE


@dataclass(frozen=True, slots=True)
class AwaitWindow:
    """The next item begins when the window opens."""

    reason: str
    message: str
    until: datetime | None
    on = On.ITEM_MOVED


@dataclass(frozen=True, slots=True)
class ApplyItem:
    """Write one object."""

    item: PlanItem


@dataclass(frozen=True, slots=True)
class AwaitItem:
    """It was written, and does not work yet."""

    item: PlanItem
    message: str
    deadline: datetime | None
    on = On.ITEM_MOVED


@dataclass(frozen=True, slots=True)
class CompleteItem:
    item: PlanItem
    message: str
    on = On.ITEM_MOVED


@dataclass(frozen=True, slots=True)
class FailItem:
    """The plan goes on without it."""

    item: PlanItem
    message: str
    on = On.ITEM_MOVED


@dataclass(frozen=True, slots=True)
class Abort:
    """The plan ends with it."""

    item: PlanItem
    message: str
    on = On.ABORTED


@dataclass(frozen=True, slots=True)
class Finish:
    failed: tuple[str, ...] = ()

    @property
    def on(self) -> On:
        return On.DONE_BUT_FOR_ERRORS if self.failed else On.ALL_DONE


@dataclass(frozen=True, slots=True)
class MarkDrifted:
    items: tuple[PlanItem, ...]
    on = On.DRIFT_FOUND


@dataclass(frozen=True, slots=True)
class Recover:
    """What had drifted is as planned again."""

    with_errors: bool

    @property
    def on(self) -> On:
        return On.DRIFT_GONE_BUT_FOR_ERRORS if self.with_errors else On.DRIFT_GONE


@dataclass(frozen=True, slots=True)
class Enforce:
    """Bypass mode: apply again what has drifted."""

    items: tuple[PlanItem, ...]
    on = On.ENFORCED


@dataclass(frozen=True, slots=True)
class OfferUpgrade:
    """By its logic, this version would do something else than what was done."""

    items: tuple[str, ...]
    on = On.LOGIC_CHANGED


@dataclass(frozen=True, slots=True)
class AdoptVersion:
    """What was done is what this version would do."""

    reason: str
    items: tuple[PlanItem, ...]
    on = On.VERSION_ADOPTED


@dataclass(frozen=True, slots=True)
class Stay:
    """There is nothing to do."""

    on = On.NOTHING


Said = (
    Ignore
    | Settle
    | LackPrerequisites
    | RedraftLater
    | RejectPlan
    | NothingToDo
    | AwaitReview
    | Begin
    | FailStale
    | AwaitWindow
    | AwaitItem
    | CompleteItem
    | FailItem
    | Abort
    | Finish
    | MarkDrifted
    | Recover
    | Enforce
    | OfferUpgrade
    | AdoptVersion
    | Stay
)
"""Steps that change nothing but the status."""

Step = Said | Redraft | ApplyItem
