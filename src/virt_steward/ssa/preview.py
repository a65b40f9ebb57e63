"""Previews: what an apply would change, by a dry run on the server, with its defaults, admission and conflicts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from virt_steward.kube.errors import Conflict, FieldConflict, NotFound, NotServed
from virt_steward.objects.normalize import content_digest
from virt_steward.objects.ownership import owned_by
from virt_steward.ssa.locks import Lock, ObservedAs, Stale, lock_on, locked
from virt_steward.ssa.managers import AT_ONCE
from virt_steward.ssa.refusals import RefusedIntent, refuse_unsafe

if TYPE_CHECKING:
    from virt_steward.kube.client import Client, Reader
    from virt_steward.kube.errors import Claim
    from virt_steward.objects.identity import Ref
    from virt_steward.ssa.locks import Object
    from virt_steward.ssa.managers import FieldManager


@dataclass(frozen=True, slots=True)
class Unchanged:
    """The live object is as desired, and the manager owns its fields: there is nothing to apply."""

    live: Object


@dataclass(frozen=True, slots=True)
class Reowns:
    """No value changes, only ownership. There is nothing to show or approve, but it must be applied once."""

    live: Object
    planned: Object


@dataclass(frozen=True, slots=True)
class Creates:
    planned: Object


@dataclass(frozen=True, slots=True)
class Changes:
    live: Object
    planned: Object


@dataclass(frozen=True, slots=True)
class Conflicts:
    """Others own fields that would change. `planned` is the result of taking all of these claims, and no others."""

    live: Object
    planned: Object
    claims: frozenset[Claim]


Preview = Unchanged | Reowns | Creates | Changes | Conflicts | Stale


async def fetch(reader: Reader, ref: Ref) -> Object | None:
    """The live object; None if it does not exist. Raises NotServed if the kind is not served."""
    try:
        return await reader.get(ref)
    except NotServed:
        raise
    except NotFound:
        return None


async def preview(client: Client, intent: Object, manager: FieldManager, live: Object | None) -> Preview:
    """Dry run once, or twice if there are conflicts. The result is Stale if the object is not this live one any more.

    For intents and annotations; a status has no preview.
    """
    if manager.subresource:
        raise RefusedIntent(f"{manager.name} writes a {manager.subresource}, which has no preview")
    lock = lock_on(live)
    refuse_unsafe(intent, manager, lock)
    try:
        planned = await _dry_run(client, intent, manager, lock, force=manager.force in AT_ONCE)
    except FieldConflict as conflict:
        return await _contested(client, intent, manager, lock, conflict)
    except Conflict as error:
        return Stale(str(error))
    return _compared(live, planned, manager)


async def _contested(
    client: Client, intent: Object, manager: FieldManager, lock: Lock, conflict: FieldConflict
) -> Conflicts | Stale:
    if not isinstance(lock, ObservedAs):  # an object that does not exist has no owners
        return Stale(str(conflict))
    try:
        planned = await _dry_run(client, intent, manager, lock, force=True)
    except Conflict as error:  # the server checks conflicts before the resourceVersion
        return Stale(str(error))
    return Conflicts(lock.live, planned, frozenset(conflict.claims))


async def _dry_run(client: Client, intent: Object, manager: FieldManager, lock: Lock, *, force: bool) -> Object:
    answer = await client.apply(locked(intent, lock), manager=manager.name, force=force, dry_run=True)
    return answer.object


def _compared(live: Object | None, planned: Object, manager: FieldManager) -> Preview:
    if live is None:
        return Creates(planned)
    if content_digest(live) != content_digest(planned):
        return Changes(live, planned)
    if owned_by(live, manager.name) != owned_by(planned, manager.name):
        return Reowns(live, planned)
    return Unchanged(live)
