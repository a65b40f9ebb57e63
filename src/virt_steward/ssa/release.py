"""Release all fields that a manager owns of an object; the values stay as they are."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from virt_steward.kube.errors import Conflict, NotFound
from virt_steward.objects.identity import ref_of
from virt_steward.objects.ownership import Owner
from virt_steward.ssa.locks import Stale
from virt_steward.ssa.managers import RELEASE
from virt_steward.ssa.ownership import is_entry_of
from virt_steward.ssa.preview import fetch

if TYPE_CHECKING:
    from collections.abc import Mapping

    from virt_steward.kube.client import Client
    from virt_steward.ssa.locks import Object
    from virt_steward.ssa.managers import FieldManager

PLACEHOLDER_FIELDS: dict[str, Any] = {"f:metadata": {"f:name": {}}}
"""What the entry that replaces the last one owns: no value that anybody would apply."""
_ENTRIES = "/metadata/managedFields"
ATTEMPTS = 3


@dataclass(frozen=True, slots=True)
class Released:
    """The manager owns nothing of this object."""

    object: Object


async def release(client: Client, live: Object, manager: FieldManager) -> Released | Stale:
    """Release all fields that the manager owns of the object; the values stay as they are."""
    operations = release_operations(live, manager)
    if not operations:
        return Released(live)
    try:
        return Released(await client.json_patch(ref_of(live), operations, manager=RELEASE.name))
    except (Conflict, NotFound) as error:
        return Stale(str(error))


async def disclaim(client: Client, live: Object) -> None:
    """Release the fields that a patch of RELEASE has set, so that the next manager has no conflict."""
    current: Object | None = live
    for _ in range(ATTEMPTS):  # the object's own controller may update its status at the same time
        ours = _claimed(current) if current else []
        if current is None or not ours:
            return
        with suppress(Conflict, NotFound):
            await client.json_patch(ref_of(current), [lock_operation(current), *ours], manager=RELEASE.name)
            return
        current = await fetch(client, ref_of(current))


def is_disclaimed(live: Mapping[str, Any]) -> bool:
    """Whether RELEASE owns nothing but its placeholder."""
    return not _claimed(live)


def _claimed(live: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [
        {"op": "replace", "path": f"{_ENTRIES}/{index}", "value": _placeholder(live)}
        for index, entry in enumerate(live["metadata"].get("managedFields") or [])
        if entry.get("manager") == RELEASE.name and entry["fieldsV1"] != PLACEHOLDER_FIELDS
    ]


def release_operations(live: Object, manager: FieldManager) -> list[dict[str, Any]]:
    """The JSON patch that removes the manager's entries of managedFields; empty if there are none."""
    entries = live["metadata"].get("managedFields") or []
    removals = removed_entries(live, [index for index, entry in enumerate(entries) if _is_ours(entry, manager)])
    return [lock_operation(live), *removals] if removals else []


def removed_entries(live: Object, ours: list[int]) -> list[dict[str, Any]]:
    """The operations that remove these entries of managedFields, and leave a placeholder instead of all of them."""
    entries = live["metadata"].get("managedFields") or []
    if not ours:
        return []
    removals: list[dict[str, Any]] = [{"op": "remove", "path": f"{_ENTRIES}/{index}"} for index in reversed(ours)]
    if len(ours) == len(entries):
        removals[-1] = {"op": "replace", "path": f"{_ENTRIES}/0", "value": _placeholder(live)}
    return removals


def lock_operation(live: Object) -> dict[str, Any]:
    """The precondition. A changed resourceVersion is a 409; a failed `test` operation would be a 422."""
    return {"op": "replace", "path": "/metadata/resourceVersion", "value": live["metadata"]["resourceVersion"]}


def _is_ours(entry: Object, manager: FieldManager) -> bool:
    owner = Owner(entry.get("manager", ""), entry.get("operation", ""), entry.get("subresource", ""))
    return is_entry_of(owner, manager)


def _placeholder(live: Mapping[str, Any]) -> Object:
    """An entry that replaces the last one.

    Without any entry, a custom resource keeps its old ones, and any other object gets an owner of all fields,
    `before-first-apply`, with which the next apply conflicts.
    """
    return {
        "manager": RELEASE.name,
        "operation": "Update",
        "apiVersion": live["apiVersion"],
        "fieldsType": "FieldsV1",
        "fieldsV1": PLACEHOLDER_FIELDS,
    }
