"""Hashes of targets and plans: equal hashes, equal plans."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

import msgspec

from virt_steward.objects.canonical import canonical
from virt_steward.plans.fields import values

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from virt_steward.apis.virtplatformconfig import PlanItem

_SHOWN = 16
"""Digits of a plan's hash in the name of its record."""
_ABSENT = {"__state": "NOT_FOUND"}


def fields_hash(obj: Mapping[str, Any] | None, fields: Iterable[str]) -> str:
    """Hash the values of these fields, or that the object does not exist."""
    return _sha256(_ABSENT if obj is None else values(obj, fields))


def snapshot_hash(items: Iterable[PlanItem]) -> str:
    """Hash what all targets looked like when the plan was made."""
    return _sha256({item.name: item.hash for item in items})


def plan_hash(profile: str, items: Iterable[PlanItem], *, back: bool = False) -> str:
    """Hash what is done to which objects: the bare digits, since an approval quotes them."""
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
    return _sha256({"profile": profile, "back": back, "items": content}).removeprefix("sha256:")


def record_name(profile: str, plan_hash: str) -> str:
    """The name of the record of what was there before a plan was executed (see `preimage.py`)."""
    return f"{profile}-{plan_hash[:_SHOWN]}"


def _sha256(value: Any) -> str:
    return f"sha256:{hashlib.sha256(canonical(value)).hexdigest()}"
