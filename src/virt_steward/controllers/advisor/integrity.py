"""Whether a status is what the advisor wrote: compared with its own record, which nobody else can write. Pure.

Anyone who may write `virtplatformconfigs/status` can put anything there. So the advisor decides by its own record, and
the status only shows it. `authenticated` joins the two: the config with the status to decide by, and how that
relates to the one that was read.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

import msgspec

from virt_steward.apis.virtplatformconfig import VirtPlatformConfigStatus
from virt_steward.controllers.advisor.adoption import Adopted, adopted_status, is_of_another_advisor
from virt_steward.controllers.advisor.phases import IN_REVIEW, SETTLED, STARTING
from virt_steward.objects.canonical import same, sha256

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from virt_steward.apis.virtplatformconfig import PlanItem
    from virt_steward.controllers.advisor.observation import VirtPlatformConfig

FIELDS_NAMED = 5
"""Altered fields that a message names."""
_SHOWN_ONLY = ("conditions", "observedGeneration")
_SHOWN_ONLY_OF_ITEMS = ("message", "drift", "lastTransitionTime")
"""Parts of a status on which no execution depends. They are not recorded with each change."""


class PlanRecord(msgspec.Struct, frozen=True, rename="camel"):
    """The status that the advisor last decided on."""

    uid: str
    """The config's: a config that was deleted and created again starts with an empty status."""
    before: str
    """The digest of the status before it: a process may end after it saved the record, before it writes the status."""
    status: VirtPlatformConfigStatus
    saved_at: datetime | None = None
    """None: a version saved it that did not record that."""


@dataclass(frozen=True, slots=True)
class Intact:
    """The status is as recorded."""


@dataclass(frozen=True, slots=True)
class Unrecorded:
    """There is no record of the status: it is new, or version 0.1 wrote it. Nothing is executed by it."""


@dataclass(frozen=True, slots=True)
class Behind:
    """The status is the one before the record: our last write of it failed."""


@dataclass(frozen=True, slots=True)
class Altered:
    """Somebody else has changed the status."""

    fields: tuple[str, ...]
    is_started: bool
    """Whether it says that its plan is being executed."""

    def __str__(self) -> str:
        left_out = len(self.fields) - FIELDS_NAMED
        return ", ".join(self.fields[:FIELDS_NAMED]) + (f" and {left_out} more" if left_out > 0 else "")


Integrity = Intact | Unrecorded | Adopted | Behind | Altered
INTACT = Intact()


@dataclass(frozen=True, slots=True)
class AuthenticConfig:
    """A config with the status to decide by, and how the status that was read compares with it."""

    config: VirtPlatformConfig
    integrity: Integrity


def authenticated(
    read: VirtPlatformConfig, record: PlanRecord | None, other_ran_at: datetime | None = None
) -> AuthenticConfig:
    """The config with the recorded status. What is only shown is as it was read, unless somebody changed the rest.

    A record from before another advisor ran, as its Lease tells, is as good as none for a status which that may have
    written. Who may write only the status can feign such a status and not such a Lease; who can feign both gains that
    nothing is executed before somebody asks for it again.
    """
    if record is None or record.uid != read.metadata.uid or _is_outlived(record, read.status, other_ran_at):
        known = record.status.executions if record else 0
        if is_of_another_advisor(read.status):
            history = record.status.history if record and record.uid == read.metadata.uid else ()
            return AuthenticConfig(_with(read, adopted_status(read, known, history)), Adopted(read.status))
        return AuthenticConfig(_with(read, _unrecorded(read, known)), Unrecorded())
    live, recorded = essence(read.status), essence(record.status)
    if same(live, recorded):
        return AuthenticConfig(read, INTACT)
    config = _with(read, record.status)
    if sha256(live) == record.before:
        return AuthenticConfig(config, Behind())
    return AuthenticConfig(config, Altered(tuple(_altered(recorded, live)), read.status.phase == "InProgress"))


def unauthenticated(read: VirtPlatformConfig) -> AuthenticConfig:
    """The config for somebody who cannot read our records: taken as it is, unless another advisor has left it."""
    if read.status.phase in STARTING or not is_of_another_advisor(read.status):
        return AuthenticConfig(read, INTACT)
    return authenticated(read, None)


