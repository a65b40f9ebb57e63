"""What the autopilot would change now, asset by asset: its decisions, a dry run of each, and whether it would wait.

`diff` and `switch-check` show this. Nothing is written: the client can only read and dry-run.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from virt_steward.controllers.autopilot.decide import Wanted
from virt_steward.controllers.autopilot.live_summary import sighting_of_object
from virt_steward.controllers.autopilot.optout import Deletable, OptOut, judge_opt_out
from virt_steward.controllers.autopilot.overrides.exclusions import UnreadableExclusions
from virt_steward.controllers.autopilot.overrides.scope import Idle
from virt_steward.controllers.autopilot.reconcile import is_terminating
from virt_steward.controllers.autopilot.replaced import judge_deletion
from virt_steward.controllers.autopilot.rollouts.policy import REBOOTING
from virt_steward.controllers.autopilot.rollouts.staged import data_key, occasion_of_creation, unreviewed_pools
from virt_steward.controllers.autopilot.rollouts.stager import LiveFacts, RolloutContext, Stager, occasion_of
from virt_steward.controllers.autopilot.rollouts.staging import StageChange
from virt_steward.controllers.autopilot.tombstones import (
    NOT_REVIEWED,
    Obsolete,
    check_tombstone,
    needs_review,
)
from virt_steward.controllers.autopilot.verdicts import (
    AssetFailed,
    AssetPending,
    AssetSkipped,
    SkipReason,
    pending_claims,
    pending_hco,
)
from virt_steward.insight.assets.survey import target_state
from virt_steward.kube.errors import Refused, ServerError
from virt_steward.ssa.drift import drifts
from virt_steward.ssa.locks import Stale
from virt_steward.ssa.managers import AUTOPILOT
from virt_steward.ssa.preview import Changes, Creates, Reowns, preview
from virt_steward.ssa.refusals import RefusedIntent

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping

    from virt_steward.catalog.asset import Asset
    from virt_steward.controllers.autopilot.rollouts.staged import Occasion, StagedChange
    from virt_steward.controllers.autopilot.rollouts.stager import Staging
    from virt_steward.insight.assets.survey import Survey
    from virt_steward.kube.client import Client
    from virt_steward.objects.identity import Ref
    from virt_steward.platform.pools import Pool
    from virt_steward.ssa.preview import Preview

Object = dict[str, Any]

OBSOLETE = "it is obsolete"


class ChangeAction(StrEnum):
    """What the autopilot would do to an object."""

    CREATE = "create"
    UPDATE = "update"
    DELETE = "delete"
    OWN = "own"
    """No value changes; the fields become the autopilot's."""
    NONE = "none"
    REPORT = "report"
    """It differs, and that is only reported, by request."""
    WAIT = "wait"
    """It is wanted, and cannot be written yet."""
    SKIP = "skip"
    """Nothing is wanted of it."""
    UNKNOWN = "unknown"
    """It is unknown, because something could not be read, rendered or tried."""


WRITES = (ChangeAction.CREATE, ChangeAction.UPDATE, ChangeAction.DELETE)
"""What changes a value on the cluster."""


@dataclass(frozen=True, slots=True)
class AssetChange:
    """What would become of one object."""

    asset: str
    """Of an obsolete object: the asset that replaces it, if there is one."""
    ref: Ref
    action: ChangeAction
    message: str = ""
    """Why, where the action alone does not tell."""
    live: Object | None = None
    planned: Object | None = None
    skipped: SkipReason | None = None
    staged: str = ""
    """What the change waits for; empty if it would be written at once."""
    pools: tuple[Pool, ...] = ()
    """Those whose nodes reboot when it is written."""
    is_obsolete: bool = False
    """A tombstone names the object."""

    @property
    def reboots(self) -> bool:
        return self.action in WRITES and self.ref.kind in REBOOTING

    @property
    def starts_rollout(self) -> bool:
        """Whether nodes begin to reboot at once; labels alone start no rollout."""
        is_same = self.live is not None and self.planned is not None and _spec(self.live) == _spec(self.planned)
        return self.reboots and not self.staged and not is_same


def _spec(obj: Object) -> Any:
    return obj.get("spec")


