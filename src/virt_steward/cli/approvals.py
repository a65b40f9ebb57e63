"""How a person approves the plan of a profile: see it, say yes, and follow what comes of it."""

from __future__ import annotations

import asyncio
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

import typer

from virt_steward.app import connected
from virt_steward.cli.output import CommandFailed, say
from virt_steward.cli.plans import item_lines, show
from virt_steward.controllers.advisor.follow import PlanFailed, follow
from virt_steward.controllers.advisor.observation import VirtPlatformConfig
from virt_steward.decisions.configs import config_ref
from virt_steward.decisions.outcomes import NotApproved
from virt_steward.decisions.plans import PlanApproved, approve_plan, reason_not_approvable
from virt_steward.kube.errors import NotFound

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import timedelta

    from virt_steward.kube.client import Client, Reader


@dataclass(frozen=True, slots=True)
class PlanApprovalRequest:
    profile: str
    plan_hash: str
    """The plan that was reviewed; empty: the one that is shown now."""
    comment: str
    is_sure: bool
    watch: bool
    patience: timedelta | None
    """For how long to watch; None: until the end."""


async def approved(asking: PlanApprovalRequest, kubeconfig: str | None, context: str | None) -> PlanApproved:
    """Raises NotDone if nothing was approved, or if it did not end well."""
    async with connected(kubeconfig, context) as client:
        plan_hash = await _agreed(client, asking)
        match await approve_plan(client, asking.profile, plan_hash, asking.comment):
            case NotApproved(profile, why):
                raise CommandFailed(f"{profile} is left alone: {why}")
            case PlanApproved() as done:
                say(f"approved plan {plan_hash} of {asking.profile}, as {done.user}")
        if asking.watch:
            await _carried_out(client, asking, plan_hash)
        return done


async def _agreed(client: Client, asking: PlanApprovalRequest) -> str:
    """Show the plan that waits. Answers its hash once nobody objects to it."""
    try:
        config = await client.get(config_ref(asking.profile), VirtPlatformConfig)
    except NotFound as error:
        raise CommandFailed(f"there is no VirtPlatformConfig {asking.profile}, so no plan waits: {error}") from None
    if why := reason_not_approvable(config):
        raise CommandFailed(f"{asking.profile} is left alone: {why}")
    found = config.status.plan_hash
    if asking.plan_hash not in ("", found):
        raise CommandFailed(
            f"{asking.profile} is left alone: the plan has changed, it is now {found}; look at it first"
        )
    show(_shown(config), err=True)
    if not asking.is_sure and sys.stdin.isatty() and not typer.confirm("Approve this plan?", err=True):
        raise CommandFailed(f"{asking.profile} is left alone, as you wish")
    return found


def _shown(config: VirtPlatformConfig) -> Iterator[str]:
    status = config.status
    yield from item_lines(status.items)
    back = "the way back, " if config.spec.action == "Rollback" else ""
    yield f"{config.metadata.name}: {back}impact {status.impact_severity}, plan {status.plan_hash}"


async def _carried_out(reader: Reader, asking: PlanApprovalRequest, plan_hash: str) -> None:
    patience = asking.patience
    try:
        async with asyncio.timeout(patience.total_seconds() if patience else None):
            ended = await follow(reader, asking.profile, plan_hash, say)
    except TimeoutError:
        raise CommandFailed(
            f"{asking.profile} is approved, but not done within {patience}; the advisor goes on"
        ) from None
    if isinstance(ended, PlanFailed):
        raise CommandFailed(f"{asking.profile} was approved, but {ended.why}")
