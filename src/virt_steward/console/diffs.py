"""Diffs on the page of a plan: lines that a page can colour, and the drift of a live object from what was applied."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import msgspec

from virt_steward.controllers.advisor.observation import has_drifted
from virt_steward.objects.diff import unified
from virt_steward.objects.field_changes import value_text
from virt_steward.plans.draft import fitted
from virt_steward.plans.fields import only, pointer_to
from virt_steward.plans.fingerprint import fields_hash
from virt_steward.plans.intent import ref_to

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from virt_steward.apis.virtplatformconfig import PlanItem
    from virt_steward.console.page_context import PageContext
    from virt_steward.objects.field_changes import FieldChange

LineKind = Literal["added", "removed", "same", "place"]
CHANGED = "Lines with - are live now, lines with + were applied."
DELETED = "The object was deleted. This is what was applied:"
UNKNOWN = "Drift unknown: the console cannot read the object now."


class DiffLine(NamedTuple):
    kind: LineKind
    text: str


@dataclass(frozen=True, slots=True)
class ItemDrift:
    """How the object of one item differs from what was applied."""

    message: str
    lines: tuple[DiffLine, ...] = ()


def diff_lines(diff: str) -> tuple[DiffLine, ...]:
    """The lines of a unified diff, without the two that name files: the page says which object it is."""
    return tuple(_lines(diff))


def field_lines(fields: Iterable[FieldChange]) -> tuple[DiffLine, ...]:
    """Two lines for a value that is replaced, one for a value that is added or removed."""
    return tuple(line for field in fields for line in _field_lines(field))


def _field_lines(field: FieldChange) -> Iterator[DiffLine]:
    if field.live is not msgspec.UNSET:
        yield DiffLine("removed", f"-{field.path}: {value_text(field.live)}")
    if field.planned is not msgspec.UNSET:
        yield DiffLine("added", f"+{field.path}: {value_text(field.planned)}")


async def drift_of(context: PageContext, item: PlanItem) -> ItemDrift | None:
    """None: the object is as it was applied."""
    ref = ref_to(item.target_ref)
    target = context.cache.profiles.target(ref)
    if target is None:
        return ItemDrift(UNKNOWN)
    if not has_drifted(item, fields_hash(target.object, item.managed_fields)):
        return None
    if not await context.may("list", target.kind, ref.key.namespace):
        return ItemDrift(f"The drift is hidden: you may not list {target.kind.plural}.{target.kind.group}.")
    return ItemDrift(CHANGED if target.object else DELETED, diff_lines(fitted(_drift(item, target.object))))


def _lines(diff: str) -> Iterator[DiffLine]:
    in_head = True
    for text in diff.splitlines():
        if in_head and text.startswith(("--- ", "+++ ")):
            continue
        in_head = False
        if text.startswith("@@ -0,0"):  # all of it is new
            continue
        if text.startswith("@@"):
            yield DiffLine("place", text)
        elif text.startswith("+"):
            yield DiffLine("added", text)
        elif text.startswith("-"):
            yield DiffLine("removed", text)
        else:
            yield DiffLine("same", text)


def _drift(item: PlanItem, live: Mapping[str, Any] | None) -> str:
    """Compare only the fields that the item manages; secrets are masked."""
    fields = [pointer_to(field) for field in item.managed_fields]
    desired = only(item.desired_state, fields)
    if live is None:
        return unified(None, desired)
    return unified(only({**live, "apiVersion": desired["apiVersion"], "kind": desired["kind"]}, fields), desired)
