"""One desired object against the live one: which fields are sent, what would change, whether it may, and the write.

STEPS run in order; each passes the task on, or ends it with a verdict.

Converged means silent. A dry run that found nothing to change is remembered (`ssa/memo.py`) together with a digest of
the live object, the intent and the basis on which the intent was reduced (mask, governed fields, drift mode). The first
step looks that up, so a pass over a platform in sync costs no request at all. For example, a KubeDescheduler was found
in sync. The next pass renders the same intent, and the watch shows the same digest: the verdict is AssetInSync without
a request. When an admin edits the object the digest changes; when the mask annotation changes the basis does: either
way the entry no longer matches and the server is asked. What only the server knows, the schema, is in neither of them,
so a changed CRD drops the entries of its kind (`AutopilotController.handle_schema_change`), and each entry expires
after about an hour. A second memo holds what was found to differ and is only reported, so that it is reported once. A
third holds what was found to differ and is staged (`rollouts`): while both sides are the same, only the decision
whether it still waits is made again.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from random import Random
from typing import TYPE_CHECKING, Any

from virt_steward.controllers.autopilot import holds
from virt_steward.controllers.autopilot.annotation_keys import (
    PAUSE_REASON,
    PAUSED,
    annotation_intent,
    select_steering,
)
from virt_steward.controllers.autopilot.edit_wars import (
    HOUR,
    Correction,
    EditWars,
    PauseObject,
    WriteAllowed,
    WriteThrottled,
)
from virt_steward.controllers.autopilot.live_summary import sighting_of_object
from virt_steward.controllers.autopilot.overrides.governed import NothingLeft, without_governed
from virt_steward.controllers.autopilot.overrides.mask import masked
from virt_steward.controllers.autopilot.rollouts.staged import Occasion, occasion_of_creation
from virt_steward.controllers.autopilot.rollouts.stager import LiveFacts, Stager, occasion_of
from virt_steward.controllers.autopilot.rollouts.staging import WriteNow
from virt_steward.controllers.autopilot.signatures import is_signature_pending, prepare_signature, sign
from virt_steward.controllers.autopilot.verdicts import (
    AssetApplied,
    AssetDiffers,
    AssetInSync,
    AssetPending,
    EditWar,
    PendingReason,
)
from virt_steward.holds.freezes import NOT_FROZEN
from virt_steward.kube.faults import reach
from virt_steward.objects.canonical import canonical
from virt_steward.objects.field_changes import field_changes
from virt_steward.objects.identity import ref_of
from virt_steward.objects.ownership import owned_by
from virt_steward.ssa import apply as writing
from virt_steward.ssa.drift import drifts
from virt_steward.ssa.locks import Stale, lock_on
from virt_steward.ssa.managers import AUTOPILOT, PAUSE
from virt_steward.ssa.memo import DryRunMemo, LiveDigest
from virt_steward.ssa.preview import Changes, Creates, Reowns, Unchanged, fetch, preview

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from virt_steward.catalog.reads import ObjectRead
    from virt_steward.catalog.render import Renderer
    from virt_steward.controllers.autopilot.decide import Wanted
    from virt_steward.controllers.autopilot.live_summary import LiveSummary
    from virt_steward.controllers.autopilot.overrides.governed import GovernedFields
    from virt_steward.controllers.autopilot.rollouts.ledger import StagingLedger
    from virt_steward.controllers.autopilot.rollouts.stager import RolloutContext
    from virt_steward.controllers.autopilot.verdicts import Verdict
    from virt_steward.holds.freezes import FreezeState
    from virt_steward.holds.gate_board import GateBoard
    from virt_steward.kube.client import Client
    from virt_steward.platform.pools import Pool
    from virt_steward.runtime.clock import Clock
    from virt_steward.ssa.drift_entries import FieldDrift
    from virt_steward.ssa.locks import Object

STALE_RETRY = 0.2
"""Seconds after which a watch has surely delivered what the server has already."""
WHOLE_OBJECT = "the whole object"
ABSENT = LiveDigest("", b"")
"""An object that does not exist."""


@dataclass(frozen=True, slots=True)
class Toolkit:
    """What the steps work with."""

    client: Client
    renderer: Renderer
    settled: DryRunMemo
    """Found in sync."""
    reported: DryRunMemo
    """Found to differ, and only reported."""
    held: DryRunMemo
    """Found to differ, and staged."""
    stager: Stager[StagingLedger]
    gates: GateBoard
    wars: EditWars
    clock: Clock

    @classmethod
    def of(cls, client: Client, renderer: Renderer, ledger: StagingLedger, gates: GateBoard, clock: Clock) -> Toolkit:
        """Begin with nothing remembered but what the ledger has."""
        rng = Random()  # noqa: S311 - jitter
        memos = (DryRunMemo(rng), DryRunMemo(rng), DryRunMemo(rng))
        return cls(client, renderer, *memos, Stager(ledger), gates, EditWars(), clock)


@dataclass(frozen=True, slots=True)
class RenderedFrom:
    """What a template has read of the object that it renders, such as text of others to which it adds."""

    read: ObjectRead
    content: Mapping[str, Any] | None
    """As it was then; None if the object did not exist."""

    def is_current(self, live: Object | None) -> bool:
        then = None if self.content is None else self.read.select(self.content)
        return then == (None if live is None else self.read.select(live))


@dataclass(frozen=True, slots=True)
class Task:
    """One asset on its way through the steps."""

    wanted: Wanted
    summary: LiveSummary | None
    """The live object as the watch has it; None if it does not exist."""
    governed: GovernedFields
    intent: Object
    rendered_from: RenderedFrom | None = None
    """None: the intent does not depend on the live object."""
    rollout: RolloutContext | None = None
    """None: no change of it has to wait."""
    freeze: FreezeState = NOT_FROZEN
    live: Object | None = None
    outcome: Creates | Changes | Reowns | None = None
    drifts: tuple[FieldDrift, ...] = ()
    """What others have changed. A difference because the intent itself changed is no drift."""
    own_changes: tuple[FieldDrift, ...] = ()
    """Values that differ and that only our own manager owns: the intent has changed, or another instance wrote.

    At first contact also those that nobody owns: an earlier writer as our manager did not set them.
    """
    is_first_contact: bool = False
    """The object exists, and this process has neither written it nor found it in sync."""

    pools: tuple[Pool, ...] = ()
    """Those whose nodes reboot when it is written."""
    released: str = ""
    """Why a change that was staged is written now."""

    @property
    def basis(self) -> str:
        """What bears on the intent besides itself and the live object."""
        masked_fields = sorted(map(str, self.wanted.mask.pointers))
        return canonical([masked_fields, sorted(self.governed.paths), self.wanted.is_only_watched]).decode()

    @property
    def correction(self) -> Correction:
        """What a write corrects; EditWars counts how often that happens."""
        changed = (WHOLE_OBJECT,) if isinstance(self.outcome, Creates) else (drift.path for drift in self.drifts)
        return Correction(
            frozenset(changed), frozenset(self.own_paths), hashlib.sha256(canonical(self.intent)).hexdigest()
        )

    @property
    def own_paths(self) -> tuple[str, ...]:
        return tuple(sorted({drift.path for drift in self.own_changes}))

    @property
    def all_changes(self) -> tuple[str, ...]:
        return tuple(sorted({*(drift.cause for drift in self.drifts), *self.own_paths}))

    @property
    def digest(self) -> str:
        """Tells this state of the live object from any other."""
        return sighting_of_object(self.live).digest.hex()[:16] if self.live else ""


async def check_memo(tools: Toolkit, task: Task) -> Task | Verdict:
    sighting = task.summary.sighting if task.summary else ABSENT
    question = (task.intent, AUTOPILOT, sighting, tools.clock.now())
    is_held = task.rollout is not None and tools.held.knows(*question, basis=task.basis)
    if task.rollout and is_held and (staging := await holds.recall_staged(tools, task, task.rollout)):
        return holds.staged_verdict(tools, staging)
    if task.summary is None:
        return task
    if tools.settled.knows(*question, basis=task.basis):
        return AssetInSync()
    if task.wanted.is_only_watched and tools.reported.knows(*question, basis=task.basis):
        return AssetDiffers((), task.wanted.is_paused)
    return task


async def read_live(tools: Toolkit, task: Task) -> Task | Verdict:
    live = None
    if task.summary is not None:
        live = await fetch(tools.client, ref_of(task.intent))
        if live and is_signature_pending(live):  # an apply of the intent would remove what the creation has left
            await sign(tools.client, live)
            live = await fetch(tools.client, ref_of(task.intent))
        if live is None or select_steering(live["metadata"].get("annotations")) != task.summary.annotations:
            return _stale("the object has just changed")
    if task.rendered_from and not task.rendered_from.is_current(live):  # it would undo what others have just written
        return _stale("the object has changed since it was read")
    return replace(task, live=live)


async def leave_out_masked(_tools: Toolkit, task: Task) -> Task | Verdict:
    if task.live is None or not task.wanted.mask.pointers:
        return task
    return replace(task, intent=masked(task.intent, task.live, AUTOPILOT, task.wanted.mask).intent)


async def leave_out_governed(tools: Toolkit, task: Task) -> Task | Verdict:
    if task.live is None:
        return task
    match without_governed(task.intent, task.live, task.governed):
        case NothingLeft(message):
            _remember(tools.settled, tools, task, task.live)
            return AssetInSync(message)
        case intent:
            return replace(task, intent=intent)


async def dry_run(tools: Toolkit, task: Task) -> Task | Verdict:
    outcome = await preview(tools.client, task.intent, AUTOPILOT, task.live)
    match outcome:
        case Unchanged(live):
            await _settle(tools, task, live)
            return AssetInSync()
        case Stale(message):
            return _stale(message)
        case Creates() | Changes() | Reowns():
            found = drifts(outcome, AUTOPILOT)
            is_first = task.live is not None and not tools.stager.ledger.was_in_sync(ref_of(task.intent))
            foreign = tuple(one for one in found if (one.by if is_first else one.is_foreign))
            own = tuple(one for one in found if one not in foreign)
            return replace(task, outcome=outcome, drifts=foreign, own_changes=own, is_first_contact=is_first)
    raise AssertionError(outcome)  # a manager that may force what it has read meets no conflicts


async def only_report(tools: Toolkit, task: Task) -> Task | Verdict:
    """A difference of an object that is paused, or whose drift is only reported, is not corrected."""
    if not task.wanted.is_only_watched:
        return task
    match task.outcome:
        case Reowns(live):  # every value is as desired, only its owner differs
            _remember(tools.settled, tools, task, live)
            return AssetInSync()
        case Changes(live):
            _remember(tools.reported, tools, task, live)
            differs = (*task.drifts, *task.own_changes) if task.is_first_contact else task.drifts
            return AssetDiffers(differs, task.wanted.is_paused)
    return task


async def stage(tools: Toolkit, task: Task) -> Task | Verdict:
    """Keep a change that waits until its policy lets it through; it costs no token until then."""
    if task.rollout is None:
        return task
    ref = ref_of(task.intent)
    staging = await holds.judge_staging(tools, task.wanted.intent, task.rollout, _live_facts(tools, task))
    was_staged = tools.stager.ledger.find(ref) is not None
    if isinstance(staging.verdict, WriteNow):
        if task.live is None and not task.rollout.all_compared:
            return _stale("objects that exist are compared first: what is new must not take their changes along")
        released = staging.verdict.reason if was_staged else ""
        return replace(task, pools=staging.pools, released=released)
    if isinstance(task.outcome, Reowns):  # no node would change, and nothing waits: the next write takes the fields
        _remember(tools.settled, tools, task, task.outcome.live)
        return AssetInSync()
    await tools.stager.ledger.stage(task.rollout.hco, ref, staging.change)
    _remember(tools.held, tools, task, task.live)
    return holds.staged_verdict(tools, staging, task.all_changes)


async def throttle(tools: Toolkit, task: Task) -> Task | Verdict:
    match tools.wars.attempt(ref_of(task.intent), task.correction, tools.clock.now()):
        case WriteThrottled(retry_in, message):
            return AssetPending(PendingReason.THROTTLED, message, retry_in)
        case PauseObject(message):
            return await _pause(tools, task, message)
        case WriteAllowed():
            return task


async def apply(tools: Toolkit, task: Task) -> Task | Verdict:
    assert task.outcome  # noqa: S101 - set by dry_run
    reach("autopilot.apply.before")
    intent = task.intent if task.live else prepare_signature(task.intent)
    answer = await writing.apply(tools.client, intent, AUTOPILOT, lock_on(task.live))
    reach("autopilot.apply.after")
    match answer:
        case Stale(message):
            return _stale(message)
        case writing.Contested(claims):
            return _stale(f"others own {', '.join(sorted(claim.field for claim in claims))}")
    tools.wars.applied(ref_of(task.intent), task.correction, tools.clock.now())
    if task.live is None or task.live.get("spec") != answer.object.get("spec"):  # labels alone start no rollout
        tools.stager.ledger.note_rollout(task.pools)
    await _settle(tools, task, answer.object)
    if not isinstance(task.outcome, Creates):  # a new object gets values that no dry run can know: addresses, names
        tools.settled.compare(task.outcome.planned, answer.object)
    adopted = task.live is not None and not owned_by(task.live, AUTOPILOT.name)
    uid = answer.object["metadata"]["uid"]
    return AssetApplied(
        created=answer.created,
        adopted=adopted,
        drifts=task.drifts,
        uid=uid,
        digest=task.digest,
        released=task.released,
        changes=task.own_paths,
        is_first_contact=task.is_first_contact,
    )


STEPS: tuple[Callable[[Toolkit, Task], Awaitable[Task | Verdict]], ...] = (
    check_memo,
    read_live,
    leave_out_masked,
    leave_out_governed,
    dry_run,
    only_report,
    holds.hold_during_freeze,
    stage,
    throttle,
    apply,
)


async def converge(tools: Toolkit, task: Task) -> Verdict:
    """Run the steps until one of them ends with a verdict."""
    for step in STEPS:
        match await step(tools, task):
            case Task() as task:
                continue
            case verdict:
                return verdict
    raise AssertionError(task)  # the last step always ends with a verdict


async def _pause(tools: Toolkit, task: Task, message: str) -> Verdict:
    """Annotate the object, so that the pause survives a restart and ends when the annotation is removed."""
    if task.live is None:  # something keeps deleting it: there is nothing to annotate, so wait
        return AssetPending(PendingReason.THROTTLED, message, HOUR)
    reach("autopilot.pause.before")
    intent = annotation_intent(task.live, {PAUSED: "true", PAUSE_REASON: message})
    answer = await writing.apply(tools.client, intent, PAUSE, lock_on(task.live))
    if isinstance(answer, Stale | writing.Contested):
        return _stale("the object has just changed")
    return EditWar(message, int(answer.object["metadata"]["resourceVersion"]))


async def _settle(tools: Toolkit, task: Task, live: Object) -> None:
    """Remember that it is in sync, once it carries the record of who created it."""
    tools.stager.ledger.note_in_sync(ref_of(live))
    if await sign(tools.client, live):
        _remember(tools.settled, tools, task, live)


def _remember(memo: DryRunMemo, tools: Toolkit, task: Task, live: Object | None) -> None:
    sighting = sighting_of_object(live) if live else ABSENT
    memo.remember(task.wanted.intent, AUTOPILOT, sighting, tools.clock.now(), basis=task.basis)


def _live_facts(tools: Toolkit, task: Task) -> LiveFacts:
    labels = task.live["metadata"].get("labels") or {} if task.live else {}
    changes = field_changes(task.live, task.outcome.planned) if task.outcome else ()
    return LiveFacts(_occasion(tools, task), task.digest, labels, changes)


def _occasion(tools: Toolkit, task: Task) -> Occasion:
    if task.live is not None:
        return occasion_of(task.live, task.drifts, is_first_contact=task.is_first_contact)
    ref, ledger = ref_of(task.intent), tools.stager.ledger
    return occasion_of_creation(
        ledger.find(ref),
        is_compared=ledger.was_compared(ref),
        has_predecessor=task.rollout is not None and task.rollout.has_predecessor,
    )


def _stale(message: str) -> AssetPending:
    return AssetPending(PendingReason.STALE, message, STALE_RETRY)
