"""The verdicts on a plan: approve it, keep it pending, or ignore it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from datetime import datetime


class PlanReason(StrEnum):
    """Why a plan is not approved, for programs."""

    # Nothing for an approver to do.
    ALREADY_APPROVED = "AlreadyApproved"
    AUTOMATIC = "AutomaticApproval"
    NOT_WAITING = "NotWaitingForApproval"
    OUT_OF_SCOPE = "OutOfScope"
    LEFT_TO_POLICY = "LeftToPolicyNamespace"
    # The plan itself is not what Git asks for.
    SUBSCRIPTION_BEHIND = "SubscriptionBehind"
    SUPERSEDED = "Superseded"
    NOT_PINNED = "NotPinned"
    INTERMEDIATE_VERSION = "IntermediateVersion"
    PIN_NOT_OFFERED = "PinNotOffered"
    NOT_AN_UPGRADE = "NotAnUpgrade"
    RIDES_ALONG = "UnpinnedUpgradeRidesAlong"
    DEPENDENCY_NOT_ALLOWED = "DependencyNotAllowed"
    # It cannot be determined.
    UNKNOWN_PACKAGE = "UnknownPackage"
    NO_SUBSCRIPTION = "NoSubscription"
    UNREADABLE = "SubscriptionUnreadable"
    NAMESPACE_DENIED = "NamespaceDenied"
    BAD_POLICY = "BadPolicy"
    APPROVAL_REFUSED = "ApprovalRefused"
    # The approver's own conditions.
    AUTO_APPROVE_OFF = "AutoApproveOff"
    VERSION_OUT_OF_RANGE = "VersionOutOfRange"
    NOT_FIRST_INSTALL = "NotFirstInstall"
    WAITING_FOR_APPROVALS = "WaitingForApprovals"
    APPROVALS_NOT_ENFORCED = "ApprovalsNotEnforced"
    TOO_YOUNG = "TooYoung"
    FROZEN = "Frozen"
    OUTSIDE_WINDOW = "OutsideWindow"
    GATE_CLOSED = "GateClosed"
    DRY_RUN = "DryRun"


NEED_NOBODY = frozenset({PlanReason.SUPERSEDED, PlanReason.SUBSCRIPTION_BEHIND})
"""Plans that OLM leaves behind, or resolves by itself: nobody has to act."""


@dataclass(frozen=True, slots=True)
class ApprovePlan:
    """Every check passes."""

    reason: str


@dataclass(frozen=True, slots=True)
class WaitForPlan:
    """The plan is pending, with this reason in the status."""

    reason: PlanReason
    message: str
    until: datetime | None = None
    gates: tuple[str, ...] = ()
    """Gates that must be evaluated first: they are all that keeps the plan from being approved."""
    recheck: float | None = None
    """Seconds until it is evaluated again, where no event tells."""


@dataclass(frozen=True, slots=True)
class LeavePlan:
    """The plan is out of scope, and not reported."""

    reason: PlanReason
    message: str


Verdict = ApprovePlan | WaitForPlan | LeavePlan
