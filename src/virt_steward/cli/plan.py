"""`virt-steward plan`: what a profile would change on a cluster, with nothing of ours installed there."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from enum import StrEnum
from functools import partial
from typing import TYPE_CHECKING, Annotated

import msgspec
import typer

from virt_steward import logs
from virt_steward.app import connected
from virt_steward.cli import advisor_flags
from virt_steward.cli.arguments import (  # noqa: TC001 - typer reads annotations
    ContextOption,
    KubeconfigOption,
    ProfileArgument,
)
from virt_steward.cli.plans import manifests, plan_lines, show
from virt_steward.cli.profile_options import wished
from virt_steward.insight.plans import preview_plan, profile_named

if TYPE_CHECKING:
    from virt_steward.controllers.advisor.options import AdvisorOptions
    from virt_steward.insight.plans import PlannedChanges, PlanRequest

CHANGES = 2


class PlanFormat(StrEnum):
    """How a plan is printed."""

    DIFF = "diff"
    JSON = "json"
    MANIFESTS = "manifests"


def plan(
    *,
    profile: ProfileArgument,
    sets: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="NAME=VALUE", help="An option of the profile, as in spec.options; repeat it."),
    ] = None,
    hyperconverged: advisor_flags.HcoOption = advisor_flags.HCO,
    kubeconfig: KubeconfigOption = None,
    context: ContextOption = None,
    output: Annotated[
        PlanFormat, typer.Option("--output", "-o", help="Diffs, a JSON document, or the wanted objects as YAML.")
    ] = PlanFormat.DIFF,
) -> None:
    """Show what a profile would change and what that costs. Changes nothing.

    Ends with 0 if there is nothing to do, 2 if something would change, 1 if that cannot be told. Options that the
    cluster's VirtPlatformConfig of that name has are kept, as far as --set does not change them.
    """
    options = advisor_flags.asking(hyperconverged)
    profile_named(profile, options)  # before the words of --set are weighed
    found = asyncio.run(_asked(profile, partial(wished, profile, sets or ()), options, (kubeconfig, context)))
    match output:
        case PlanFormat.DIFF:
            show(plan_lines(found))
        case PlanFormat.JSON:
            typer.echo(msgspec.json.encode(found).decode())
        case PlanFormat.MANIFESTS:
            typer.echo(manifests(found), nl=False)
    if found.changes:
        raise typer.Exit(CHANGES)


async def _asked(
    profile: str, wish: PlanRequest, options: AdvisorOptions, cluster: tuple[str | None, str | None]
) -> PlannedChanges:
    logs.configure("auto", "error")  # what goes wrong on the way is part of the answer
    async with connected(*cluster) as client:
        return await preview_plan(client, profile, wish, options, datetime.now(UTC))
