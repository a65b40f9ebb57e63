"""`virt-steward explain`: why something is decided as it is, by the rules that decide it."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import typer

from virt_steward.app import connected
from virt_steward.cli.arguments import ContextOption, KubeconfigOption, PlanArgument, namespaced
from virt_steward.cli.output import Output, OutputOption, answer
from virt_steward.insight.approvals import Chain, Csv, Step, Why, why
from virt_steward.kube.client import Reader

if TYPE_CHECKING:
    from collections.abc import Iterator

    from virt_steward.objects.identity import Key

app = typer.Typer(name="explain", help="Say why something is decided as it is.", no_args_is_help=True)


@app.command()
def installplan(
    plan: PlanArgument,
    kubeconfig: KubeconfigOption = None,
    context: ContextOption = None,
    output: OutputOption = Output.TEXT,
) -> None:
    """Say what each InstallPlanApprover makes of an InstallPlan now, check by check. Changes nothing."""
    found = asyncio.run(_asked(namespaced(plan), kubeconfig, context))
    answer(output, "\n".join(_lines(found)), found)


async def _asked(plan: Key, kubeconfig: str | None, context: str | None) -> Why:
    async with connected(kubeconfig, context) as client:
        return await why(Reader(client.connection, client.discovery), plan, datetime.now(UTC))


def _lines(found: Why) -> Iterator[str]:
    state = "approved" if found.approved else "not approved"
    yield f"InstallPlan {found.plan}: {state}, phase {found.phase or 'none'}, approval {found.approval or 'not set'}"
    if found.approved_because:
        yield f"  because {found.approved_because}"
    for csv in found.csvs:
        yield f"  {csv.name}: {_facts(csv)}"
    if not found.approvers:
        yield "\nThere is no InstallPlanApprover: nobody but a person approves it."
    acting = next((chain for chain in found.approvers if chain.verdict == "approves"), None)
    for chain in found.approvers:
        yield ""
        yield f"InstallPlanApprover {chain.approver} {_verdict(chain, acting)}"
        yield from (f"  {_outcome(step)}" for step in chain.steps)


def _facts(csv: Csv) -> str:
    if csv.package is None:
        return "package unknown"
    if csv.is_new_dependency:
        return f"package {csv.package}, a new dependency"
    return f"package {csv.package}, pinned {csv.pin or 'to nothing'}, installed {csv.installed or 'nothing yet'}"


def _verdict(chain: Chain, acting: Chain | None) -> str:
    if chain.verdict == "approves" and acting is not chain and acting:
        return f"would approve it, but the older {acting.approver} does"
    return f"{chain.verdict}: {chain.because}"


def _outcome(step: Step) -> str:
    """The sentence of a refusal stands in the headline already."""
    if step.refusal is None:
        return f"[+] {step.check}"
    until = f", until {step.refusal.until}" if step.refusal.until else ""
    return f"[-] {step.check}: {step.refusal.reason}{until}"
