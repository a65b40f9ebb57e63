"""What only the server can tell of an asset: whether it would take the object, and what was told of it lately."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from virt_steward.controllers.autopilot import REPORTER
from virt_steward.controllers.autopilot.reconcile import is_leaving
from virt_steward.insight.activity import EventRecord, timeline
from virt_steward.insight.assets.target import target_state
from virt_steward.insight.reading import dry_run_client
from virt_steward.kube.client import Selection
from virt_steward.kube.errors import Forbidden, Refused, ServerError
from virt_steward.kube.events import EVENT
from virt_steward.kube.whoami import lacking
from virt_steward.ssa.locks import Stale
from virt_steward.ssa.managers import AUTOPILOT
from virt_steward.ssa.preview import preview
from virt_steward.ssa.refusals import RefusedIntent

if TYPE_CHECKING:
    from collections.abc import Iterable

    from virt_steward.catalog.asset import Asset
    from virt_steward.insight.assets.survey import Survey
    from virt_steward.kube.client import Client
    from virt_steward.objects.identity import Ref


@dataclass(frozen=True, slots=True)
class DryRunAccepted:
    """The server would take it."""


@dataclass(frozen=True, slots=True)
class DryRunRejected:
    """The server would not."""

    why: str


@dataclass(frozen=True, slots=True)
class DryRunSkipped:
    """Nobody asked the server."""

    why: str = ""
    """Empty if there is nothing to ask."""


Trial = DryRunAccepted | DryRunRejected | DryRunSkipped


@dataclass(frozen=True, slots=True)
class Evidence:
    """About one asset."""

    trial: Trial = DryRunSkipped()
    told: tuple[EventRecord, ...] | None = ()
    """What the autopilot has told of the object, the newest first; None: whoever asks may not read that."""


async def evidence(client: Client, survey: Survey, asset: Asset) -> dict[str, Evidence]:
    """Ask about the asset and the HyperConverged, for which all wait, with the rights of whoever wants to know."""
    told = await _told(client, survey)
    asked = {one.name: one for one in (asset, survey.view.catalog.assets[0])}
    return {
        name: Evidence(await _trial(client, survey, one), _about(told, survey.view.ref(one)))
        for name, one in asked.items()
    }


async def _trial(client: Client, survey: Survey, asset: Asset) -> Trial:
    intent, live = target_state(survey, asset).intent, survey.live(asset)
    if intent is None:
        return DryRunSkipped()
    ref = survey.view.ref(asset)
    for verb in ("patch",) if live else ("patch", "create"):
        if await lacking(client, verb, (ref,)):
            return DryRunSkipped(f"a dry run changes nothing, but needs the right to {verb} {ref}: you lack it")
    try:
        found = await preview(dry_run_client(client), intent, AUTOPILOT, live)
    except (Refused, RefusedIntent, ServerError) as error:  # the last also if a webhook does not answer
        return DryRunSkipped(str(error)) if is_leaving(error) else DryRunRejected(str(error))
    return DryRunSkipped(found.because) if isinstance(found, Stale) else DryRunAccepted()


async def _told(client: Client, survey: Survey) -> list[EventRecord] | None:
    by_us = Selection(survey.seen.hco.ref.key.namespace, fields=f"reportingController={REPORTER}")
    try:
        return await client.list(EVENT, by_us, EventRecord)
    except Forbidden:
        return None


def _about(told: Iterable[EventRecord] | None, ref: Ref) -> tuple[EventRecord, ...] | None:
    return None if told is None else timeline(one for one in told if str(one.about) == str(ref))
