"""Why an asset is applied or not: every check with its result, the overrides in force, the live object, events."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

from virt_steward.controllers.autopilot import REPORTER
from virt_steward.controllers.autopilot.annotation_keys import DECISION, DRIFT
from virt_steward.controllers.autopilot.decide import Wanted
from virt_steward.controllers.autopilot.overrides.scope import Idle
from virt_steward.controllers.autopilot.reconcile import is_terminating
from virt_steward.controllers.autopilot.rollouts.policy import REBOOTING
from virt_steward.controllers.autopilot.verdicts import pending_claims, pending_hco
from virt_steward.insight.activity import EventRecord, timeline
from virt_steward.insight.assets.staged import StagedAsset, review_staged, staged_wait
from virt_steward.insight.assets.state import decisions_about, explain_pause, state_of
from virt_steward.insight.assets.survey import target_state
from virt_steward.insight.reading import dry_run_client
from virt_steward.kube.client import Selection
from virt_steward.kube.errors import Forbidden, Refused, ServerError
from virt_steward.kube.events import EVENT
from virt_steward.kube.whoami import lacking as lacking_rights
from virt_steward.objects.checks import CheckResult
from virt_steward.objects.decision_record import DecisionRecord
from virt_steward.objects.diff import unified
from virt_steward.objects.document import JsonDocument
from virt_steward.objects.errors import UserError
from virt_steward.objects.wallclock import rfc3339
from virt_steward.plans.blast_radius import take_census
from virt_steward.ssa.locks import Stale
from virt_steward.ssa.managers import AUTOPILOT
from virt_steward.ssa.preview import Unchanged, preview
from virt_steward.ssa.refusals import RefusedIntent

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from virt_steward.catalog.asset import Asset
    from virt_steward.catalog.load import Catalog
    from virt_steward.controllers.autopilot.live_summary import LiveSummary
    from virt_steward.insight.assets.state import AssetState
    from virt_steward.insight.assets.survey import Survey
    from virt_steward.kube.client import Client, Reader
    from virt_steward.objects.identity import Ref
    from virt_steward.plans.blast_radius import Census

IN_PLACE, DIFFERS, STAGED, IDLE, LEFT_ALONE = "In place", "Differs", "Staged", "Idle", "Left alone"
RECENT = 5
"""How many events are shown."""
PASSES = 2
"""For how many passes an event counts: what lasts is reported again in each."""


@dataclass(frozen=True, slots=True)
class DryRunAccepted:
    """The server accepts the object."""

    diff: str = ""
    """What would change, as unified YAML."""


@dataclass(frozen=True, slots=True)
class DryRunRejected:
    """The server rejects the object."""

    message: str


@dataclass(frozen=True, slots=True)
class DryRunSkipped:
    """The server was not asked."""

    message: str = ""
    """Empty if there is nothing to ask."""


DryRunResult = DryRunAccepted | DryRunRejected | DryRunSkipped


@dataclass(frozen=True, slots=True)
class Evidence:
    """What only the server knows of one asset."""

    dry_run: DryRunResult = DryRunSkipped()
    events: tuple[EventRecord, ...] | None = ()
    """The autopilot's events about the object, the newest first; None: the user may not read events."""
    census: Census | None = None
    """The nodes and VMs, if a change of the asset is staged and the user may list them."""


NO_EVIDENCE = Evidence()


class NoAsset(UserError):
    """The catalog has no asset of this name."""


class LiveObject(JsonDocument, frozen=True):
    """The live object."""

    uid: str
    made_by_us: bool
    others: tuple[str, ...]
    """Other managers of its fields."""
    paused_at: str | None


class SelectedAlong(JsonDocument, frozen=True):
    """An asset that another one brings along."""

    asset: str
    reboots: bool

    def __str__(self) -> str:
        return f"{self.asset} (nodes reboot)" if self.reboots else self.asset


class AssetExplanation(JsonDocument, frozen=True):
    """The whole answer on one asset."""

    asset: str
    summary: str
    object: str
    state: str
    because: str
    checks: tuple[CheckResult, ...]
    overrides: Mapping[str, str]
    """The annotations on the object that are in force."""
    until: str | None
    """When they end."""
    remarks: tuple[str, ...]
    governed: tuple[str, ...]
    """Fields that the advisor governs."""
    differences: tuple[str, ...]
    """What the object lacks of the desired state, as JSON pointers."""
    live: LiveObject | None
    """None: it does not exist."""
    decisions: tuple[DecisionRecord, ...]
    """The last decisions of people about it, the newest first."""
    events: tuple[str, ...]
    """The recent events of the autopilot about it, the newest first."""
    staged: str | None = None
    """The id of the staged change, by which it is released."""
    diff: str = ""
    """What a staged change would change, if the user may ask the server."""
    review: StagedAsset | None = None
    """The staged change: its fields as they were compared, and which nodes reboot."""
    reboots: bool = False
    """Whether nodes reboot when its object is created or changed."""
    group: str = ""
    """By this name in the allow-list it is selected, too."""
    selects: tuple[SelectedAlong, ...] = ()
    """Assets that its name in the allow-list selects besides, as it is the name of their group."""


