"""What the advisor observes of one VirtPlatformConfig and its environment, as a frozen record."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING

import msgspec

from virt_steward.apis.profiles import ProfileOptions
from virt_steward.apis.virtplatformconfig import (
    Impact,
    Input,
    PlanItem,
    VirtPlatformConfigSpec,
    VirtPlatformConfigStatus,
)
from virt_steward.controllers.advisor.annotation_keys import (
    APPROVALS,
    APPROVED_PLAN,
    DECISION,
    OVERRIDE_FREEZE,
    REJECTED_BY,
    REJECTED_GENERATION,
    REJECTED_PLAN,
    REQUESTED_BY,
)
from virt_steward.controllers.advisor.integrity import INTACT
from virt_steward.holds.freezes import NOT_FROZEN
from virt_steward.objects.approvals import count_approvals
from virt_steward.objects.decision_record import read_decision
from virt_steward.objects.meta import Meta
from virt_steward.objects.windows import Open
from virt_steward.plans.drift import drift_lines

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from virt_steward.apis.drift import DriftEntry
    from virt_steward.controllers.advisor.integrity import Integrity
    from virt_steward.holds.freezes import FreezeState
    from virt_steward.holds.gates import GateState
    from virt_steward.objects import windows
    from virt_steward.objects.approvals import ApprovalCount
    from virt_steward.objects.decision_record import DecisionRecord
    from virt_steward.platform.health import Health

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
        """Whether the spec has changed since the status was last written."""
        return self.metadata.generation != self.status.observed_generation

    @property
    def approved_plan(self) -> str:
        """The hash that an approval names; empty without an approval."""
        return self.metadata.annotations.get(APPROVED_PLAN, "").removeprefix("sha256:")

    def approval_count(self, plan_hash: str) -> ApprovalCount | None:
        """The people who approved this plan; None unless spec.approvals requires some."""
        rules, notes = self.spec.approvals, self.metadata.annotations
        if rules is None:
            return None
        requester = notes.get(REQUESTED_BY, "") if rules.exclude_requester else None
        return count_approvals(notes.get(APPROVALS, ""), plan_hash, rules.required, requester)

    @property
    def overrides_freeze(self) -> bool:
        """Whether somebody has let this very plan go on in spite of a freeze."""
        return bool(self.status.plan_hash) and self.metadata.annotations.get(OVERRIDE_FREEZE) == self.status.plan_hash

    @property
    def rejected_plan(self) -> str:
        """The hash that a rejection names; empty without a rejection, and once the plan is approved after all."""
        return self.metadata.annotations.get(REJECTED_PLAN, "")

    @property
    def rejected_by(self) -> str:
        """The user who rejected it; empty if that was not recorded."""
        return self.metadata.annotations.get(REJECTED_BY, "")

    @property
    def is_rejected(self) -> bool:
        """Whether this plan was rejected. An equal plan for a later generation of the spec has to be decided again."""
        status, generation = self.status, self.metadata.annotations.get(REJECTED_GENERATION)
        return (self.rejected_plan, generation) == (status.plan_hash, str(status.plan_generation))

    @property
    def last_decision(self) -> DecisionRecord | None:
        """What a person decided last about this profile; None if nobody has signed a decision."""
        return read_decision(self.metadata.annotations, DECISION)

    def is_true(self, condition: str) -> bool:
        return any(one.type == condition and one.status == "True" for one in self.status.conditions)


@dataclass(frozen=True, slots=True)
class InvalidWindow:
    """spec.window cannot be parsed."""

    why: str


@dataclass(frozen=True, slots=True)
class VersionChange:
    """How this version's plan differs from one that another version has executed."""

    differs: tuple[str, ...] = ()
    """Items that it plans differently."""
    aligned: tuple[PlanItem, ...] | None = None
    """Its items, if the cluster already is as they want it."""


@dataclass(frozen=True, slots=True)
class AdvisorObservation:
    """One config, and everything that its next step depends on."""

    config: VirtPlatformConfig
    version: str
    """The version of this process, whose logic plans are made by."""
    impact: Impact
    """The impact that the profile declares."""
    missing: tuple[str, ...] = ()
    """Prerequisites that are not met, each as a sentence with its remedy."""
    unsettled: str = ""
    """Which inputs have not been read yet; empty if all have."""
    inputs: tuple[Input, ...] = ()
    """What the profile depends on, as it is now."""
    hashes: Mapping[str, str] = field(default_factory=dict)
    """By item: the hash of its managed fields as they are now."""
    drift: Mapping[str, tuple[DriftEntry, ...]] = field(default_factory=dict)
    """By item that has drifted: which fields, their live and planned values, who changed them and when."""
    written: frozenset[str] = frozenset()
    """Items whose targets are as planned, with our annotations: they need not be written again."""
    health: Mapping[str, Health] = field(default_factory=dict)
    """By item: whether its target is ready."""
    logic: VersionChange | None = None
    """None unless another version made the plan that was executed."""
    window: windows.State | InvalidWindow = ALWAYS
    freeze: FreezeState = NOT_FROZEN
    gates_wanted: tuple[str, ...] = ()
    """The gates that must be open before an item starts."""
    gates: Mapping[str, GateState] = field(default_factory=dict)
    """What they answered, by name; empty until somebody has asked."""
    gates_poll: timedelta = timedelta(seconds=30)
    """When closed gates are evaluated again."""
    endpoints: Collection[str] = ()
    """The names of the endpoints to which notifications can be sent."""
    changed_since_adoption: tuple[str, ...] = ()
    """What was applied by another version, whose plan it keeps as completed, and has changed since; in words."""
    integrity: Integrity = INTACT
    """How the status that was read compares with the one of the config here, which is the recorded one."""

    @property
    def current_item(self) -> PlanItem | None:
        """The first item that is not done."""
        return next((item for item in self.config.status.items if item.state in ("Pending", "InProgress")), None)

    @property
    def changed_targets(self) -> tuple[PlanItem, ...]:
        """Items whose targets are not as they were when the plan was made."""
        return tuple(item for item in self.config.status.items if item.hash and self.hashes.get(item.name) != item.hash)

    @property
    def changed_inputs(self) -> tuple[str, ...]:
        """Inputs that have changed since the last execution, in words: nobody has agreed to what follows from them.

        The options decide which inputs there are, and options are the admin's own. So only an input that is in both
        counts.
        """
        before, now = self.config.status.applied_inputs, self.inputs
        shared = {one.name for one in before} & {one.name for one in now}
        return differences(*(tuple(one for one in inputs if one.name in shared) for inputs in (before, now)))

    @property
    def drifted(self) -> tuple[PlanItem, ...]:
        """Items that were completed and whose targets are no longer as planned."""
        return tuple(item for item in self.config.status.items if has_drifted(item, self.hashes.get(item.name)))

    @property
    def drift_details(self) -> tuple[str, ...]:
        """The drift of all items, in words."""
        return tuple(line for item in self.drifted for line in drift_lines(item, self.drift.get(item.name, ())))


def has_drifted(item: PlanItem, found: str | None) -> bool:
    """Whether the item was completed and its managed fields, whose hash is now `found`, are no longer as planned."""
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
