"""`virt-steward approve`: records who approves plans, where the approvals take effect."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, Protocol

import typer
from typer.core import TyperGroup

from virt_steward.app import connected
from virt_steward.cli import approver_flags, completion, hold_flags
from virt_steward.cli.arguments import (
    CommentOption,
    ContextOption,
    KubeconfigOption,
    ProfilesArgument,
    YesOption,
    namespaced,
    require_consent,
)
from virt_steward.cli.decision_results import DecisionResult, answer_decisions
from virt_steward.cli.output import CommandFailed, Output, OutputOption, say, show
from virt_steward.cli.plan import item_lines
from virt_steward.cli.watch import duration, follow_plan
from virt_steward.controllers.advisor.follow import progress
from virt_steward.controllers.approver import follow as install_progress
from virt_steward.decisions.configs import read_config
from virt_steward.decisions.installplans import InstallPlanApproved, ReviewedPlan, approve_manually, read_plan
from virt_steward.decisions.installplans import reason_not_approvable as reason_not_installable
from virt_steward.decisions.outcomes import NotApproved
from virt_steward.decisions.plans import SHORT_HASH, PlanApproved, approve_plan, is_hash_of, reason_not_approvable
from virt_steward.kube.errors import KubeError, NotFound
from virt_steward.runtime.access import NAMESPACE
from virt_steward.settings import names_in

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from datetime import timedelta

    from virt_steward.cli.arguments import ClusterChoice
    from virt_steward.cli.hold_flags import FreezeRequest
    from virt_steward.controllers.advisor.observation import VirtPlatformConfig
    from virt_steward.kube.client import Client, Reader
    from virt_steward.objects.identity import Key


class KindByName(TyperGroup):
    """`approve NAME` is short for `approve profile NAME`, `approve NAMESPACE/NAME` for `approve installplan`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if args and args[0] not in {*self.commands, *ctx.help_option_names}:
            args = ["installplan" if "/" in args[0] else "profile", *args]
        return super().parse_args(ctx, args)


app = typer.Typer(
    name="approve",
    cls=KindByName,
    help="Approve pending plans.\n\n`approve NAME` is short for `approve profile NAME`, and `approve NAMESPACE/NAME`"
    " for `approve installplan NAMESPACE/NAME`.",
    no_args_is_help=True,
)


class Approvable(Protocol):
    """Something that a command shows, and approves as it was shown."""

    name: str

    async def review(self, client: Client) -> str:
        """Read and show it, and return the option that names what was shown. Raises CommandFailed."""
        ...

    async def approve(self, client: Client) -> PlanApproved | InstallPlanApproved | NotApproved:
        """Approve what was shown, and nothing else."""
        ...


@dataclass(slots=True)
class ProfilePlan:
    """The pending plan of a profile."""

    name: str
    hashes: tuple[str, ...]
    """The plans that were reviewed before; none: whichever is pending."""
    comment: str
    freeze: FreezeRequest
    shown: str = ""
    """The hash of the plan that was shown."""

    async def review(self, client: Client) -> str:
        try:
            config = await read_config(client, self.name)
        except NotFound as error:
            raise CommandFailed(f"Nothing to approve: VirtPlatformConfig {self.name} not found: {error}") from None
        if why := reason_not_approvable(config, overrides_freeze=self.freeze.overrides):
            raise CommandFailed(f"Nothing to approve: {why}")
        pending = config.status.plan_hash
        if self.hashes and not any(is_hash_of(one, pending) for one in self.hashes):
            raise CommandFailed(f"Nothing to approve: the pending plan is now {pending}; review it first")
        show(_plan_lines(config), err=True)
        self.shown = pending
        return f"--plan {pending[:SHORT_HASH]}"

    async def approve(self, client: Client) -> PlanApproved | NotApproved:
        terms = await self.freeze.terms(client, "advisor")
        return await approve_plan(client, self.name, self.shown, self.comment, datetime.now(UTC), terms)


