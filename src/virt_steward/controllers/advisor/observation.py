"""The frozen record of what was seen around one VirtPlatformConfig."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import msgspec

from virt_steward.apis.virtplatformconfig import (
    Impact,
    Input,
    PlanItem,
    ProfileOptions,
    VirtPlatformConfigSpec,
    VirtPlatformConfigStatus,
)
from virt_steward.objects.meta import Meta
from virt_steward.objects.windows import Open

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from virt_steward.objects import windows
    from virt_steward.platform.health import Health

APPROVED_PLAN = "advisor.kubevirt.io/approved-plan"
APPROVED_BY = "advisor.kubevirt.io/approved-by"
APPROVAL_COMMENT = "advisor.kubevirt.io/approval-comment"
REJECTED_PLAN = "advisor.kubevirt.io/rejected-plan"
REJECTED_BY = "advisor.kubevirt.io/rejected-by"
REJECTION_COMMENT = "advisor.kubevirt.io/rejection-comment"
REJECTED_GENERATION = "advisor.kubevirt.io/rejected-generation"
UNAPPROVED = dict.fromkeys((APPROVED_PLAN, APPROVED_BY, APPROVAL_COMMENT))
"""In a patch: no approval stands."""
UNREJECTED = dict.fromkeys((REJECTED_PLAN, REJECTED_BY, REJECTION_COMMENT, REJECTED_GENERATION))
"""In a patch: no rejection stands."""

ALWAYS = Open(until=None)


class FieldOwner(msgspec.Struct, frozen=True):
    """An entry of managedFields, without the fields."""

    manager: str = ""


class VirtPlatformConfigMeta(Meta, frozen=True, rename="camel"):
    generation: int = 0
    annotations: dict[str, str] = msgspec.field(default_factory=dict)
    deletion_timestamp: str = ""
    managed_fields: tuple[FieldOwner, ...] = ()


class VirtPlatformConfig(msgspec.Struct, frozen=True):
    """A VirtPlatformConfig."""

    metadata: VirtPlatformConfigMeta
    spec: VirtPlatformConfigSpec
    status: VirtPlatformConfigStatus = VirtPlatformConfigStatus()

    @property
    def options(self) -> ProfileOptions:
        return self.spec.options or ProfileOptions()

    @property
    def is_touched(self) -> bool:
        """Whether somebody has changed the spec since we last said something about it."""
        return self.metadata.generation != self.status.observed_generation

    @property
    def approved_plan(self) -> str:
        """The hash that an approval names; empty if nobody approved anything."""
        return self.metadata.annotations.get(APPROVED_PLAN, "").removeprefix("sha256:")

    @property
    def rejected_plan(self) -> str:
        """The hash that a rejection names; empty if nobody rejected anything, or it was approved after all."""
        return self.metadata.annotations.get(REJECTED_PLAN, "")

    @property
    def rejected_by(self) -> str:
        """Who says so; empty if they do not tell."""
        return self.metadata.annotations.get(REJECTED_BY, "")

    @property
    def is_rejected(self) -> bool:
        """Whether somebody has decided against this plan. The same one for a later spec is a new question."""
        status, generation = self.status, self.metadata.annotations.get(REJECTED_GENERATION)
        return (self.rejected_plan, generation) == (status.plan_hash, str(status.plan_generation))

    def is_true(self, condition: str) -> bool:
        return any(one.type == condition and one.status == "True" for one in self.status.conditions)


@dataclass(frozen=True, slots=True)
class InvalidWindow:
    """What the spec calls a window is none."""

    why: str


@dataclass(frozen=True, slots=True)
class VersionChange:
    """What this version would make of a plan that another version has carried out."""

    differs: tuple[str, ...] = ()
    """Items in which it wants something else."""
    aligned: tuple[PlanItem, ...] | None = None
    """Its items, if the cluster has all that they want."""


@dataclass(frozen=True, slots=True)
class AdvisorObservation:
    """One config, and all that can bear on it."""

    config: VirtPlatformConfig
    version: str
    """Of the logic of this process."""
    impact: Impact
    """What the profile says of itself."""
    missing: tuple[str, ...] = ()
    """Prerequisites that the cluster lacks, each with its remedy."""
    unsettled: str = ""
    """Why what was seen cannot be relied on yet; empty if it can."""
    inputs: tuple[Input, ...] = ()
    """What the profile depends on, as it is now."""
    hashes: Mapping[str, str] = field(default_factory=dict)
    """The managed fields of each item, as they are now."""
    written: frozenset[str] = frozenset()
    """Items that stand on the cluster just as planned, under our name."""
    health: Mapping[str, Health] = field(default_factory=dict)
    """Of each item that was applied."""
    logic: VersionChange | None = None
    """Only if another version made the plan."""
    window: windows.State | InvalidWindow = ALWAYS
    endpoints: Collection[str] = ()
    """Where notices can be sent, by name."""

    @property
    def changed_targets(self) -> tuple[PlanItem, ...]:
        """Items whose targets are not as they were when the plan was made."""
        return tuple(item for item in self.config.status.items if item.hash and self.hashes.get(item.name) != item.hash)

    @property
    def drifted(self) -> tuple[PlanItem, ...]:
        """Items that were completed and whose targets are no longer as planned."""
        return tuple(item for item in self.config.status.items if has_drifted(item, self.hashes.get(item.name)))


def has_drifted(item: PlanItem, found: str | None) -> bool:
    """Whether it was completed, and its managed fields, which have this hash now, are no longer as planned."""
    return item.state == "Completed" and bool(item.planned_hash) and found != item.planned_hash


def differences(before: tuple[Input, ...], now: tuple[Input, ...]) -> tuple[str, ...]:
    """What has changed, in words."""
    was = {one.name: one.value for one in before}
    is_now = {one.name: one.value for one in now}
    return tuple(
        f"{name} changed from {was.get(name, 'nothing')} to {is_now.get(name, 'nothing')}"
        for name in {**was, **is_now}
        if was.get(name) != is_now.get(name)
    )