async def preview_changes(client: Client, survey: Survey, assets: Collection[str] = ()) -> tuple[AssetChange, ...]:
    """Ask the server about the named assets and what they replace, or about all and every obsolete object.

    The HyperConverged is always asked about, since others wait for it, and so are all objects that reboot nodes, since
    whether one of them is staged depends on the others. What is not named is left out of the answer.
    """
    if isinstance(survey.seen.scope, Idle):
        return ()
    first, *others = survey.view.catalog.assets
    on_hco = await _change(client, survey, first)
    problem = on_hco.message if on_hco.action is ChangeAction.UNKNOWN else ""
    asked = [one for one in others if not assets or one.name in assets or one.object.kind in REBOOTING]
    found = await asyncio.gather(*(_change(client, survey, one, problem) for one in asked))
    stager = Stager(PreviewRecords(survey.view.all_staged()))
    stones = tuple(_tombstones(survey, stager))
    known = (*_with_staging(survey, stager, (on_hco, *found)), *stones)
    return tuple(one for one in known if one.asset in assets) if assets else known


async def _change(client: Client, survey: Survey, asset: Asset, hco_problem: str = "") -> AssetChange:
    nothing = AssetChange(asset.name, survey.view.ref(asset), ChangeAction.NONE, live=survey.live(asset))
    match survey.decision(asset).outcome:
        case AssetFailed(_, message):
            return replace(nothing, action=ChangeAction.UNKNOWN, message=message)
        case AssetSkipped() as skipped:
            return _left_out(survey, asset, skipped)
        case AssetPending(_, message):
            return replace(nothing, action=ChangeAction.WAIT, message=message)
    if message := _pending(survey, asset, hco_problem):
        return replace(nothing, action=ChangeAction.WAIT, message=message)
    return await _dry_run(client, survey, asset, nothing)


def _pending(survey: Survey, asset: Asset, hco_problem: str) -> str:
    """Why a wanted object is not written yet; empty if it is."""
    if hco_problem:
        return pending_hco(hco_problem).message
    claims = survey.view.unknown_claims() if survey.view.is_governed(asset) else ""
    return pending_claims(claims).message if claims else ""


async def _dry_run(client: Client, survey: Survey, asset: Asset, nothing: AssetChange) -> AssetChange:
    intent = target_state(survey, asset).intent
    if intent is None:
        return nothing
    try:
        outcome = await preview(client, intent, AUTOPILOT, nothing.live)
    except (Refused, RefusedIntent, ServerError) as error:  # the last also if a webhook does not answer
        action = ChangeAction.WAIT if is_terminating(error) else ChangeAction.UNKNOWN
        return replace(nothing, action=action, message=str(error))
    return _previewed(nothing, outcome, is_only_watched=_is_only_watched(survey, asset))


def _left_out(survey: Survey, asset: Asset, skipped: AssetSkipped) -> AssetChange:
    ref, live, summary = survey.view.ref(asset), survey.live(asset), survey.view.live_summary(asset.name)
    found = AssetChange(asset.name, ref, ChangeAction.SKIP, skipped.message, live, skipped=skipped.reason)
    if skipped.reason.is_unknown:
        return replace(found, action=ChangeAction.UNKNOWN)
    if summary is None:
        return found
    opt_out = OptOut(asset, ref, summary, skipped)
    is_deleted = isinstance(judge_opt_out(opt_out, survey.seen, survey.view.catalog.assets), Deletable)
    return replace(found, action=ChangeAction.DELETE) if is_deleted else found


def _is_only_watched(survey: Survey, asset: Asset) -> bool:
    outcome = survey.decision(asset).outcome
    return isinstance(outcome, Wanted) and outcome.is_only_watched


def _previewed(nothing: AssetChange, outcome: Preview, *, is_only_watched: bool) -> AssetChange:
    match outcome:
        case Creates(planned):
            return replace(nothing, action=ChangeAction.CREATE, planned=planned)
        case Changes(_, planned):
            action = ChangeAction.REPORT if is_only_watched else ChangeAction.UPDATE
            return replace(nothing, action=action, planned=planned)
        case Reowns(_, planned) if not is_only_watched:
            return replace(nothing, action=ChangeAction.OWN, planned=planned)
        case Stale(message):
            return replace(nothing, action=ChangeAction.UNKNOWN, message=f"it changed meanwhile: {message}; try again")
    return nothing


def _tombstones(survey: Survey, stager: Stager[PreviewRecords]) -> Iterator[AssetChange]:
    if isinstance(survey.seen.exclusions, UnreadableExclusions):
        return
    for stone in survey.view.catalog.tombstones:
        found = check_tombstone(stone, survey.view, survey.seen)
        if not isinstance(found, Obsolete):
            continue
        message = f"{OBSOLETE}, and asset {stone.replaced_by} replaces it" if stone.replaced_by else OBSOLETE
        change = AssetChange(stone.replaced_by, stone.ref, ChangeAction.DELETE, message, is_obsolete=True)
        is_unreviewed = needs_review(found, survey.view, survey.seen)
        if is_unreviewed and not stone.replaced_by:
            change = replace(change, staged=NOT_REVIEWED)
        elif is_unreviewed:
            staging = judge_deletion(stager, survey.view, survey.seen, found, survey.now)
            if staging.is_held:
                stager.ledger.stage(stone.ref, staging.change)
            change = replace(change, pools=staging.pools, staged=_wait(staging))
        yield change


