"""`virt-steward explain`: why something is decided as it is, check by check, by the controllers' own code."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import typer

from virt_steward.catalog.aliases import current_name
from virt_steward.catalog.load import load
from virt_steward.cli import advisor_flags, approver_flags, autopilot_flags, placement_flags
from virt_steward.cli.arguments import (
    AssetArgument,
    ContextOption,
    InstallPlanArgument,
    KubeconfigOption,
    MachineArgument,
    ProfileArgument,
    namespaced,
    quiet_client,
    quiet_reader,
)
from virt_steward.cli.output import Output, OutputOption, answer, check_lines, wrapped, wrapped_table
from virt_steward.cli.place import assumptions, headline
from virt_steward.cli.plan import impact_lines
from virt_steward.cli.release import staged_lines
from virt_steward.controllers.autopilot.overrides.scope import Activation
from virt_steward.controllers.placement.options import PlacementOptions
from virt_steward.insight.approvals import explain_approval
from virt_steward.insight.assets.explain import explain as explain_asset
from virt_steward.insight.assets.explain import find_asset, gather_evidence
from virt_steward.insight.assets.survey import survey
from virt_steward.insight.placements import explain_placement
from virt_steward.insight.plans import explain_plan
from virt_steward.kube.client import Reader
from virt_steward.kube.errors import one_line
from virt_steward.objects.wallclock import rfc3339
from virt_steward.runtime.access import NAMESPACE

if TYPE_CHECKING:
    from collections.abc import Iterator

    from virt_steward.controllers.advisor.options import AdvisorOptions
    from virt_steward.controllers.approver.options import ApproverOptions
    from virt_steward.controllers.autopilot.options import AutopilotOptions
    from virt_steward.insight.approvals import ApprovalExplanation, Approved, Chain, Csv
    from virt_steward.insight.assets.explain import AssetExplanation, LiveObject
    from virt_steward.insight.placements import Candidate, PlacementExplanation
    from virt_steward.insight.plans import PlanExplanation
    from virt_steward.objects.decision_record import DecisionRecord
    from virt_steward.objects.identity import Key

app = typer.Typer(name="explain", help="Explain a decision, check by check.", no_args_is_help=True)


@app.command()
def installplan(
    *,
    plan: InstallPlanArgument,
    namespace: approver_flags.InstallationOption = NAMESPACE,
    policy_namespaces: approver_flags.PolicyNamespacesOption = None,
    kubeconfig: KubeconfigOption = None,
    context: ContextOption = None,
    output: OutputOption = Output.TEXT,
) -> None:
    """Explain why an InstallPlan is approved or pending.

    Lists the checks of each InstallPlanApprover under these settings. Nothing is changed.
    """
    options = approver_flags.options(namespace, policy_namespaces)
    found = asyncio.run(_explain_approval(namespaced(plan), options, kubeconfig, context))
    answer(output, "\n".join(_approval_lines(found)), found)


@app.command()
def plan(
    *,
    profile: ProfileArgument,
    hyperconverged: advisor_flags.HcoOption = advisor_flags.HCO,
    operator_version: advisor_flags.VersionOption = advisor_flags.VERSION,
    example_profile: advisor_flags.ExampleOption = False,
    namespace: approver_flags.InstallationOption = NAMESPACE,
    kubeconfig: KubeconfigOption = None,
    context: ContextOption = None,
    output: OutputOption = Output.TEXT,
) -> None:
    """Explain the phase of a profile's plan.

    Says what the plan waits for, and lists the checks of the advisor. Nothing is changed.
    """
    options = advisor_flags.asking(hyperconverged, operator_version, namespace, example_profile=example_profile)
    found = asyncio.run(_explain_plan(profile, options, kubeconfig, context))
    answer(output, "\n".join(_plan_lines(found)), found)


@app.command()
def machine(
    *,
    machine: MachineArgument,
    default_kubevirt_config: placement_flags.DefaultConfigOption = "",
    placement_strategy: placement_flags.StrategyOption = "none",
    search: placement_flags.SearchOption = placement_flags.SearchMode.FOUND,
    vm_name: placement_flags.VmNameOption = "vm-{machine}",
    spread_label: placement_flags.SpreadLabelOption = "topology.kubernetes.io/region",
    namespace: approver_flags.InstallationOption = NAMESPACE,
    kubeconfig: KubeconfigOption = None,
    context: ContextOption = None,
    output: OutputOption = Output.TEXT,
) -> None:
    """Explain which cluster a Machine goes to.

    Lists the rules of the placement under these settings. Nothing is changed.
    """
    rules = placement_flags.rules(default_kubevirt_config, placement_strategy, search, vm_name, spread_label)
    options = PlacementOptions(rules, namespace=namespace)
    found = asyncio.run(_explain_placement(namespaced(machine), options, kubeconfig, context))
    answer(output, "\n".join(_placement_lines(found)), found)


@app.command()
def asset(
    *,
    name: AssetArgument,
    hyperconverged: advisor_flags.HcoOption = advisor_flags.HCO,
    activation: autopilot_flags.ActivationOption = Activation.OPT_IN,
    namespace: approver_flags.InstallationOption = NAMESPACE,
    kubeconfig: KubeconfigOption = None,
    context: ContextOption = None,
    output: OutputOption = Output.TEXT,
) -> None:
    """Explain why an asset is applied or not.

    Lists the checks of the autopilot. Nothing is changed.
    """
    options = autopilot_flags.options(hyperconverged, activation, namespace)
    found = asyncio.run(_explain_asset(name, options, kubeconfig, context))
    answer(output, "\n".join(asset_lines(found)), found)


async def _explain_approval(
    plan: Key, options: ApproverOptions, kubeconfig: str | None, context: str | None
) -> ApprovalExplanation:
    async with quiet_reader(kubeconfig, context) as reader:
        return await explain_approval(reader, plan, options, datetime.now(UTC))


async def _explain_plan(
    profile: str, options: AdvisorOptions, kubeconfig: str | None, context: str | None
) -> PlanExplanation:
    async with quiet_reader(kubeconfig, context) as reader:
        return await explain_plan(reader, profile, options, datetime.now(UTC))


async def _explain_placement(
    machine: Key, options: PlacementOptions, kubeconfig: str | None, context: str | None
) -> PlacementExplanation:
    async with quiet_reader(kubeconfig, context) as reader:
        return await explain_placement(reader, machine, options)


async def _explain_asset(
    name: str, options: AutopilotOptions, kubeconfig: str | None, context: str | None
) -> AssetExplanation:
    catalog = load()
    asset = find_asset(catalog, current_name(name))  # an unknown name is reported without connecting to the cluster
    async with quiet_client(kubeconfig, context) as client:
        found = await survey(Reader(client.connection, client.discovery), catalog, options, datetime.now(UTC))
        return explain_asset(found, asset.name, await gather_evidence(client, found, asset))


def _approval_lines(found: ApprovalExplanation) -> Iterator[str]:
    state = "approved" if found.approved else "not approved"
    phase = f"phase {found.phase or 'none'}, approval {found.approval or 'not set'}"
    yield from wrapped(f"InstallPlan {found.plan}: {state}, {phase}", "", "  ")
    if found.decision:
        yield from wrapped(f"approved by {_approved_by(found.decision)}", "  ", "    ")
    for csv in found.csvs:
        yield from wrapped(f"{csv.name}: {_csv_facts(csv, approved=found.approved)}", "  ", "    ")
    if not found.approvers:
        yield "\nThere is no InstallPlanApprover, so it can only be approved manually"
    acting = next((chain for chain in found.approvers if chain.verdict == "approves"), None)
    for chain in found.approvers:
        yield ""
        yield from wrapped(f"InstallPlanApprover {chain.approver}: {_verdict(chain, acting)}", hanging="  ")
        yield from check_lines(chain.checks)
    if found.approvers:
        yield ""
        yield from wrapped(f"Policy namespaces, as assumed: {', '.join(found.policy_namespaces)}", hanging="  ")


def _approved_by(decision: Approved) -> str:
    at = f" at {decision.at}" if decision.at else ""
    return f"{decision.by}{at}" + (f": {decision.because}" if decision.because else "")


def _csv_facts(csv: Csv, *, approved: bool) -> str:
    if csv.package is None:  # the Subscriptions of an approved plan may have moved on
        return "no Subscription refers to it now" if approved else "package unknown"
    if csv.is_new_dependency:
        return f"package {csv.package}, a new dependency"
    return f"package {csv.package}, pinned: {csv.pin or 'no'}, installed: {csv.installed or 'none'}"


def _verdict(chain: Chain, acting: Chain | None) -> str:
    if chain.verdict == "approves" and acting and acting is not chain:
        return f"would approve it, but the older {acting.approver} does"
    until = f", until {chain.until}" if chain.until else ""
    verdicts = {
        "approves": f"approves it: {chain.because}",
        "waits": f"does not approve it yet ({chain.reason}{until})",
    }
    return verdicts.get(chain.verdict, "does not cover it")


def _plan_lines(found: PlanExplanation) -> Iterator[str]:
    reason = f" ({found.reason})" if found.reason else ""
    yield from wrapped(f"VirtPlatformConfig {found.profile}: {found.phase}{reason}, action {found.action}", "", "  ")
    if found.because:
        yield from wrapped(found.because, "  ")
    if found.waits_for:
        yield from wrapped(f"Waiting for: {found.waits_for}", "  ", "    ")
    if found.plan_hash:
        yield from wrapped(f"plan {found.plan_hash}, impact {found.impact}, drafted by {found.version}", "  ", "    ")
    if found.approval:
        at = rfc3339(found.approval.at)
        yield from wrapped(f"approved by {_person(found.approval.by, found.approval.comment, at)}", "  ", "    ")
    yield from _decision_lines(found.decision)
    yield from _plan_items(found)
    if found.conditions:
        yield ""
        yield from wrapped_table(("condition", "status", "since", "reason", "message"), _conditions(found))
    if found.history:
        yield ""
        yield from wrapped_table(("ended", "outcome", "plan", "version", "by"), _history(found))
    yield "\nChecks of the advisor:"
    yield from check_lines(found.checks)


def _decision_lines(*records: DecisionRecord | None) -> Iterator[str]:
    """Print the last decisions of people."""
    for record in records:
        if record:
            yield from wrapped(f"last decision at {rfc3339(record.at)}: {record}", "  ", "    ")


def _plan_items(found: PlanExplanation) -> Iterator[str]:
    if found.items:
        yield "\nItems:"
    for item in found.items:
        yield from wrapped(f"{item.state}: {item.name} (impact {item.impact_severity}): {item.message}", "  ", "    ")
        if item.state in ("Pending", "InProgress"):
            yield from (f"    {line}" for line in impact_lines(item))
        for entry in item.drift:
            yield from wrapped(entry.sentence(), "    ", "      ")


def _conditions(found: PlanExplanation) -> list[tuple[str, ...]]:
    """Leave out the conditions of phases that the plan is not in."""
    return [
        (one.type, one.status, rfc3339(one.last_transition_time), one.reason, one_line(one.message))
        for one in found.conditions
        if one.status == "True" or not one.reason.startswith(f"Not{one.type}")
    ]


def _history(found: PlanExplanation) -> list[tuple[str, ...]]:
    return [
        (rfc3339(one.at), one.outcome, one.plan_hash[:12], one.version, one_line(_person(one.by, one.comment)))
        for one in found.history
    ]


def _person(by: str, comment: str, at: str = "") -> str:
    return (by or "action Apply") + (f" at {at}" if at else "") + (f": {comment}" if comment else "")


def _placement_lines(found: PlacementExplanation) -> Iterator[str]:
    yield from headline(found)
    if found.recorded_because:
        yield from wrapped(f"reason at that time: {found.recorded_because}", "  ", "    ")
    yield from _decision_lines(found.decision)
    yield from check_lines(found.checks)
    if found.scores:
        yield ""
        yield from wrapped_table(("cluster", "score"), [(one.cluster, one.words) for one in found.scores])
    if found.clusters:
        yield ""
        yield from wrapped_table(("cluster", "machines", "VM", "state"), [_cluster_row(one) for one in found.clusters])
    yield ""
    yield from assumptions(found.assumed)


def _cluster_row(cluster: Candidate) -> tuple[str, ...]:
    state = cluster.trouble or ("ready" if cluster.schedulable else "cordoned")
    return cluster.name, str(cluster.machines), cluster.vm or "not asked", one_line(state)


def asset_lines(found: AssetExplanation) -> Iterator[str]:
    yield from wrapped(f"Asset {found.asset}: {found.state}: {found.because}", hanging="  ")
    yield from wrapped(f"object: {found.object}", "  ", "    ")
    yield from wrapped(f"purpose: {found.summary}", "  ", "    ")
    yield from _scope_lines(found)
    yield from _decision_lines(*found.decisions)
    yield from check_lines(found.checks)
    if found.overrides:
        until = f", until {found.until}" if found.until else ""
        yield f"\nOverrides by annotations of the object{until}:"
        yield from (f"  {name}: {one_line(value)}" for name, value in sorted(found.overrides.items()))
    if found.remarks:
        yield "\nRemarks:"
        for remark in found.remarks:
            yield from wrapped(remark, "  ", "    ")
    if found.governed:
        yield ""
        yield from wrapped(f"Fields that the advisor manages: {', '.join(found.governed)}", hanging="  ")
    if found.events:
        yield "\nRecent events:"
        for event in found.events:
            yield from wrapped(event, "  ", "    ")
    if found.review:
        yield f"\nStaged change {found.staged}"
        yield f"  to write it now: virt-steward release {found.asset}"
        yield from staged_lines(found.review)
    yield f"\n{_live_object(found.live)}"


def _scope_lines(found: AssetExplanation) -> Iterator[str]:
    """Print what the allow-list selects by this name, and whether nodes reboot: nobody should find out afterwards."""
    if found.group:
        yield from wrapped(f"group: {found.group}; this name in the allow-list selects it, too", "  ", "    ")
    if found.selects:
        along = ", ".join(map(str, found.selects))
        yield from wrapped(f"its name in the allow-list also selects: {along}", "  ", "    ")
    if found.reboots or any(one.reboots for one in found.selects):
        command = f"virt-steward diff --scope {found.asset}"
        yield from wrapped(f"nodes reboot when this is written: '{command}' shows which, and when", "  ", "    ")


def _live_object(live: LiveObject | None) -> str:
    if live is None:
        return "The object does not exist"
    facts = ["created by the autopilot" if live.made_by_us else "not known to be created by the autopilot"]
    facts += [f"also managed by {', '.join(live.others)}"] if live.others else []
    facts += [f"paused at {live.paused_at}"] if live.paused_at else []
    return f"The object exists: {'; '.join(facts)}"