def find_asset(catalog: Catalog, name: str) -> Asset:
    """Find an asset by its name. Raises NoAsset."""
    if found := catalog.find(name):
        return found
    raise NoAsset(f"there is no asset {name}: `virt-steward render --output status` lists all of them")


def explain(survey: Survey, name: str, found: Mapping[str, Evidence]) -> AssetExplanation:
    """Explain one asset by the decision that the controller would make; `found` is by asset. Raises NoAsset."""
    asset = find_asset(survey.view.catalog, name)
    decision, live = survey.decision(asset), survey.view.live_summary(name)
    state, because = _state(survey, asset, found)
    evidence = found.get(name, NO_EVIDENCE)
    review = review_staged(survey.view, asset, decision, survey.now, evidence.census) if state == STAGED else None
    return AssetExplanation(
        asset=name,
        summary=asset.summary,
        object=str(survey.view.ref(asset)),
        state=state,
        because=because,
        checks=(_activation(survey), *decision.checks, *_checks_before_write(survey, asset, found)),
        overrides={key: value for key, value in decision.overrides.items() if key not in DECISION},
        until=rfc3339(decision.until) if decision.until else None,
        remarks=(*(f"{one.reason}: {one.message}" for one in decision.remarks), *_not_known(found)),
        governed=tuple(sorted(survey.view.governed(asset).paths)),
        differences=target_state(survey, asset).differences,
        live=_live(live) if live else None,
        decisions=decisions_about(name, live, survey.seen.context.hco.annotations),
        events=tuple(f"{rfc3339(one.at)} {one.reason}: {one.note}" for one in (evidence.events or ())[:RECENT]),
        staged=review.id if review else None,
        diff=evidence.dry_run.diff if review and isinstance(evidence.dry_run, DryRunAccepted) else "",
        review=review,
        reboots=asset.object.kind in REBOOTING,
        group=asset.group,
        selects=tuple(
            SelectedAlong(one.name, one.object.kind in REBOOTING)
            for one in survey.view.catalog.assets
            if one.group == name and one is not asset
        ),
    )


def states(survey: Survey) -> Iterator[tuple[Asset, str, str]]:
    """Walk all assets, each with its state in a word and a sentence, as far as they are known without a dry run."""
    for asset in survey.view.catalog.assets:
        yield asset, *_state(survey, asset, {})


def reported_states(survey: Survey, events: Iterable[EventRecord] | None) -> Iterator[AssetState]:
    """Walk all assets as the console shows them: by the decision, the live object and the autopilot's last events."""
    known = None if events is None else tuple(events)
    for asset in survey.view.catalog.assets:
        yield _reported_state(survey, asset, Evidence(events=_about(known, survey.view.ref(asset))))


def _state(survey: Survey, asset: Asset, found: Mapping[str, Evidence]) -> tuple[str, str]:
    if isinstance(survey.seen.scope, Idle):
        return IDLE, survey.seen.scope.why
    if isinstance(survey.decision(asset).outcome, Wanted) and (pending := _pending(survey, asset, found)):
        return "Waits", pending
    if problem := _problem(survey, asset, found.get(asset.name, NO_EVIDENCE)):
        return "Fails", problem
    state = _reported_state(survey, asset, found.get(asset.name, NO_EVIDENCE))
    if state.word == IN_PLACE and (message := target_state(survey, asset).message):
        return DIFFERS, message
    return state.word, state.why


def _reported_state(survey: Survey, asset: Asset, evidence: Evidence) -> AssetState:
    decision, live = survey.decision(asset), survey.view.live_summary(asset.name)
    since = survey.now - timedelta(seconds=PASSES * survey.view.options.period)
    recent = (one for one in evidence.events or () if one.at >= since)
    staged = staged_wait(survey.view, asset, decision, survey.now)
    return state_of(asset, survey.view.ref(asset), decision, live, recent, staged)


def _problem(survey: Survey, asset: Asset, evidence: Evidence) -> str:
    """Why the asset fails; empty if it does not."""
    is_wanted = isinstance(survey.decision(asset).outcome, Wanted)
    if is_wanted and (unreadable := survey.view.unreadable(asset.name)):
        return f"the live object cannot be read: {unreadable}"
    if is_wanted and isinstance(evidence.dry_run, DryRunRejected):
        return evidence.dry_run.message
    state = _reported_state(survey, asset, evidence)
    return state.why if state.word == "Fails" else ""


def _pending(survey: Survey, asset: Asset, found: Mapping[str, Evidence]) -> str:
    """Why the asset is pending; empty if it is not."""
    return _hco_problem(survey, asset, found) or _claims_problem(survey, asset)


