"""Writing one item of an approved plan: to just what the plan has seen, or not at all."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from virt_steward.kube.client import ApplyResult
from virt_steward.kube.errors import Claim, NotServed, Refused
from virt_steward.kube.faults import reach
from virt_steward.plans.annotations import is_annotated, with_annotations
from virt_steward.plans.draft import sent
from virt_steward.plans.fingerprint import fields_hash
from virt_steward.plans.intent import ref_to
from virt_steward.ssa.apply import Contested, apply
from virt_steward.ssa.locks import Stale, Unlocked, lock_on
from virt_steward.ssa.managers import ADVISOR
from virt_steward.ssa.preview import fetch
from virt_steward.ssa.refusals import RefusedIntent

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from virt_steward.apis.virtplatformconfig import PlanItem
    from virt_steward.kube.client import Client
    from virt_steward.plans.intent import Object

ATTEMPTS = 3
"""Looks at a target whose resourceVersion moves though our fields stay: its status may be busy."""


@dataclass(frozen=True, slots=True)
class Written:
    """The server has it."""

    object: Object
    overwrote: bool = False
    """Whether others had changed the target since the plan was made."""


@dataclass(frozen=True, slots=True)
class ItemOutdated:
    """The target is not as it was when the plan was made; nothing was written."""

    why: str


@dataclass(frozen=True, slots=True)
class WriteRefused:
    """The server does not take it; nothing was written."""

    why: str


Result = Written | ItemOutdated | WriteRefused


def is_applied(item: PlanItem, live: Mapping[str, Any] | None, profile: str) -> bool:
    """Whether the item was written already, by us, and stands: a process before us may not have come to say so."""
    return (
        live is not None
        and is_annotated(live, profile, item.planned_hash)
        and fields_hash(live, item.managed_fields) == item.planned_hash
    )


async def write(client: Client, item: PlanItem, profile: str, *, bypass: bool) -> Result:
    """Apply the item once, under a lock on its target; `bypass` neither locks nor checks."""
    reach("advisor.item.before")
    try:
        result = await _forced(client, item, profile) if bypass else await _locked(client, item, profile)
    except NotServed:
        raise
    except (Refused, RefusedIntent) as refusal:
        return WriteRefused(str(refusal))
    reach("advisor.item.after")
    return result


async def _forced(client: Client, item: PlanItem, profile: str) -> Result:
    live = await fetch(client, ref_to(item.target_ref))
    wanted = with_annotations(item.desired_state, profile, item.planned_hash)
    outcome = await apply(client, sent(wanted, live), ADVISOR, Unlocked("spec.bypassOptimisticLock is set"))
    if not isinstance(outcome, ApplyResult):
        return ItemOutdated(str(outcome))
    return Written(outcome.object, overwrote=fields_hash(live, item.managed_fields) != item.hash)


async def _locked(client: Client, item: PlanItem, profile: str) -> Result:
    """What is read here is what is locked: whatever happens in between is refused by the server."""
    wanted = with_annotations(item.desired_state, profile, item.planned_hash)
    taking = frozenset(Claim(one.manager, one.field) for one in item.takes)
    why = ""
    for _ in range(ATTEMPTS):
        live = await fetch(client, ref_to(item.target_ref))
        if is_applied(item, live, profile) and live is not None:
            return Written(live)
        if fields_hash(live, item.managed_fields) != item.hash:
            return ItemOutdated(_changed(item, live))
        reach("advisor.item.checked")
        match await apply(client, sent(wanted, live), ADVISOR, lock_on(live), taking):
            case ApplyResult(written, _):
                return Written(written)
            case Contested(claims):
                named = ", ".join(sorted(f"{claim.field} of {claim.manager}" for claim in claims)) or "nothing"
                return ItemOutdated(f"the fields to take over are others than those in the plan: {named}")
            case Stale(because):
                why = because
    return ItemOutdated(f"the target does not hold still: {why}")


def _changed(item: PlanItem, live: Object | None) -> str:
    target = f"{item.target_ref.kind} {item.target_ref.name}"
    if live is None:
        return f"{target} has been deleted since the plan was made"
    return f"{target} has been changed since the plan was made"
