"""`virt-steward reject`, `rollback`, `replan`, `resume` and `choose`: decisions of a person, as in the console."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from virt_steward.catalog.load import load
from virt_steward.cli import advisor_flags
from virt_steward.cli.arguments import (
    CommentOption,
    ContextOption,
    KubeconfigOption,
    MachineArgument,
    namespaced,
    quiet_client,
)
from virt_steward.cli.output import CommandFailed, Output, OutputOption, answer
from virt_steward.controllers.autopilot.watches import ref_of_asset
from virt_steward.decisions import assets, machines, plans, profiles
from virt_steward.decisions.configs import read_config
from virt_steward.decisions.outcomes import Decided, NotDecided
from virt_steward.insight.assets.explain import find_asset
from virt_steward.kube.errors import KubeError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from virt_steward.decisions.outcomes import Outcome
    from virt_steward.kube.client import Client

ProfilesArgument = Annotated[list[str], typer.Argument(metavar="PROFILE...", help="Names of profiles.")]


@dataclass(frozen=True, slots=True)
class DecisionResult:
    """What came of a decision about one object."""

    subject: str
    decided: bool
    message: str


def reject(
    *,
    names: ProfilesArgument,
    comment: CommentOption = "",
    plan: Annotated[
        str,
        typer.Option(metavar="HASH", help="Reject only the plan with this hash, as reviewed; with one profile only."),
    ] = "",
    kubeconfig: KubeconfigOption = None,
    context: ContextOption = None,
    output: OutputOption = Output.TEXT,
) -> None:
    """Reject the pending plans of profiles.

    Applied changes stay. A profile that never applied anything becomes inactive (action Ignore). Exit code 1 if one of
    them was not rejected.
    """
    if plan and len(names) > 1:
        raise CommandFailed("--plan is the hash of one plan: name one profile")

    async def decide(client: Client, name: str) -> Outcome:
        pending = (await read_config(client, name)).status.plan_hash
        if plan and not plans.is_hash_of(plan.removeprefix("sha256:"), pending):
            return NotDecided("Not rejected", f"The pending plan is now {pending}; review it first.")
        return await plans.reject_plan(client, name, pending, comment)

    _answer(output, asyncio.run(_decide_all(names, decide, kubeconfig, context)))


def rollback(
    *,
    names: ProfilesArgument,
    cancel: Annotated[
        bool, typer.Option("--cancel", help="Cancel a rollback; what was rolled back already is planned again.")
    ] = False,
    kubeconfig: KubeconfigOption = None,
    context: ContextOption = None,
    output: OutputOption = Output.TEXT,
) -> None:
    """Ask for rollback plans of profiles.

    A rollback plan restores what was there before the first plan. Nothing changes until somebody approves it.
    """
    decide = profiles.cancel_rollback if cancel else profiles.roll_back
    _answer(output, asyncio.run(_decide_all(names, decide, kubeconfig, context)))


def replan(
    *,
    names: ProfilesArgument,
    kubeconfig: KubeconfigOption = None,
    context: ContextOption = None,
    output: OutputOption = Output.TEXT,
) -> None:
    """Ask for new plans of profiles.

    The new plan goes in the same direction: forward, or back if a rollback was asked for. Nothing changes until
    somebody approves it.
    """
    _answer(output, asyncio.run(_decide_all(names, profiles.replan, kubeconfig, context)))


def resume(
    *,
    names: Annotated[list[str], typer.Argument(metavar="ASSET...", help="Assets whose objects are paused.")],
    hyperconverged: advisor_flags.HcoOption = advisor_flags.HCO,
    kubeconfig: KubeconfigOption = None,
    context: ContextOption = None,
    output: OutputOption = Output.TEXT,
) -> None:
    """Resume objects that the autopilot has paused.

    It pauses an object that another manager changes again and again; `explain asset` shows which one. Decide first who
    owns the object, or it is paused again.
    """
    hco = advisor_flags.hco(hyperconverged)
    refs = {name: ref_of_asset(find_asset(load(), name), hco) for name in names}

    async def decide(client: Client, name: str) -> Outcome:
        return await assets.resume(client, refs[name])

    _answer(output, asyncio.run(_decide_all(names, decide, kubeconfig, context)))


def choose(
    *,
    machine: MachineArgument,
    cluster: Annotated[str, typer.Argument(metavar="CLUSTER", help="Name of its KubevirtConfig.")],
    kubeconfig: KubeconfigOption = None,
    context: ContextOption = None,
    output: OutputOption = Output.TEXT,
) -> None:
    """Choose the cluster of a Machine that has none.

    The choice counts before every placement rule. `explain machine` shows the clusters and what is known of them.
    """
    key = namespaced(machine)

    async def decide(client: Client, _name: str) -> Outcome:
        return await machines.choose_cluster(client, key, cluster)

    _answer(output, asyncio.run(_decide_all([machine], decide, kubeconfig, context)))


async def _decide_all(
    names: Sequence[str],
    decide: Callable[[Client, str], Awaitable[Outcome]],
    kubeconfig: str | None,
    context: str | None,
) -> tuple[DecisionResult, ...]:
    """One after the other: what one object refuses does not keep the others from being decided."""
    async with quiet_client(kubeconfig, context) as client:
        return tuple([await _result(client, name, decide) for name in names])


async def _result(client: Client, name: str, decide: Callable[[Client, str], Awaitable[Outcome]]) -> DecisionResult:
    try:
        outcome = await decide(client, name)
    except KubeError as error:
        return DecisionResult(name, decided=False, message=str(error))
    is_decided = isinstance(outcome, Decided)
    return DecisionResult(name, is_decided, outcome.message if isinstance(outcome, Decided) else outcome.reason)


def _answer(output: Output, results: Sequence[DecisionResult]) -> None:
    answer(output, "\n".join(f"{one.subject}: {one.message}" for one in results), results)
    if not all(one.decided for one in results):
        raise typer.Exit(1)
