"""`virt-steward approve`: records who approves a plan, where the approval takes effect."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperGroup

from virt_steward.app import connected
from virt_steward.cli.arguments import (
    CommentOption,
    ContextOption,
    InstallPlanArgument,
    KubeconfigOption,
    ProfileArgument,
    YesOption,
    namespaced,
    require_consent,
)
from virt_steward.cli.output import CommandFailed, Output, OutputOption, answer, say, show
from virt_steward.cli.plan import item_lines
from virt_steward.cli.watch import duration, follow_plan
from virt_steward.controllers.advisor.follow import progress
from virt_steward.controllers.advisor.observation import VirtPlatformConfig
from virt_steward.controllers.approver import follow as install_progress
from virt_steward.decisions.configs import config_ref
from virt_steward.decisions.installplans import (
    InstallPlanApproved,
    ReviewedPlan,
    approve_as_read,
    approve_manually,
    read_plan,
)
from virt_steward.decisions.installplans import reason_not_approvable as reason_not_installable
from virt_steward.decisions.outcomes import NotApproved
from virt_steward.decisions.plans import SHORT_HASH, PlanApproved, approve_plan, is_hash_of, reason_not_approvable
from virt_steward.kube.errors import NotFound
from virt_steward.settings import names_in

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import timedelta

    from virt_steward.kube.client import Client, Reader
    from virt_steward.objects.identity import Key


NOTHING_REVIEWED = ReviewedPlan(None, None)


class ProfileByDefault(TyperGroup):
    """`approve NAME` is short for `approve profile NAME`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if args and args[0] not in {*self.commands, *ctx.help_option_names}:
            args = ["profile", *args]
        return super().parse_args(ctx, args)


app = typer.Typer(
    name="approve",
    cls=ProfileByDefault,
    help="Approve a pending plan.\n\n`approve NAME` is short for `approve profile NAME`.",
    no_args_is_help=True,
)


@dataclass(frozen=True, slots=True)
class PlanApprovalRequest:
    profile: str
    plan_hash: str
    """The plan that was reviewed; empty for the pending one."""
    comment: str
    is_confirmed: bool
    watch: bool
    timeout: timedelta | None
    """How long to watch; None for no limit."""


@dataclass(frozen=True, slots=True)
class InstallPlanApprovalRequest:
    plan: Key
    reviewed: ReviewedPlan
    comment: str
    is_confirmed: bool
    timeout: timedelta | None
    """How long to wait for the operators; None to return after the approval."""


@app.command()
def profile(
    *,
    profile: ProfileArgument,
    comment: CommentOption = "",
    plan: Annotated[
        str,
        typer.Option(
            metavar="HASH",
            help="Approve without asking if the pending plan has this hash, as reviewed before;"
            f" its first {SHORT_HASH} characters will do.",
        ),
    ] = "",
    yes: YesOption = False,
    watch: Annotated[bool, typer.Option("--watch", help="Follow the rollout; fail if it fails.")] = False,
    timeout: Annotated[
        str, typer.Option(metavar="DURATION", help="Limit of --watch, such as 2h; by default there is none.")
    ] = "",
    kubeconfig: KubeconfigOption = None,
    context: ContextOption = None,
    output: OutputOption = Output.TEXT,
) -> None:
    """Approve the pending plan of a profile.

    The plan is shown first. The approval records who approved it and why. Plans that roll back are approved the same
    way.
    """
    request = PlanApprovalRequest(
        profile,
        plan.removeprefix("sha256:"),
        comment,
        is_confirmed=yes,
        watch=watch,
        timeout=duration(timeout) if timeout else None,
    )
    approval = asyncio.run(_approve_profile(request, kubeconfig, context))
    answer(output, "Plan completed" if watch else f"Approved; {approval.start}", approval)


@app.command()
def installplan(
    *,
    plan: InstallPlanArgument,
    comment: CommentOption = "",
    uid: Annotated[
        str | None,
        typer.Option(
            metavar="UID", help="Approve without asking if this is its uid, as reviewed; explain -o json prints it."
        ),
    ] = None,
    csvs: Annotated[
        str | None,
        typer.Option(
            metavar="NAME[,NAME]", help="Approve without asking if it has exactly these ClusterServiceVersions."
        ),
    ] = None,
    yes: YesOption = False,
    wait: Annotated[bool, typer.Option("--wait", help="Return when the operators run or have failed.")] = False,
    timeout: Annotated[str, typer.Option(metavar="DURATION", help="Limit of --wait, such as 90s.")] = "10m",
    kubeconfig: KubeconfigOption = None,
    context: ContextOption = None,
    output: OutputOption = Output.TEXT,
) -> None:
    """Approve an InstallPlan manually, whatever is pinned.

    Its operators are shown first, and exactly these are approved. The InstallPlan records who approved it and why.
    """
    reviewed = ReviewedPlan(uid, None if csvs is None else names_in(csvs))
    limit = duration(timeout) if wait else None
    request = InstallPlanApprovalRequest(namespaced(plan), reviewed, comment, is_confirmed=yes, timeout=limit)
    approval = asyncio.run(_approve_install_plan(request, kubeconfig, context))
    answer(output, "All its operators run" if wait else "Approved; OLM installs it now", approval)


