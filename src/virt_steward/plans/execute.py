"""Writes one item of an approved plan: only if its target is as it was when the plan was made."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from virt_steward.kube.client import ApplyResult
from virt_steward.kube.errors import Claim, NotServed, Refused
from virt_steward.plans.annotations import is_annotated, with_annotations
from virt_steward.plans.draft import sent
from virt_steward.plans.fingerprint import fields_hash
from virt_steward.plans.intent import ref_to
from virt_steward.ssa.apply import Contested, apply
from virt_steward.ssa.locks import Stale, Unlocked, lock_on
from virt_steward.ssa.preview import fetch
from virt_steward.ssa.refusals import RefusedIntent

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from virt_steward.apis.virtplatformconfig import PlanItem
    from virt_steward.kube.client import Client
    from virt_steward.plans.intent import Object
    from virt_steward.plans.owner import PlanOwner

ATTEMPTS = 3
"""Tries to write a target whose resourceVersion changes though our fields do not, as when its status is updated."""


@dataclass(frozen=True, slots=True)
class Written:
    """The item was written."""

    object: Object
    overwrote: bool = False
    """Whether bypass mode overwrote a change that was made since the plan."""


@dataclass(frozen=True, slots=True)
class ItemOutdated:
    """The target is not as it was when the plan was made; nothing was written."""

    why: str


@dataclass(frozen=True, slots=True)
class WriteRefused:
    """The API server refuses it; nothing was written."""

    why: str


Result = Written | ItemOutdated | WriteRefused


def is_applied(item: PlanItem, live: Mapping[str, Any] | None, profile: str) -> bool:
    """Whether the item was already written by us: an earlier process may have ended before it could report that."""
    return (
        live is not None
        and is_annotated(live, profile, item.planned_hash)
        and fields_hash(live, item.managed_fields) == item.planned_hash
    )


async def write(client: Client, owner: PlanOwner, item: PlanItem, *, bypass: bool) -> Result:
    """Apply the item once, under an optimistic lock on its target; with `bypass` neither locks nor checks."""
    owner.reach("item.before")
    try:
        result = await _forced(client, owner, item) if bypass else await _locked(client, owner, item)
    except NotServed:
        raise
    except (Refused, RefusedIntent) as refusal:
        return WriteRefused(str(refusal))
    owner.reach("item.after")
    return result


async def _forced(client: Client, owner: PlanOwner, item: PlanItem) -> Result:
    live = await fetch(client, ref_to(item.target_ref))
    wanted = with_annotations(item.desired_state, owner.name, item.planned_hash)
    manager = owner.manager
    outcome = await apply(client, sent(wanted, live, manager), manager, Unlocked("spec.bypassOptimisticLock is set"))
    if not isinstance(outcome, ApplyResult):
        return ItemOutdated(str(outcome))
    return Written(outcome.object, overwrote=fields_hash(live, item.managed_fields) != item.hash)


async def _locked(client: Client, owner: PlanOwner, item: PlanItem) -> Result:
    """What is read here is what is locked: if the target changes in between, the API server refuses the write."""
    wanted = with_annotations(item.desired_state, owner.name, item.planned_hash)
    taking = frozenset(Claim(one.manager, one.field) for one in item.takes)
    why = ""
    for _ in range(ATTEMPTS):
        live = await fetch(client, ref_to(item.target_ref))
        if is_applied(item, live, owner.name) and live is not None:
            return Written(live)
        if fields_hash(live, item.managed_fields) != item.hash:
            return ItemOutdated(_changed(item, live))
        owner.reach("item.checked")
        match await apply(client, sent(wanted, live, owner.manager), owner.manager, lock_on(live), taking):
            case ApplyResult(written, _):
                return Written(written)
            case Contested(claims):
                named = ", ".join(sorted(f"{claim.field} of {claim.manager}" for claim in claims)) or "nothing"
                return ItemOutdated(f"the fields to take over are not those in the plan: {named}")
            case Stale(because):
                why = because
    return ItemOutdated(f"the target keeps changing: {why}")


def _changed(item: PlanItem, live: Object | None) -> str:
    target = f"{item.target_ref.kind} {item.target_ref.name}"
    if live is None:
        return f"{target} has been deleted since the plan was made"
    return f"{target} has been changed since the plan was made"