def _wait(staging: Staging) -> str:
    return staging.verdict.message if isinstance(staging.verdict, StageChange) else ""


class PreviewRecords:
    """What is staged on the cluster, and what this preview would stage or roll out besides."""

    def __init__(self, entries: Mapping[str, StagedChange]) -> None:
        self._entries = dict(entries)
        self.rolling: set[str] = set()

    def find(self, ref: Ref) -> StagedChange | None:
        return self._entries.get(data_key(ref))

    def is_recorded(self, ref: Ref, change: StagedChange) -> bool:
        return self.find(ref) == change

    def started(self, pools: Iterable[Pool]) -> frozenset[str]:
        return frozenset(pool.name for pool in pools) & self.rolling

    def unreviewed_pools(self, ref: Ref) -> frozenset[str]:
        return unreviewed_pools(self._entries, ref)

    def stage(self, ref: Ref, change: StagedChange) -> None:
        self._entries[data_key(ref)] = change


def _with_staging(
    survey: Survey, stager: Stager[PreviewRecords], changes: tuple[AssetChange, ...]
) -> tuple[AssetChange, ...]:
    """Add what waits, by the controller's rules, in its order: existing objects first, then what is new.

    A write that starts a rollout takes staged changes of its pools along, so these are judged again then.
    """
    records = stager.ledger
    judged = {one.asset: one for one in changes}
    order = sorted((one.asset for one in changes if _may_wait(one)), key=lambda name: judged[name].live is None)
    before: frozenset[str] | None = None
    while before != (before := frozenset(records.rolling)):
        for name in order:
            if before and not judged[name].staged:
                continue
            judged[name] = _judged(survey, stager, judged[name])
            if judged[name].starts_rollout:
                records.rolling |= {pool.name for pool in judged[name].pools if not pool.spec.paused}
    return tuple(judged[one.asset] for one in changes)


def _may_wait(change: AssetChange) -> bool:
    return change.action in (ChangeAction.CREATE, ChangeAction.UPDATE, ChangeAction.OWN)


def _judged(survey: Survey, stager: Stager[PreviewRecords], change: AssetChange) -> AssetChange:
    staging = _staging(survey, stager, change)
    if staging is None:
        return change
    if not isinstance(staging.verdict, StageChange):
        return replace(change, staged="", pools=staging.pools)
    if change.action is ChangeAction.OWN:  # no node would change, and nothing waits: the next write takes the fields
        return replace(change, action=ChangeAction.NONE)
    stager.ledger.stage(change.ref, staging.change)
    return replace(change, staged=staging.verdict.message, pools=staging.pools)


def _staging(survey: Survey, stager: Stager[PreviewRecords], change: AssetChange) -> Staging | None:
    asset = survey.view.catalog.find(change.asset)
    wanted = survey.decision(asset).outcome if asset else None
    if not isinstance(wanted, Wanted):
        return None
    if not survey.view.may_wait(change.ref.kind, survey.view.live_summary(change.asset), wanted.rollout):
        return None
    context = replace(
        RolloutContext.of(change.asset, survey.seen, wanted.rollout, survey.view.pools()),
        has_predecessor=survey.view.has_predecessor(),
        holds=survey.view.rollout_holds(survey.seen.context.hco.annotations, survey.now),
    )
    before = stager.ledger.find(change.ref)
    creation = occasion_of_creation(before, is_compared=False, has_predecessor=context.has_predecessor)
    return stager.judge(context, wanted.intent, _facts(change, creation), survey.now)


def _facts(change: AssetChange, creation: Occasion) -> LiveFacts:
    """A preview has written nothing, so whatever exists is met for the first time, unless others changed it."""
    live = change.live
    if live is None or change.planned is None:
        return LiveFacts(creation, "", {})
    found = (one for one in drifts(Changes(live, change.planned), AUTOPILOT) if one.is_foreign)
    digest = sighting_of_object(live).digest.hex()[:16]
    return LiveFacts(occasion_of(live, found, is_first_contact=True), digest, live["metadata"].get("labels") or {})