async def _approve_profile(request: PlanApprovalRequest, kubeconfig: str | None, context: str | None) -> PlanApproved:
    async with connected(kubeconfig, context) as client:
        plan_hash = await _confirm(client, request)
        match await approve_plan(client, request.profile, plan_hash, request.comment, datetime.now(UTC)):
            case NotApproved(_, why):
                raise CommandFailed(not_approved(why))
            case PlanApproved() as approval:
                say(f"Approved plan {plan_hash} of {request.profile} as {approval.user}")
        if request.watch:
            judge = partial(progress, plan_hash=plan_hash)
            await follow_plan(client, request.profile, judge, request.timeout, "approved, but ")
        return approval


async def _confirm(client: Client, request: PlanApprovalRequest) -> str:
    """Show the pending plan and ask for confirmation. Answers its hash. Raises CommandFailed."""
    try:
        config = await client.get(config_ref(request.profile), VirtPlatformConfig)
    except NotFound as error:
        raise CommandFailed(not_approved(f"VirtPlatformConfig {request.profile} not found: {error}")) from None
    if why := reason_not_approvable(config):
        raise CommandFailed(not_approved(why))
    pending = config.status.plan_hash
    if request.plan_hash and not is_hash_of(request.plan_hash, pending):
        raise CommandFailed(not_approved(f"the pending plan is now {pending}; review it first"))
    show(_plan_lines(config), err=True)
    is_given = request.is_confirmed or bool(request.plan_hash)
    require_consent("Approve this plan?", is_given=is_given, binding=f"--plan {pending[:SHORT_HASH]}")
    return pending


def not_approved(why: str) -> str:
    return f"Nothing to approve: {why}"


def _plan_lines(config: VirtPlatformConfig) -> Iterator[str]:
    status = config.status
    yield from item_lines(status.items)
    rollback = "rollback, " if config.spec.action == "Rollback" else ""
    yield f"{config.metadata.name}: {rollback}impact {status.impact_severity}, plan {status.plan_hash}"


async def _approve_install_plan(
    request: InstallPlanApprovalRequest, kubeconfig: str | None, context: str | None
) -> InstallPlanApproved:
    async with connected(kubeconfig, context) as client:
        match await _approve_shown_plan(client, request):
            case NotApproved(plan, why):
                raise CommandFailed(f"InstallPlan {plan} was not approved: {why}")
            case InstallPlanApproved() as approval:
                say(f"Approved InstallPlan {approval.plan} with {', '.join(approval.csvs)} as {approval.user}")
        if request.timeout is not None:
            await _wait_for_operators(client, request.plan, approval.csvs, request.timeout)
        return approval


async def _approve_shown_plan(client: Client, request: InstallPlanApprovalRequest) -> InstallPlanApproved | NotApproved:
    """Show the plan and ask for confirmation, then approve that and no other. Raises CommandFailed."""
    plan = await read_plan(client, request.plan)
    if why := request.reviewed.difference(plan) or reason_not_installable(plan):
        return NotApproved(str(request.plan), why)
    say(f"InstallPlan {request.plan}, uid {plan.metadata.uid}: {', '.join(plan.csvs) or 'no operators'}")
    if request.is_confirmed or request.reviewed != NOTHING_REVIEWED:
        return await approve_as_read(client, plan, request.comment, datetime.now(UTC))
    require_consent("Approve this InstallPlan?", is_given=False, binding=f"--uid {plan.metadata.uid}")
    shown = ReviewedPlan(plan.metadata.uid, plan.csvs)  # read again: it may have changed in harmless ways
    return await approve_manually(client, request.plan, shown, request.comment, datetime.now(UTC))


async def _wait_for_operators(reader: Reader, plan: Key, csvs: tuple[str, ...], timeout: timedelta) -> None:  # noqa: ASYNC109 - for a message, too
    try:
        async with asyncio.timeout(timeout.total_seconds()):
            ended = await install_progress.follow(reader, plan, csvs, say)
    except TimeoutError:
        raise CommandFailed(
            f"InstallPlan {plan} is approved, but not installed within {timeout}; OLM continues"
        ) from None
    if isinstance(ended, install_progress.InstallFailed):
        raise CommandFailed(f"InstallPlan {plan} is approved, but {ended.why}")
