"""`virt-steward approve`: a person's decision, recorded where it takes effect."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

import typer

from virt_steward.app import connected
from virt_steward.cli.arguments import ContextOption, KubeconfigOption, PlanArgument, namespaced
from virt_steward.cli.output import NotDone, Output, OutputOption, answer
from virt_steward.controllers.approver.by_hand import ByHand, NotNow, approve_by_hand
from virt_steward.controllers.approver.follow import Failed, follow
from virt_steward.objects.durations import BadDuration, parse_duration
from virt_steward.settings import BadSetting

if TYPE_CHECKING:
    from datetime import timedelta

    from virt_steward.kube.client import Reader
    from virt_steward.objects.identity import Key

app = typer.Typer(name="approve", help="Approve something that waits for a person.", no_args_is_help=True)


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
    asking = Asking(namespaced(plan), comment, _duration(timeout) if wait else None)
    done = asyncio.run(_approved(asking, kubeconfig, context))
    answer(output, "all its operators run" if wait else "OLM installs it now", done)


@dataclass(frozen=True, slots=True)
class Asking:
    plan: Key
    comment: str
    patience: timedelta | None
    """None: the approval is enough."""


async def _approved(asking: Asking, kubeconfig: str | None, context: str | None) -> ByHand:
    async with connected(kubeconfig, context) as client:
        match await approve_by_hand(client, asking.plan, asking.comment, datetime.now(UTC)):
            case NotNow(plan, why):
                raise NotDone(f"InstallPlan {plan} is left alone: {why}")
            case ByHand() as done:
                _say(f"approved InstallPlan {done.plan} with {', '.join(done.csvs)}, as {done.user}")
        if asking.patience is not None:
            await _installed(client, asking.plan, done.csvs, asking.patience)
        return done


async def _installed(reader: Reader, plan: Key, csvs: tuple[str, ...], patience: timedelta) -> None:
    try:
        async with asyncio.timeout(patience.total_seconds()):
            ended = await follow(reader, plan, csvs, _say)
    except TimeoutError:
        raise NotDone(f"InstallPlan {plan} is approved, but not installed within {patience}; OLM goes on") from None
    if isinstance(ended, Failed):
        raise NotDone(f"InstallPlan {plan} is approved, but {ended.why}")


def _say(line: str) -> None:
    """Progress is for people, and not part of the answer."""
    typer.echo(line, err=True)


def _duration(text: str) -> timedelta:
    try:
        return parse_duration(text)
    except BadDuration as error:
        raise BadSetting(f"--timeout: {error}") from None
