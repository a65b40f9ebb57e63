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
from virt_steward.catalog.machineconfigs import MACHINE_CONFIG
from virt_steward.objects.meta import Meta
from virt_steward.objects.windows import Open
from virt_steward.plans.health import NotYet
from virt_steward.plans.intent import is_of

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from virt_steward.objects import windows
    from virt_steward.plans.health import Health

APPROVED_PLAN = "advisor.kubevirt.io/approved-plan"
APPROVED_BY = "advisor.kubevirt.io/approved-by"
APPROVAL_COMMENT = "advisor.kubevirt.io/approval-comment"
REJECTED_PLAN = "advisor.kubevirt.io/rejected-plan"
REJECTED_BY = "advisor.kubevirt.io/rejected-by"
REJECTION_COMMENT = "advisor.kubevirt.io/rejection-comment"
REJECTED_GENERATION = "advisor.kubevirt.io/rejected-generation"

ALWAYS = Open(until=None)


class FieldOwner(msgspec.Struct, frozen=True):
    """An entry of managedFields, without the fields."""

    manager: str = ""


class ConfigMeta(Meta, frozen=True, rename="camel"):
    generation: int = 0
    annotations: dict[str, str] = msgspec.field(default_factory=dict)
    deletion_timestamp: str = ""
    managed_fields: tuple[FieldOwner, ...] = ()


class Config(msgspec.Struct, frozen=True):
    """A VirtPlatformConfig."""

    metadata: ConfigMeta
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
    def is_rejected(self) -> bool:
        """Whether somebody has decided against this plan. Whoever changes the spec since then asks anew."""
        notes, status = self.metadata.annotations, self.status
        rejected = notes.get(REJECTED_PLAN), notes.get(REJECTED_GENERATION)
        return rejected == (status.plan_hash, str(status.plan_generation))

    def is_true(self, condition: str) -> bool:
        return any(one.type == condition and one.status == "True" for one in self.status.conditions)


@dataclass(frozen=True, slots=True)
class BadWindow:
    """What the spec calls a window is none."""

    why: str


@dataclass(frozen=True, slots=True)
class NewLogic:
    """What this version would make of a plan that another version has carried out."""

    differs: tuple[str, ...] = ()
    """Items in which it wants something else."""
    aligned: tuple[PlanItem, ...] | None = None
    """Its items, if the cluster has all that they want."""
    rolling: tuple[str, ...] = ()
    """What pools still have to do for these."""


@dataclass(frozen=True, slots=True)
class Seen:
    """One config, and all that can bear on it."""

    config: Config
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
    logic: NewLogic | None = None
    """Only if another version made the plan."""
    window: windows.State | BadWindow = ALWAYS
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

    @property
    def rolling(self) -> tuple[str, ...]:
        """What pools still have to do until all nodes run with what was completed."""
        return rolling(self.config.status.items, self.health)


def has_drifted(item: PlanItem, found: str | None) -> bool:
    """Whether it was completed, and its managed fields, which have this hash now, are no longer as planned."""
    return item.state == "Completed" and bool(item.planned_hash) and found != item.planned_hash


def rolling(items: Iterable[PlanItem], health: Mapping[str, Health]) -> tuple[str, ...]:
    """What keeps nodes from running with these items, where nothing is left to be written."""
    written = (item for item in items if item.state == "Completed" and item.desired_state)
    found = (health.get(item.name) for item in written if is_of(item.target_ref, MACHINE_CONFIG))
    return tuple(one.message for one in found if isinstance(one, NotYet))


def differences(before: tuple[Input, ...], now: tuple[Input, ...]) -> tuple[str, ...]:
    """What has changed, in words."""
    was = {one.name: one.value for one in before}
    is_now = {one.name: one.value for one in now}
    return tuple(
        f"{name} changed from {was.get(name, 'nothing')} to {is_now.get(name, 'nothing')}"
        for name in {**was, **is_now}
        if was.get(name) != is_now.get(name)
    )
