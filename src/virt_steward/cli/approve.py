"""`virt-steward approve`: a person's decision, recorded where it takes effect."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperGroup

from virt_steward.app import connected
from virt_steward.cli import approvals
from virt_steward.cli.arguments import ContextOption, KubeconfigOption, PlanArgument, ProfileArgument, namespaced
from virt_steward.cli.output import CommandFailed, Output, OutputOption, answer, say
from virt_steward.controllers.approver.follow import InstallFailed, follow
from virt_steward.decisions.installplans import InstallPlanApproved, approve_manually
from virt_steward.decisions.outcomes import NotApproved
from virt_steward.objects.durations import BadDuration, parse_duration
from virt_steward.settings import BadSetting

if TYPE_CHECKING:
    from datetime import timedelta

    from virt_steward.kube.client import Reader
    from virt_steward.objects.identity import Key


class ProfileByDefault(TyperGroup):
    """`approve NAME` is short for `approve profile NAME`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if args and args[0] not in {*self.commands, *ctx.help_option_names}:
            args = ["profile", *args]
        return super().parse_args(ctx, args)


app = typer.Typer(
    name="approve",
    cls=ProfileByDefault,
    help="Approve something that waits for a person. `approve NAME` is short for `approve profile NAME`.",
    no_args_is_help=True,
)


@app.command()
def profile(
    *,
    profile: ProfileArgument,
    comment: Annotated[str, typer.Option(help="Why, for whoever reads the history later.")] = "",
    plan: Annotated[
        str, typer.Option(metavar="HASH", help="Approve only if this is the plan that waits, as reviewed before.")
    ] = "",
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask first, as is done on a terminal.")] = False,
    watch: Annotated[bool, typer.Option("--watch", help="Follow the rollout, and end as it ends.")] = False,
    timeout: Annotated[
        str, typer.Option(metavar="DURATION", help="How long --watch waits, such as 2h; by default until the end.")
    ] = "",
    kubeconfig: KubeconfigOption = None,
    context: ContextOption = None,
    output: OutputOption = Output.TEXT,
) -> None:
    """Approve the plan that a profile shows now, also one that leads back, and write on it who did so and why."""
    patience = duration(timeout) if timeout else None
    asking = approvals.PlanApprovalRequest(
        profile, plan.removeprefix("sha256:"), comment, is_sure=yes, watch=watch, patience=patience
    )
    done = asyncio.run(approvals.approved(asking, kubeconfig, context))
    answer(output, "it is carried out" if watch else "the advisor carries it out now", done)


@app.command()
def installplan(
    *,
    plan: PlanArgument,
    comment: Annotated[str, typer.Option(help="Why, for whoever reads the plan later.")] = "",
    wait: Annotated[bool, typer.Option("--wait", help="Return when the operators run or have failed.")] = False,
    timeout: Annotated[str, typer.Option(metavar="DURATION", help="How long --wait waits, such as 90s.")] = "10m",
    kubeconfig: KubeconfigOption = None,
    context: ContextOption = None,
    output: OutputOption = Output.TEXT,
) -> None:
    """Approve an InstallPlan by hand, whatever is pinned, and write on it who did so and why."""
    asking = InstallPlanApprovalRequest(namespaced(plan), comment, duration(timeout) if wait else None)
    done = asyncio.run(_approved(asking, kubeconfig, context))
    answer(output, "all its operators run" if wait else "OLM installs it now", done)


@dataclass(frozen=True, slots=True)
class InstallPlanApprovalRequest:
    plan: Key
    comment: str
    patience: timedelta | None
    """None: the approval is enough."""


async def _approved(
    asking: InstallPlanApprovalRequest, kubeconfig: str | None, context: str | None
) -> InstallPlanApproved:
    async with connected(kubeconfig, context) as client:
        match await approve_manually(client, asking.plan, asking.comment, datetime.now(UTC)):
            case NotApproved(plan, why):
                raise CommandFailed(f"InstallPlan {plan} is left alone: {why}")
            case InstallPlanApproved() as done:
                say(f"approved InstallPlan {done.plan} with {', '.join(done.csvs)}, as {done.user}")
        if asking.patience is not None:
            await _installed(client, asking.plan, done.csvs, asking.patience)
        return done


async def _installed(reader: Reader, plan: Key, csvs: tuple[str, ...], patience: timedelta) -> None:
    try:
        async with asyncio.timeout(patience.total_seconds()):
            ended = await follow(reader, plan, csvs, say)
    except TimeoutError:
        raise CommandFailed(
            f"InstallPlan {plan} is approved, but not installed within {patience}; OLM goes on"
        ) from None
    if isinstance(ended, InstallFailed):
        raise CommandFailed(f"InstallPlan {plan} is approved, but {ended.why}")


def duration(text: str) -> timedelta:
    try:
        return parse_duration(text)
    except BadDuration as error:
        raise BadSetting(f"--timeout: {error}") from None