def next_record(
    read: VirtPlatformConfig, record: PlanRecord | None, status: VirtPlatformConfigStatus, now: datetime
) -> PlanRecord | None:
    """The record of the status that follows on the one that was read; None if both are as recorded."""
    uid = read.metadata.uid
    if record and record.uid == uid:
        recorded = essence(record.status)
        if same(recorded, essence(status)) and same(recorded, essence(read.status)):
            return None
    return PlanRecord(uid, sha256(essence(read.status)), status, now)


def essence(status: VirtPlatformConfigStatus) -> dict[str, Any]:
    """The status without what is only shown."""
    content: dict[str, Any] = msgspec.to_builtins(status)
    items = [_without(item, _SHOWN_ONLY_OF_ITEMS) for item in content.get("items", ())]
    return _without(content, _SHOWN_ONLY) | ({"items": items} if items else {})


def may_stand(config: VirtPlatformConfig, drafted: tuple[PlanItem, ...]) -> bool:
    """Whether an unrecorded status is kept, so that an upgrade from version 0.1 loses neither phase nor progress.

    An execution goes on only under the conditions below. After one, it is enough that this version plans the same:
    whatever is written later, to correct drift for example, is then what this version would write.
    """
    if config.status.phase == "InProgress":
        return is_same_execution(config, drafted)
    return config.status.phase in SETTLED and _wants_the_same(config.status.items, drafted)


def is_same_execution(config: VirtPlatformConfig, drafted: tuple[PlanItem, ...]) -> bool:
    """Whether an unrecorded execution may go on: it has what this version plans, and somebody has asked for it.

    Version 0.1 kept no record, so after an upgrade in the middle of an execution the plan is drafted again. An item
    that was written must want the same. One that was not must also find its target as it was, and take the same fields
    from others.
    """
    status, approved = config.status, config.approved_plan
    is_wanted = approved == status.plan_hash if approved or config.spec.action == "Rollback" else True
    if count := config.approval_count(status.plan_hash):
        is_wanted = count.is_complete
    return is_wanted and config.spec.action == status.plan_action and _wants_the_same(status.items, drafted)


def _wants_the_same(items: tuple[PlanItem, ...], drafted: tuple[PlanItem, ...]) -> bool:
    names = [item.name for item in items]
    return names == [item.name for item in drafted] and all(map(_is_same, items, drafted))


def _is_same(item: PlanItem, drafted: PlanItem) -> bool:
    content = ("target_ref", "desired_state", "managed_fields")
    parts = (*content, "takes", "hash", "planned_hash") if item.state == "Pending" else content
    return all(same(getattr(item, part), getattr(drafted, part)) for part in parts)


def _is_outlived(record: PlanRecord, status: VirtPlatformConfigStatus, other_ran_at: datetime | None) -> bool:
    """Whether another advisor has run since the record was saved, and the status may be of it."""
    if other_ran_at is None or record.saved_at is None or other_ran_at <= record.saved_at:
        return False
    return is_of_another_advisor(status) and not same(essence(status), essence(record.status))


def _unrecorded(config: VirtPlatformConfig, known: int) -> VirtPlatformConfigStatus:
    """The count of executions never goes back, or an approval that was used would count again.

    A plan that version 0.1 only drafted keeps its hash, and with it a rejection that names it.
    """
    status = config.status
    is_started = bool(status.history or status.pre_image or status.approval or config.approved_plan)
    by_earlier_version = 1 if status.plan_hash and (is_started or status.phase not in IN_REVIEW) else 0
    return msgspec.structs.replace(status, executions=max(status.executions, known, by_earlier_version))


def _with(config: VirtPlatformConfig, status: VirtPlatformConfigStatus) -> VirtPlatformConfig:
    return msgspec.structs.replace(config, status=status)


def _without(content: Mapping[str, Any], names: tuple[str, ...]) -> dict[str, Any]:
    return {name: value for name, value in content.items() if name not in names}


def _altered(recorded: Mapping[str, Any], live: Mapping[str, Any]) -> Iterator[str]:
    """Which fields differ; of items, which fields of which."""
    for name in _differing(recorded, live):
        if name != "items":
            yield name
            continue
        ours, theirs = ({item["name"]: item for item in one.get("items", ())} for one in (recorded, live))
        changed = _differing(ours, theirs)
        for item in changed:
            yield from (f"items[{item}].{part}" for part in _differing(ours.get(item, {}), theirs.get(item, {})))
        if not changed:
            yield "the order of items"


def _differing(one: Mapping[str, Any], other: Mapping[str, Any]) -> list[str]:
    return [name for name in {**one, **other} if not same(one.get(name), other.get(name))]
