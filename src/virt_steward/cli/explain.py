"""`virt-steward explain`: why something is decided as it is, by the rules that decide it."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import typer

from virt_steward.app import connected
from virt_steward.cli import advisor_flags, assets, placement_flags, placements, plans
from virt_steward.cli.arguments import (
    AssetArgument,
    ContextOption,
    KubeconfigOption,
    MachineArgument,
    PlanArgument,
    ProfileArgument,
    namespaced,
)
from virt_steward.cli.output import Output, OutputOption, answer
from virt_steward.insight.approvals import ApprovalCheck, ApprovalExplanation, Approved, Chain, Csv, explain_approval
from virt_steward.kube.client import Reader
from virt_steward.kube.errors import one_line

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


@app.command()
def plan(
    *,
    profile: ProfileArgument,
    hyperconverged: advisor_flags.HcoOption = advisor_flags.HCO,
    operator_version: advisor_flags.VersionOption = advisor_flags.VERSION,
    kubeconfig: KubeconfigOption = None,
    context: ContextOption = None,
    output: OutputOption = Output.TEXT,
) -> None:
    """Say where the plan of a profile is and what it waits for, and what the advisor makes of that. Changes nothing."""
    options = advisor_flags.asking(hyperconverged, operator_version)
    found = asyncio.run(plans.asked(profile, options, kubeconfig, context))
    answer(output, "\n".join(plans.why_lines(found)), found)


@app.command()
def machine(
    *,
    machine: MachineArgument,
    default_kubevirt_config: placement_flags.DefaultConfigOption = "",
    placement_strategy: placement_flags.StrategyOption = "none",
    search: placement_flags.SearchOption = placement_flags.SearchMode.FOUND,
    vm_name: placement_flags.VmNameOption = "vm-{machine}",
    spread_label: placement_flags.SpreadLabelOption = "topology.kubernetes.io/region",
    kubeconfig: KubeconfigOption = None,
    context: ContextOption = None,
    output: OutputOption = Output.TEXT,
) -> None:
    """Say which cluster a Machine goes to by these settings, strategy by strategy. Changes nothing."""
    rules = placement_flags.rules(default_kubevirt_config, placement_strategy, search, vm_name, spread_label)
    found = asyncio.run(placements.asked(namespaced(machine), rules, kubeconfig, context))
    answer(output, "\n".join(placements.lines(found)), found)


@app.command()
def asset(
    *,
    name: AssetArgument,
    hyperconverged: advisor_flags.HcoOption = advisor_flags.HCO,
    kubeconfig: KubeconfigOption = None,
    context: ContextOption = None,
    output: OutputOption = Output.TEXT,
) -> None:
    """Say what the autopilot makes of an asset now, filter by filter and check by check. Changes nothing."""
    found = asyncio.run(assets.asked(name, advisor_flags.hco(hyperconverged), kubeconfig, context))
    answer(output, "\n".join(assets.lines(found)), found)


async def _asked(plan: Key, kubeconfig: str | None, context: str | None) -> ApprovalExplanation:
    async with connected(kubeconfig, context) as client:
        return await explain_approval(Reader(client.connection, client.discovery), plan, datetime.now(UTC))


def _lines(found: ApprovalExplanation) -> Iterator[str]:
    state = "approved" if found.approved else "not approved"
    yield f"InstallPlan {found.plan}: {state}, phase {found.phase or 'none'}, approval {found.approval or 'not set'}"
    if found.decision:
        yield f"  approved by {_signed(found.decision)}"
    for csv in found.csvs:
        yield f"  {csv.name}: {_facts(csv, approved=found.approved)}"
    if not found.approvers:
        yield "\nThere is no InstallPlanApprover: nobody but a person approves it."
    acting = next((chain for chain in found.approvers if chain.verdict == "approves"), None)
    for chain in found.approvers:
        yield ""
        yield f"InstallPlanApprover {chain.approver} {_verdict(chain, acting)}"
        yield from (f"  {_outcome(step)}" for step in chain.steps)


def _signed(decision: Approved) -> str:
    at = f" at {decision.at}" if decision.at else ""
    return one_line(f"{decision.by}{at}: {decision.because}" if decision.because else f"{decision.by}{at}")


def _facts(csv: Csv, *, approved: bool) -> str:
    if csv.package is None:  # an approved plan is no longer asked what it is made of
        return "no Subscription is for it now" if approved else "package unknown"
    if csv.is_new_dependency:
        return f"package {csv.package}, a new dependency"
    return f"package {csv.package}, pinned {csv.pin or 'to nothing'}, installed {csv.installed or 'nothing yet'}"


def _verdict(chain: Chain, acting: Chain | None) -> str:
    if chain.verdict == "approves" and acting is not chain and acting:
        return f"would approve it, but the older {acting.approver} does"
    return f"{chain.verdict}: {chain.because}"


def _outcome(step: ApprovalCheck) -> str:
    """The sentence of a refusal stands in the headline already."""
    if step.refusal is None:
        return f"[+] {step.check}"
    until = f", until {step.refusal.until}" if step.refusal.until else ""
    return f"[-] {step.check}: {step.refusal.reason}{until}"
