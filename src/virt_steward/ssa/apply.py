"""Apply an intent under a lock, and take from other field managers exactly the fields that were listed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from virt_steward.kube.client import ApplyResult
from virt_steward.kube.errors import Claim, Conflict, FieldConflict
from virt_steward.kube.faults import reach
from virt_steward.ssa.locks import Absent, Lock, Stale, Unlocked, locked
from virt_steward.ssa.managers import AT_ONCE
from virt_steward.ssa.refusals import refuse_unsafe

if TYPE_CHECKING:
    from virt_steward.kube.client import Client
    from virt_steward.ssa.locks import Object
    from virt_steward.ssa.managers import FieldManager


@dataclass(frozen=True, slots=True)
class Contested:
    """The conflicts are not those that were listed, so nothing was written."""

    claims: frozenset[Claim]


Outcome = ApplyResult | Stale | Contested


async def apply(
    client: Client, intent: Object, manager: FieldManager, lock: Lock, taking: frozenset[Claim] = frozenset()
) -> Outcome:
    """Apply the manager's complete intent. Raises RefusedIntent if fields of other managers would be lost.

    `taking` are the claims to take from others. The apply is forced only if the server reports exactly these conflicts,
    and only on the resourceVersion of the lock.
    """
    refuse_unsafe(intent, manager, lock, taking)
    by_force = manager.force in AT_ONCE or isinstance(lock, Unlocked)
    try:
        return await _send(client, intent, manager, lock, force=by_force)
    except FieldConflict as conflict:
        if isinstance(
            lock, Absent
        ):  # the object was created meanwhile; the server checks conflicts before the resourceVersion
            return Stale(str(conflict))
        claims = frozenset(conflict.claims)
        if claims != taking:
            return Contested(claims)
    except Conflict as error:
        return Stale(str(error))
    try:
        return await _send(client, intent, manager, lock, force=True)
    except Conflict as error:
        return Stale(str(error))


async def _send(client: Client, intent: Object, manager: FieldManager, lock: Lock, *, force: bool) -> ApplyResult:
    reach("apply.send")
    applied = await client.apply(
        locked(intent, lock), manager=manager.name, force=force, subresource=manager.subresource
    )
    reach("apply.sent")
    return applied
