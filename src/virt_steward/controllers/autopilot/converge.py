"""One wanted object against the live one: what is left out, what would change, whether it may, and the write.

STEPS are taken in order; each goes on with the work, or ends it with a verdict.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from virt_steward.controllers.autopilot.annotation_keys import PAUSED, mark, ours
from virt_steward.controllers.autopilot.edit_wars import HOUR, PauseObject, WriteAllowed, WriteThrottled
from virt_steward.controllers.autopilot.live_summary import sighting_of_object
from virt_steward.controllers.autopilot.optout import signed
from virt_steward.controllers.autopilot.overrides.governed import NothingLeft, without_governed
from virt_steward.controllers.autopilot.overrides.mask import masked
from virt_steward.controllers.autopilot.verdicts import AssetApplied, AssetInSync, Differs, EditWar, Held, Waits
from virt_steward.kube.faults import reach
from virt_steward.objects.canonical import canonical
from virt_steward.objects.identity import ref_of
from virt_steward.objects.ownership import owned_by
from virt_steward.ssa import apply as writing
from virt_steward.ssa.drift import drifts
from virt_steward.ssa.locks import Stale, lock_on
from virt_steward.ssa.managers import AUTOPILOT, PAUSE
from virt_steward.ssa.preview import Changes, Creates, Reowns, Unchanged, fetch, preview

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from virt_steward.catalog.reads import ObjectRead
    from virt_steward.catalog.render import Renderer
    from virt_steward.controllers.autopilot.decide import Wanted
    from virt_steward.controllers.autopilot.edit_wars import EditWars
    from virt_steward.controllers.autopilot.live_summary import LiveSummary
    from virt_steward.controllers.autopilot.overrides.governed import GovernedFields
    from virt_steward.controllers.autopilot.verdicts import Verdict
    from virt_steward.kube.client import Client
    from virt_steward.runtime.clock import Clock
    from virt_steward.ssa.drift import FieldDrift
    from virt_steward.ssa.locks import Object
    from virt_steward.ssa.memo import DryRunMemo

LOOK_AGAIN = 0.2
"""Seconds until a watch has surely told what the server knows already."""


@dataclass(frozen=True, slots=True)
class Toolkit:
    """What the steps work with."""

    client: Client
    renderer: Renderer
    settled: DryRunMemo
    """Found as wanted."""
    reported: DryRunMemo
    """Found to differ, and only reported."""
    wars: EditWars
    clock: Clock


@dataclass(frozen=True, slots=True)
class RenderedFrom:
    """What a template has read of the object that it makes: text of others, say, to which it adds."""

    read: ObjectRead
    content: Mapping[str, Any] | None
    """As it was then; None if there was no such object."""

    def is_still(self, live: Object | None) -> bool:
        then = None if self.content is None else self.read.seen(self.content)
        return then == (None if live is None else self.read.seen(live))


@dataclass(frozen=True, slots=True)
class Task:
    """One asset on its way through the steps."""

    wanted: Wanted
    sighted: LiveSummary | None
    governed: GovernedFields
    intent: Object
    made_from: RenderedFrom | None = None
    """None: the intent does not depend on the live object."""
    live: Object | None = None
    outcome: Creates | Changes | Reowns | None = None
    drifts: tuple[FieldDrift, ...] = ()
    """What others have changed; that something else is wanted than before is no drift."""
    notes: tuple[str, ...] = ()

    @property
    def basis(self) -> str:
        """What bears on the intent besides itself and the live object."""
        masked_fields = sorted(map(str, self.wanted.mask.pointers))
        return canonical([masked_fields, sorted(self.governed.paths), self.wanted.is_only_watched]).decode()

    @property
    def fields(self) -> frozenset[str]:
        """What a write sets right, for whoever counts how often."""
        if isinstance(self.outcome, Creates):
            return frozenset(("the whole object",))
        return frozenset(drift.path for drift in self.drifts)

    @property
    def digest(self) -> str:
        """Tells this state of the live object from any other."""
        return sighting_of_object(self.live).digest.hex()[:16] if self.live else ""


async def remembered(bench: Toolkit, work: Task) -> Task | Verdict:
    if work.sighted is None:
        return work
    asked = (work.intent, AUTOPILOT, work.sighted.sighting, bench.clock.now())
    if bench.settled.knows(*asked, basis=work.basis):
        return AssetInSync()
    if work.wanted.is_only_watched and bench.reported.knows(*asked, basis=work.basis):
        return Differs((), work.wanted.is_paused)
    return work


async def looked_at(bench: Toolkit, work: Task) -> Task | Verdict:
    live = None
    if work.sighted is not None:
        live = await fetch(bench.client, ref_of(work.intent))
        if live is None or ours(live["metadata"].get("annotations")) != work.sighted.annotations:
            return _behind("the object has just changed")
    if work.made_from and not work.made_from.is_still(live):  # it would put back what others have just replaced
        return _behind("the object has changed since it was read")
    return replace(work, live=live)


async def without_masked(_bench: Toolkit, work: Task) -> Task | Verdict:
    if work.live is None or not work.wanted.mask.pointers:
        return work
    left = masked(work.intent, work.live, AUTOPILOT, work.wanted.mask)
    return replace(work, intent=left.intent, notes=(*work.notes, *left.notes))


async def without_the_advisors(bench: Toolkit, work: Task) -> Task | Verdict:
    if work.live is None:
        return work
    match without_governed(work.intent, work.live, work.governed):
        case NothingLeft(why):
            _remember(bench.settled, bench, work, work.live)
            return AssetInSync(why)
        case left:
            return replace(work, intent=left)


async def previewed(bench: Toolkit, work: Task) -> Task | Verdict:
    outcome = await preview(bench.client, work.intent, AUTOPILOT, work.live)
    match outcome:
        case Unchanged(live):
            await _settle(bench, work, live)
            return AssetInSync()
        case Stale(why):
            return _behind(why)
        case Creates() | Changes() | Reowns():
            foreign = tuple(drift for drift in drifts(outcome, AUTOPILOT) if drift.is_foreign)
            return replace(work, outcome=outcome, drifts=foreign)
    raise AssertionError(outcome)  # a manager that takes what it has seen meets no conflicts


async def reported(bench: Toolkit, work: Task) -> Task | Verdict:
    """Of what is paused or only to be reported, a difference is told and not set right."""
    if not work.wanted.is_only_watched:
        return work
    match work.outcome:
        case Reowns(live):  # every value is as wanted, whoever has set it
            _remember(bench.settled, bench, work, live)
            return AssetInSync()
        case Changes(live):
            _remember(bench.reported, bench, work, live)
            return Differs(_told(work), work.wanted.is_paused)
    return work


async def throttled(bench: Toolkit, work: Task) -> Task | Verdict:
    ref = ref_of(work.intent)
    match bench.wars.attempt(ref, work.fields, bench.clock.now()):
        case WriteThrottled(retry_in, why):
            return Waits(Held.THROTTLED, why, retry_in)
        case PauseObject(why):
            return await _paused(bench, work, why)
        case WriteAllowed():
            return work


async def applied(bench: Toolkit, work: Task) -> Task | Verdict:
    assert work.outcome  # noqa: S101 - the steps before have seen to it
    reach("autopilot.apply.before")
    answer = await writing.apply(bench.client, work.intent, AUTOPILOT, lock_on(work.live))
    reach("autopilot.apply.after")
    match answer:
        case Stale(why):
            return _behind(why)
        case writing.Contested(claims):
            return _behind(f"others own {', '.join(sorted(claim.field for claim in claims))}")
    bench.wars.applied(ref_of(work.intent), work.fields, bench.clock.now())
    await _settle(bench, work, answer.object)
    if not isinstance(work.outcome, Creates):  # what is new gets values that no preview can know: addresses, names
        bench.settled.compare(work.outcome.planned, answer.object)
    adopted = work.live is not None and not owned_by(work.live, AUTOPILOT.name)
    return AssetApplied(answer.created, adopted, _told(work), answer.object["metadata"]["uid"], work.digest)


STEPS: tuple[Callable[[Toolkit, Task], Awaitable[Task | Verdict]], ...] = (
    remembered,
    looked_at,
    without_masked,
    without_the_advisors,
    previewed,
    reported,
    throttled,
    applied,
)


async def converge(bench: Toolkit, work: Task) -> Verdict:
    """Take the steps until one of them ends it."""
    for step in STEPS:
        match await step(bench, work):
            case Task() as work:
                continue
            case verdict:
                return verdict
    raise AssertionError(work)  # the last step always ends it


async def _paused(bench: Toolkit, work: Task, why: str) -> Verdict:
    """Mark the object, so that the pause outlives this process and is lifted by removing the mark."""
    if work.live is None:  # somebody keeps deleting it: there is nothing to mark, so only time helps
        return Waits(Held.THROTTLED, why, HOUR)
    reach("autopilot.pause.before")
    answer = await writing.apply(bench.client, mark(work.live, PAUSED, "true"), PAUSE, lock_on(work.live))
    if isinstance(answer, Stale | writing.Contested):
        return _behind("the object has just changed")
    return EditWar(why)


async def _settle(bench: Toolkit, work: Task, live: Object) -> None:
    """Remember it as it is wanted, once it says whether it is of our making."""
    if await signed(bench.client, live, work.live):
        _remember(bench.settled, bench, work, live)


def _told(work: Task) -> tuple[str, ...]:
    return tuple(str(drift) for drift in work.drifts)


def _remember(memo: DryRunMemo, bench: Toolkit, work: Task, live: Object) -> None:
    memo.remember(work.wanted.intent, AUTOPILOT, sighting_of_object(live), bench.clock.now(), basis=work.basis)


def _behind(why: str) -> Waits:
    return Waits(Held.BEHIND, why, LOOK_AGAIN)
