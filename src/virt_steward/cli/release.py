"""`virt-steward release`: lets the autopilot write staged changes, after it has shown what they change."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

import typer

from virt_steward.catalog.load import load
from virt_steward.cli import advisor_flags, approver_flags, autopilot_flags, completion, hold_flags
from virt_steward.cli.arguments import (
    CommentOption,
    ContextOption,
    KubeconfigOption,
    YesOption,
    quiet_client,
    require_consent,
)
from virt_steward.cli.decision_results import DecisionResult, answer_decisions
from virt_steward.cli.output import CommandFailed, Output, OutputOption, say, wrapped
from virt_steward.controllers.autopilot.overrides.scope import Activation
from virt_steward.controllers.autopilot.rollouts.staged import Occasion
from virt_steward.decisions.outcomes import Decided
from virt_steward.decisions.rollouts import release as release_changes
from virt_steward.decisions.signatures import sign
from virt_steward.insight.assets.explain import find_asset
from virt_steward.insight.assets.staged import StagedAsset, review_staged
from virt_steward.insight.assets.survey import survey
from virt_steward.kube.client import Reader
from virt_steward.plans.blast_radius import take_census
from virt_steward.runtime.access import NAMESPACE

if TYPE_CHECKING:
    from collections.abc import Iterator

    from virt_steward.cli.arguments import ClusterChoice
    from virt_steward.controllers.autopilot.options import AutopilotOptions


def release(
    *,
    assets: Annotated[
        list[str],
        typer.Argument(metavar="ASSET...", help="Assets with staged changes.", autocompletion=completion.assets),
    ],
    comment: CommentOption = "",
    ids: Annotated[
        list[str] | None,
        typer.Option(
            "--id", metavar="ID", help="Release without asking if the staged change has this id; once for each asset."
        ),
    ] = None,
    yes: YesOption = False,
    override_freeze: hold_flags.OverrideOption = False,
    namespace: approver_flags.InstallationOption = NAMESPACE,
    hyperconverged: advisor_flags.HcoOption = advisor_flags.HCO,
    activation: autopilot_flags.ActivationOption = Activation.OPT_IN,
    kubeconfig: KubeconfigOption = None,
    context: ContextOption = None,
    output: OutputOption = Output.TEXT,
) -> None:
    """Release staged changes of the autopilot.

    The autopilot writes them now. What changes is shown first, and which nodes reboot. Other staged changes of the same
    pools whose policy is coalesce are written along, so that each node reboots once. All of them are released, or none.
    Exit code 0 if they were, else 1.
    """
    for name in assets:
        find_asset(load(), name)  # an unknown name is reported without connecting to the cluster
    options = autopilot_flags.options(hyperconverged, activation, namespace)
    freeze = hold_flags.freeze_request(namespace, comment, override=override_freeze)
    request = _ReleaseRequest(tuple(assets), tuple(ids or ()), comment, freeze, is_confirmed=yes or bool(ids))
    answer_decisions(output, asyncio.run(_release(request, options, (kubeconfig, context))))


@dataclass(frozen=True, slots=True)
class _ReleaseRequest:
    assets: tuple[str, ...]
    ids: tuple[str, ...]
    """The changes that were reviewed before; none: whichever are staged."""
    comment: str
    freeze: hold_flags.FreezeRequest
    is_confirmed: bool


async def _release(request: _ReleaseRequest, options: AutopilotOptions, cluster: ClusterChoice) -> list[DecisionResult]:
    async with quiet_client(*cluster) as client:
        found = await _review(Reader(client.connection, client.discovery), options, request.assets)
        for name, one in zip(request.assets, found, strict=True):
            if request.ids and one.id not in request.ids:
                raise CommandFailed(f"the staged change of {name} is now {one.id}; review it first")
        for line in (line for one in found for line in _lines(one)):
            say(line)
        binding = " ".join(f"--id {one.id}" for one in found)
        require_consent("Release?", is_given=request.is_confirmed, binding=binding)
        signature = await sign(client, request.comment, datetime.now(UTC))
        terms = await request.freeze.terms(client, "autopilot")
        outcome = await release_changes(client, options.hco, [one.id for one in found], signature, terms)
        if not isinstance(outcome, Decided):
            raise CommandFailed(outcome.reason)
        return [
            DecisionResult(name, True, outcome.message, signature.user, signature.comment, one)
            for name, one in zip(request.assets, found, strict=True)
        ]


async def _review(reader: Reader, options: AutopilotOptions, names: tuple[str, ...]) -> tuple[StagedAsset, ...]:
    seen = await survey(reader, load(), options, datetime.now(UTC))
    census = await take_census(reader)
    found = []
    for name in names:
        asset = find_asset(seen.view.catalog, name)
        staged = review_staged(seen.view, asset, seen.decision(asset), seen.now, census)
        if staged is None:
            raise CommandFailed(f"Nothing to release: no change of {name} is staged")
        found.append(staged)
    return tuple(found)


def _lines(found: StagedAsset) -> Iterator[str]:
    yield from wrapped(f"{found.object}: {found.occasion}, staged since {found.since}: {found.message}", hanging="  ")
    yield from staged_lines(found)
    yield f"  id: {found.id}"


def staged_lines(found: StagedAsset) -> Iterator[str]:
    """Print what a staged change would change, and which nodes reboot."""
    if found.occasion != Occasion.DELETE:
        yield "  the object is created:" if found.creates else "  changes:"
    for field in found.fields:
        yield from wrapped(field.assignment if found.creates else str(field), "    ", "      ")
    if found.more_fields:
        yield f"    and {found.more_fields} more fields"
    for obsolete in found.deleted:
        yield f"  {obsolete} is deleted: it is obsolete"
    yield from wrapped(f"impact: {found.impact}", "  ", "    ")
