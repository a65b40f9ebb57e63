"""`virt-steward watch`: follows the plan of a profile, at any time, until it has ended."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Annotated

import typer

from virt_steward.cli.arguments import ContextOption, KubeconfigOption, ProfileArgument, quiet_reader
from virt_steward.cli.output import CommandFailed, Output, OutputOption, answer, say
from virt_steward.controllers.advisor.follow import PlanFailed, follow, progress_of_any
from virt_steward.objects.document import JsonDocument
from virt_steward.objects.durations import BadDuration, parse_duration
from virt_steward.settings import BadSetting

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import timedelta

    from virt_steward.controllers.advisor.follow import Progress
    from virt_steward.controllers.advisor.observation import VirtPlatformConfig
    from virt_steward.kube.client import Reader


class WatchDocument(JsonDocument, frozen=True):
    """The answer of `virt-steward watch`."""

    profile: str
    phase: str


def watch(
    *,
    profile: ProfileArgument,
    timeout: Annotated[
        str, typer.Option(metavar="DURATION", help="How long to watch, such as 2h; by default there is no limit.")
    ] = "",
    kubeconfig: KubeconfigOption = None,
    context: ContextOption = None,
    output: OutputOption = Output.TEXT,
) -> None:
    """Follow the plan of a profile until it has ended.

    A plan that is in review is followed too, no matter who approves it. Exit code 0 if it is completed, 1 if it
    has failed or the time is up. Nothing is changed, and Ctrl-C ends the command only.
    """
    limit = duration(timeout) if timeout else None
    asyncio.run(_watch(profile, limit, kubeconfig, context))
    answer(output, "Plan completed", WatchDocument(profile, "Completed"))


async def _watch(profile: str, limit: timedelta | None, kubeconfig: str | None, context: str | None) -> None:
    async with quiet_reader(kubeconfig, context) as reader:
        await follow_plan(reader, profile, progress_of_any, limit)


async def follow_plan(
    reader: Reader,
    profile: str,
    judge: Callable[[VirtPlatformConfig | None], Progress],
    limit: timedelta | None,
    before: str = "",
) -> None:
    """Print each change until the plan is completed. Raises CommandFailed if it fails or the time is up.

    `before` is what the command has done already, which a failure has to say.
    """
    try:
        async with asyncio.timeout(limit.total_seconds() if limit else None):
            ended = await follow(reader, profile, judge, say)
    except TimeoutError:
        raise CommandFailed(f"{profile}: {before}not completed within {limit}; the advisor continues") from None
    if isinstance(ended, PlanFailed):
        raise CommandFailed(f"{profile}: {before}{ended.why}")


def duration(text: str) -> timedelta:
    try:
        return parse_duration(text)
    except BadDuration as error:
        raise BadSetting(f"--timeout: {error}") from None
