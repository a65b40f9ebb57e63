"""`virt-steward reject`, `rollback`, `replan`, `resume` and `choose`: decisions of a person, as in the console."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Annotated

import typer

from virt_steward.catalog.load import load
from virt_steward.cli import advisor_flags, completion
from virt_steward.cli.arguments import CommentOption, ContextOption, KubeconfigOption, ProfilesArgument, namespaced
from virt_steward.cli.decision_results import answer_decisions, decide_all
from virt_steward.cli.output import CommandFailed, Output, OutputOption
from virt_steward.controllers.autopilot.watches import ref_of_asset
from virt_steward.decisions import assets, machines, plans, profiles
from virt_steward.decisions.configs import plan_changed, read_config
from virt_steward.decisions.outcomes import NotDecided
from virt_steward.insight.assets.explain import find_asset

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from virt_steward.decisions.outcomes import Outcome
    from virt_steward.decisions.signatures import Signature
    from virt_steward.kube.client import Client

PlansOption = Annotated[
    list[str] | None,
    typer.Option(
        "--plan",
        metavar="HASH",
        help="Only if the plan still has this hash, as reviewed; once for each profile."
        f" The first {plans.SHORT_HASH} characters will do.",
    ),
]
UidsOption = Annotated[
    list[str] | None,
    typer.Option("--uid", metavar="UID", help="Only if the object still has this uid, as reviewed; once for each."),
]


def reject(
    *,
    names: ProfilesArgument,
    comment: CommentOption = "",
    plan: PlansOption = None,
    kubeconfig: KubeconfigOption = None,
    context: ContextOption = None,
    output: OutputOption = Output.TEXT,
) -> None:
    """Reject the pending plans of profiles.

    Applied changes stay. A profile that never applied anything becomes inactive (action Ignore). Exit code 0 if all of
    them were rejected, else 1.
    """

    async def decide(client: Client, name: str, signature: Signature, shown: str | None) -> Outcome:
        pending = (await read_config(client, name)).status.plan_hash if shown is None else shown
        return await plans.reject_plan(client, name, pending, signature)

    answer_decisions(output, asyncio.run(decide_all(names, _as_shown(plan, decide), comment, (kubeconfig, context))))


def rollback(
    *,
    names: ProfilesArgument,
    comment: CommentOption = "",
    plan: PlansOption = None,
    cancel: Annotated[
        bool, typer.Option("--cancel", help="Cancel a rollback; what was rolled back already is planned again.")
    ] = False,
    kubeconfig: KubeconfigOption = None,
    context: ContextOption = None,
    output: OutputOption = Output.TEXT,
) -> None:
    """Ask for rollback plans of profiles.

    A rollback plan restores what was there before the first plan. Nothing changes until somebody approves it. Exit code
    0 if that was done for all of them, else 1.
    """
    decide = _as_shown(plan, profiles.cancel_rollback if cancel else profiles.roll_back)
    answer_decisions(output, asyncio.run(decide_all(names, decide, comment, (kubeconfig, context))))


def replan(
    *,
    names: ProfilesArgument,
    comment: CommentOption = "",
    plan: PlansOption = None,
    kubeconfig: KubeconfigOption = None,
    context: ContextOption = None,
    output: OutputOption = Output.TEXT,
) -> None:
    """Ask for new plans of profiles.

    The new plan goes in the same direction: forward, or back if a rollback was asked for. Nothing changes until
    somebody approves it. Exit code 0 if that was done for all of them, else 1.
    """
    decide = _as_shown(plan, profiles.replan)
    answer_decisions(output, asyncio.run(decide_all(names, decide, comment, (kubeconfig, context))))


def resume(
    *,
    names: Annotated[
        list[str],
        typer.Argument(metavar="ASSET...", help="Assets whose objects are paused.", autocompletion=completion.assets),
    ],
    comment: CommentOption = "",
    uid: UidsOption = None,
    hyperconverged: advisor_flags.HcoOption = advisor_flags.HCO,
    kubeconfig: KubeconfigOption = None,
    context: ContextOption = None,
    output: OutputOption = Output.TEXT,
) -> None:
    """Resume objects that the autopilot has paused.

    It pauses an object that another manager changes again and again; `explain asset` shows which one. Decide first who
    owns the object, or it is paused again. Exit code 0 if all of them were resumed, else 1.
    """
    hco = advisor_flags.hco(hyperconverged)
    refs = {name: ref_of_asset(find_asset(load(), name), hco) for name in names}
    uids = _one_for_each(uid, names)

    async def decide(client: Client, name: str, signature: Signature) -> Outcome:
        return await assets.resume(client, refs[name], signature, uids[name])

    answer_decisions(output, asyncio.run(decide_all(names, decide, comment, (kubeconfig, context))))


def choose(
    *,
    names: Annotated[
        list[str],
        typer.Argument(metavar="NAMESPACE/NAME...", help="Machines.", autocompletion=completion.machines_and_clusters),
    ],
    cluster: Annotated[
        str, typer.Argument(metavar="CLUSTER", help="Name of the KubevirtConfig.", autocompletion=completion.clusters)
    ],
    comment: CommentOption = "",
    uid: UidsOption = None,
    kubeconfig: KubeconfigOption = None,
    context: ContextOption = None,
    output: OutputOption = Output.TEXT,
) -> None:
    """Choose the cluster of Machines that have none.

    The choice counts before every placement rule. `explain machine` shows the clusters and what is known of them. Exit
    code 0 if all of them were placed, else 1.
    """
    keys = {name: namespaced(name) for name in names}
    uids = _one_for_each(uid, names)

    async def decide(client: Client, name: str, signature: Signature) -> Outcome:
        return await machines.choose_cluster(client, keys[name], cluster, signature, uids[name])

    answer_decisions(output, asyncio.run(decide_all(names, decide, comment, (kubeconfig, context))))


def _one_for_each(uids: list[str] | None, names: list[str]) -> dict[str, str]:
    """By name; empty where none was given."""
    if uids and len(uids) != len(names):
        raise CommandFailed("--uid is the uid of one object: give it once for each, in the same order")
    return dict(zip(names, uids or [""] * len(names), strict=True))


def _as_shown(
    hashes: list[str] | None, decide: Callable[[Client, str, Signature, str | None], Awaitable[Outcome]]
) -> Callable[[Client, str, Signature], Awaitable[Outcome]]:
    """Decide only on the plans that were reviewed; without any hash, on whichever plan there is."""
    given = [one.removeprefix("sha256:") for one in hashes or ()]

    async def decide_as_shown(client: Client, name: str, signature: Signature) -> Outcome:
        if not given:
            return await decide(client, name, signature, None)
        current = (await read_config(client, name)).status.plan_hash
        if not any(plans.is_hash_of(one, current) for one in given):
            return NotDecided("Not decided", f"Nothing was changed: {plan_changed(current)}.")
        return await decide(client, name, signature, current)

    return decide_as_shown
