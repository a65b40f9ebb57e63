"""Managed fields: the paths that a plan sets and watches, as users read them (`spec.evictionLimits.total`)."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from virt_steward.apis.virtplatformconfig import GovernedTarget
from virt_steward.objects.paths import NothingThere, Pointer, get, with_value

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from virt_steward.apis.virtplatformconfig import PlanItem

_PLAIN = re.compile(r"[^.\[\]']+")
_TOKEN = re.compile(r"\['([^']*)'\]|\.?([^.\[\]']+)")
_IDENTITY = frozenset({("apiVersion",), ("kind",), ("metadata", "name"), ("metadata", "namespace")})


def field_of(pointer: Pointer) -> str:
    """Write a path; a name with dots in it is in brackets."""
    parts = (f".{token}" if _PLAIN.fullmatch(token) else f"['{token}']" for token in pointer.tokens)
    return "".join(parts).removeprefix(".")


def pointer_to(field: str) -> Pointer:
    """Read what `field_of` writes."""
    return Pointer(tuple(quoted or plain for quoted, plain in _TOKEN.findall(field)))


def fields_set_by(desired: Mapping[str, Any], whole: Iterable[str] = ()) -> tuple[str, ...]:
    """All that an intent sets, down to single values. Lists, and the fields in `whole`, are not divided."""
    undivided = frozenset(map(pointer_to, whole))
    return tuple(field_of(pointer) for pointer in _ends(desired, Pointer(), undivided))


def values(obj: Mapping[str, Any], fields: Iterable[str]) -> dict[str, Any]:
    """The values of these fields; one that is not set is left out."""
    found: dict[str, Any] = {}
    for field in fields:
        try:
            found[field] = get(obj, pointer_to(field))
        except NothingThere:
            continue
    return found


def only(obj: Mapping[str, Any], pointers: Iterable[Pointer]) -> dict[str, Any]:
    """The object's identity, and these of its values."""
    metadata = {name: obj["metadata"][name] for name in ("name", "namespace") if name in obj["metadata"]}
    kept: dict[str, Any] = {"apiVersion": obj["apiVersion"], "kind": obj["kind"], "metadata": metadata}
    for pointer in pointers:
        try:
            kept = with_value(kept, pointer, get(obj, pointer))
        except NothingThere:
            continue
    return kept


def governing(before: Iterable[GovernedTarget], item: PlanItem) -> tuple[GovernedTarget, ...]:
    """The governed targets after an item was applied: fields add up, the hash is that of the last apply."""
    others = tuple(one for one in before if one.target_ref != item.target_ref)
    earlier = (field for one in before if one.target_ref == item.target_ref for field in one.managed_fields)
    fields = tuple(dict.fromkeys((*item.managed_fields, *earlier)))
    return (*others, GovernedTarget(item.target_ref, fields, item.planned_hash))


def without(before: Iterable[GovernedTarget], item: PlanItem) -> tuple[GovernedTarget, ...]:
    """The governed targets after an item was rolled back."""
    return tuple(one for one in before if one.target_ref != item.target_ref)


def _ends(value: Any, at: Pointer, undivided: frozenset[Pointer]) -> Iterator[Pointer]:
    if at.tokens in _IDENTITY:
        return
    if isinstance(value, dict) and value and at not in undivided:
        for name, held in value.items():
            yield from _ends(held, at / name, undivided)
        return
    yield at