@dataclass(slots=True)
class PendingInstallation:
    """An InstallPlan."""

    name: str
    key: Key
    reviewed: ReviewedPlan
    comment: str
    freeze: FreezeRequest

    async def review(self, client: Client) -> str:
        plan = await read_plan(client, self.key)
        if why := self.reviewed.difference(plan) or reason_not_installable(plan):
            raise CommandFailed(f"Not approved: {why}")
        say(f"InstallPlan {self.key}, uid {plan.metadata.uid}: {', '.join(plan.csvs) or 'no operators'}")
        self.reviewed = ReviewedPlan(plan.metadata.uid, plan.csvs)
        return f"--uid {plan.metadata.uid}"

    async def approve(self, client: Client) -> InstallPlanApproved | NotApproved:
        """Read it again: it may have changed in harmless ways."""
        terms = await self.freeze.terms(client, "approver")
        return await approve_manually(client, self.key, self.reviewed, self.comment, datetime.now(UTC), terms)


@app.command()
def profile(
    *,
    names: ProfilesArgument,
    comment: CommentOption = "",
    plan: Annotated[
        list[str] | None,
        typer.Option(
            metavar="HASH",
            help="Approve without asking if the pending plan has this hash, as reviewed before; once for each profile."
            f" The first {SHORT_HASH} characters will do.",
        ),
    ] = None,
    yes: YesOption = False,
    override_freeze: hold_flags.OverrideOption = False,
    namespace: approver_flags.InstallationOption = NAMESPACE,
    watch: Annotated[bool, typer.Option("--watch", help="Follow the rollouts; fail if one fails.")] = False,
    timeout: Annotated[
        str, typer.Option(metavar="DURATION", help="Limit of --watch, such as 2h; by default there is none.")
    ] = "",
    kubeconfig: KubeconfigOption = None,
    context: ContextOption = None,
    output: OutputOption = Output.TEXT,
) -> None:
    """Approve the pending plans of profiles.

    The plans are shown first. The approval records who approved them and why. Plans that roll back are approved the
    same way. Exit code 0 if all of them were approved (with --watch: and completed), else 1.
    """
    hashes = tuple(one.removeprefix("sha256:") for one in plan or ())
    limit = duration(timeout) if timeout else None
    freeze = hold_flags.freeze_request(namespace, comment, override=override_freeze)
    subjects = [ProfilePlan(name, hashes, comment, freeze) for name in names]
    consent = yes or bool(hashes)
    results = asyncio.run(_approve_all(subjects, _Follow(watch, limit), (kubeconfig, context), is_confirmed=consent))
    answer_decisions(output, results)


@app.command()
def installplan(
    *,
    plans: Annotated[
        list[str],
        typer.Argument(metavar="NAMESPACE/NAME...", help="InstallPlans.", autocompletion=completion.install_plans),
    ],
    comment: CommentOption = "",
    uid: Annotated[
        list[str] | None,
        typer.Option(
            metavar="UID",
            help="Approve without asking if this is its uid, as reviewed; once for each InstallPlan, in the same order."
            " `explain -o json` prints it.",
        ),
    ] = None,
    csvs: Annotated[
        str | None,
        typer.Option(
            metavar="NAME[,NAME]", help="Approve without asking if each has exactly these ClusterServiceVersions."
        ),
    ] = None,
    yes: YesOption = False,
    override_freeze: hold_flags.OverrideOption = False,
    namespace: approver_flags.InstallationOption = NAMESPACE,
    wait: Annotated[bool, typer.Option("--wait", help="Return when the operators run or have failed.")] = False,
    timeout: Annotated[str, typer.Option(metavar="DURATION", help="Limit of --wait, such as 90s.")] = "10m",
    kubeconfig: KubeconfigOption = None,
    context: ContextOption = None,
    output: OutputOption = Output.TEXT,
) -> None:
    """Approve InstallPlans manually, whatever is pinned.

    Their operators are shown first, and exactly these are approved. Each InstallPlan records who approved it and why.
    Exit code 0 if all of them were approved (with --wait: and their operators run), else 1.
    """
    if uid and len(uid) != len(plans):
        raise CommandFailed("--uid is the uid of one InstallPlan: give it once for each, in the same order")
    operators = None if csvs is None else names_in(csvs)
    freeze = hold_flags.freeze_request(namespace, comment, override=override_freeze)
    subjects = [
        PendingInstallation(name, namespaced(name), ReviewedPlan(one, operators), comment, freeze)
        for name, one in zip(plans, uid or (None,) * len(plans), strict=True)
    ]
    consent = yes or bool(uid) or csvs is not None
    follow = _Follow(wait, duration(timeout))
    results = asyncio.run(_approve_all(subjects, follow, (kubeconfig, context), is_confirmed=consent))
    answer_decisions(output, results)


