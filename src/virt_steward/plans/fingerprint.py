"""Hashes of targets and plans: equal hashes, equal plans."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from virt_steward.objects.canonical import sha256
from virt_steward.plans.fields import values

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from virt_steward.apis.virtplatformconfig import PlanItem

_SHOWN = 16
"""Digits of a plan's hash in the name of its record."""
_ABSENT = {"__state": "NOT_FOUND"}


def fields_hash(obj: Mapping[str, Any] | None, fields: Iterable[str]) -> str:
    """Hash the values of these fields, or that the object does not exist."""
    return sha256(_ABSENT if obj is None else values(obj, fields))


def snapshot_hash(items: Iterable[PlanItem]) -> str:
    """Hash what all targets looked like when the plan was made."""
    return sha256({item.name: item.hash for item in items})


def plan_hash(profile: str, items: Iterable[PlanItem], *, back: bool = False, executions: int = 0) -> str:
    """Hash what is done to which objects: the bare digits, since an approval quotes them.

    `executions` is how many plans of the profile were started before. The same changes drafted again after an execution
    are another plan, which the approval of the first one does not start.
    """
    content = [
        {
            "name": item.name,
            "target": msgspec.to_builtins(item.target_ref),
            "desired": item.desired_state,
            "fields": item.managed_fields,
            "takes": msgspec.to_builtins(item.takes),
            "hash": item.hash,
        }
        for item in items
    ]
    plan = {"profile": profile, "back": back, "items": content}
    return sha256(plan | ({"executions": executions} if executions else {})).removeprefix("sha256:")


def record_name(profile: str, plan_hash: str) -> str:
    """The name of the record of what was there before a plan was executed (see `preimage.py`)."""
    return f"{profile}-{plan_hash[:_SHOWN]}"