def _hco_problem(survey: Survey, asset: Asset, found: Mapping[str, Evidence]) -> str:
    first = survey.view.catalog.assets[0]
    problem = "" if asset is first else _problem(survey, first, found.get(first.name, NO_EVIDENCE))
    return pending_hco(problem).message if problem else ""


def _claims_problem(survey: Survey, asset: Asset) -> str:
    """Why it is unknown what the advisor governs; empty if that is known, or nothing is governed."""
    problem = survey.view.unknown_claims() if survey.view.is_governed(asset) else ""
    return pending_claims(problem).message if problem else ""


def _checks_before_write(survey: Survey, asset: Asset, found: Mapping[str, Evidence]) -> Iterator[CheckResult]:
    """List the checks between the decision and the write."""
    wanted, dry_run = survey.decision(asset).outcome, found.get(asset.name, NO_EVIDENCE).dry_run
    if not isinstance(wanted, Wanted):
        return
    if asset is not survey.view.catalog.assets[0]:
        yield _check("HyperConverged applied", _hco_problem(survey, asset, found))
    if survey.view.is_governed(asset):
        yield _check("Governed fields known", _claims_problem(survey, asset))
    yield from target_state(survey, asset).checks
    if not isinstance(dry_run, DryRunSkipped):
        yield _check("Dry run accepted", dry_run.message if isinstance(dry_run, DryRunRejected) else "")
    yield _check("Writes enabled", _writes_disabled(wanted, survey.view.live_summary(asset.name)))


def _writes_disabled(wanted: Wanted, live: LiveSummary | None) -> str:
    """Why a difference is not corrected; empty if it is."""
    if live and wanted.is_paused:
        return explain_pause(live)
    return f"{DRIFT}: differences are only reported" if wanted.is_only_watched else ""


def _not_known(found: Mapping[str, Evidence]) -> Iterator[str]:
    for evidence in found.values():
        if isinstance(evidence.dry_run, DryRunSkipped) and evidence.dry_run.message:
            yield f"NotTried: {evidence.dry_run.message}"
    if any(evidence.events is None for evidence in found.values()):
        yield "EventsForbidden: forbidden (403) to list events, so recent events are not shown"


def _activation(survey: Survey) -> CheckResult:
    return _check("Autopilot on", survey.seen.scope.why if isinstance(survey.seen.scope, Idle) else "")


def _check(title: str, problem: str) -> CheckResult:
    return CheckResult(title, "fail" if problem else "pass", problem)


def _live(live: LiveSummary) -> LiveObject:
    return LiveObject(live.metadata.uid, live.is_created_by_us, live.others, live.paused_at or None)


async def gather_evidence(client: Client, survey: Survey, asset: Asset) -> dict[str, Evidence]:
    """Ask about the asset and the HyperConverged, which is applied first, with the rights of the user."""
    events = await list_events(client, survey)
    assets = {one.name: one for one in (asset, survey.view.catalog.assets[0])}
    return {
        name: Evidence(
            await _dry_run(client, survey, one),
            _about(events, survey.view.ref(one)),
            await _census(client) if staged_wait(survey.view, one, survey.decision(one), survey.now) else None,
        )
        for name, one in assets.items()
    }


async def _census(client: Client) -> Census | None:
    try:
        return await take_census(client)
    except Forbidden:
        return None


async def _dry_run(client: Client, survey: Survey, asset: Asset) -> DryRunResult:
    intent, live = target_state(survey, asset).intent, survey.live(asset)
    if intent is None:
        return DryRunSkipped()
    ref = survey.view.ref(asset)
    for verb in ("patch",) if live else ("patch", "create"):
        if await lacking_rights(client, verb, (ref,)):
            return DryRunSkipped(f"a dry run needs the right to {verb} {ref}, which you do not have")
    try:
        found = await preview(dry_run_client(client), intent, AUTOPILOT, live)
    except (Refused, RefusedIntent, ServerError) as error:  # the last also if a webhook does not answer
        return DryRunSkipped(str(error)) if is_terminating(error) else DryRunRejected(str(error))
    if isinstance(found, Stale):
        return DryRunSkipped(found.because)
    return DryRunAccepted("" if isinstance(found, Unchanged) else unified(live, found.planned))


def events_of_autopilot(namespace: str) -> Selection:
    return Selection(namespace, fields=f"reportingController={REPORTER}")


async def list_events(reader: Reader, survey: Survey) -> list[EventRecord] | None:
    """The events of the autopilot; None if the user may not list them."""
    try:
        return await reader.list(EVENT, events_of_autopilot(survey.seen.hco.ref.key.namespace), EventRecord)
    except Forbidden:
        return None


def _about(events: Iterable[EventRecord] | None, ref: Ref) -> tuple[EventRecord, ...] | None:
    return None if events is None else timeline(one for one in events if str(one.about) == str(ref))