@dataclass(frozen=True, slots=True)
class _Follow:
    """Whether to follow what was approved, and how long at most; None for no limit."""

    wanted: bool
    limit: timedelta | None


async def _approve_all(
    subjects: Sequence[Approvable], follow: _Follow, cluster: ClusterChoice, *, is_confirmed: bool
) -> list[DecisionResult]:
    """Show all of them, ask once, and approve each as it was shown. What one refuses does not concern the others."""
    async with connected(*cluster) as client:
        refused, shown = {}, {}
        for subject in subjects:
            try:
                shown[subject.name] = await subject.review(client)
            except (CommandFailed, KubeError) as error:
                refused[subject.name] = DecisionResult(subject.name, decided=False, message=str(error))
        if shown:
            question = "Approve this plan?" if len(shown) == 1 else f"Approve these {len(shown)} plans?"
            require_consent(question, is_given=is_confirmed, binding=" ".join(shown.values()))
        results = {one.name: await _approve(client, one) for one in subjects if one.name in shown}
        if follow.wanted:
            results = {name: await _followed(client, one, follow.limit) for name, one in results.items()}
        return [(refused | results)[subject.name] for subject in subjects]


async def _approve(client: Client, subject: Approvable) -> DecisionResult:
    try:
        outcome = await subject.approve(client)
    except KubeError as error:
        return DecisionResult(subject.name, decided=False, message=f"Not approved: {error}")
    match outcome:
        case NotApproved(_, why):
            return DecisionResult(subject.name, decided=False, message=f"Not approved: {why}")
        case PlanApproved(_, plan_hash, _, user):
            say(f"Approved plan {plan_hash} of {subject.name} as {user}")
            message = f"Approved; {outcome.start}"
        case InstallPlanApproved(plan, csvs, user):
            say(f"Approved InstallPlan {plan} with {', '.join(csvs)} as {user}")
            message = f"Approved; {outcome.next}"
    return DecisionResult(subject.name, True, message, outcome.user, outcome.comment, outcome)


async def _followed(client: Client, result: DecisionResult, limit: timedelta | None) -> DecisionResult:
    """The result after the plan has ended: an approved plan that fails is a failure of the command."""
    try:
        match result.details:
            case PlanApproved(missing=missing) | InstallPlanApproved(missing=missing) if missing:
                return result  # nothing starts before others approve it, too
            case PlanApproved(profile, plan_hash):
                judge = partial(progress, plan_hash=plan_hash)
                await follow_plan(client, profile, judge, limit, "approved, but ")
                return replace(result, message="Plan completed")
            case InstallPlanApproved(csvs=csvs) if limit:
                await _wait_for_operators(client, namespaced(result.subject), csvs, limit)
                return replace(result, message="All its operators run")
    except CommandFailed as failure:
        return replace(result, decided=False, message=str(failure).removeprefix(f"{result.subject}: "))
    return result


def _plan_lines(config: VirtPlatformConfig) -> Iterator[str]:
    status = config.status
    yield from item_lines(status.items)
    rollback = "rollback, " if config.spec.action == "Rollback" else ""
    yield f"{config.metadata.name}: {rollback}impact {status.impact_severity}, plan {status.plan_hash}"


async def _wait_for_operators(reader: Reader, plan: Key, csvs: tuple[str, ...], timeout: timedelta) -> None:  # noqa: ASYNC109 - for a message, too
    try:
        async with asyncio.timeout(timeout.total_seconds()):
            ended = await install_progress.follow(reader, plan, csvs, say)
    except TimeoutError:
        raise CommandFailed(f"approved, but not installed within {timeout}; OLM continues") from None
    if isinstance(ended, install_progress.InstallFailed):
        raise CommandFailed(f"approved, but {ended.why}")
