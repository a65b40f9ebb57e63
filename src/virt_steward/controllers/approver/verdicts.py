"""What can come of a plan: approve it, wait, or leave it alone."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from datetime import datetime


class PlanReason(StrEnum):
    """Why a plan is not approved, for machines."""

    # Nothing for an approver to do.
    ALREADY_APPROVED = "AlreadyApproved"
    AUTOMATIC = "AutomaticApproval"
    NOT_WAITING = "NotWaitingForApproval"
    OUT_OF_SCOPE = "OutOfScope"
    # The plan itself is not what Git asks for.
    SUBSCRIPTION_BEHIND = "SubscriptionBehind"
    SUPERSEDED = "Superseded"
    NOT_PINNED = "NotPinned"
    INTERMEDIATE_VERSION = "IntermediateVersion"
    PIN_NOT_OFFERED = "PinNotOffered"
    RIDES_ALONG = "UnpinnedUpgradeRidesAlong"
    DEPENDENCY_NOT_ALLOWED = "DependencyNotAllowed"
    # It cannot be told.
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
    TOO_YOUNG = "TooYoung"
    OUTSIDE_WINDOW = "OutsideWindow"
    DRY_RUN = "DryRun"


NEED_NOBODY = frozenset({PlanReason.SUPERSEDED, PlanReason.SUBSCRIPTION_BEHIND})
"""What OLM leaves behind, or removes by itself."""


@dataclass(frozen=True, slots=True)
class ApprovePlan:
    """Every check holds."""

    because: str


@dataclass(frozen=True, slots=True)
class WaitForPlan:
    """Not now: the plan is listed as pending with this reason."""

    reason: PlanReason
    message: str
    until: datetime | None = None


@dataclass(frozen=True, slots=True)
class LeavePlan:
    """Not ours to decide; nobody needs to be told."""

    reason: PlanReason
    message: str


Verdict = ApprovePlan | WaitForPlan | LeavePlan
