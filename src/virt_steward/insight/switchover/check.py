"""The whole check: each Go operator that is found, and what would change if ours took over its work."""

from __future__ import annotations

from typing import TYPE_CHECKING

from virt_steward.insight.reading import dry_run_client
from virt_steward.insight.switchover.advisor import advisor_findings, observe_advisor
from virt_steward.insight.switchover.approver import approver_findings, observe_approver
from virt_steward.insight.switchover.autopilot import autopilot_findings, observe_autopilot
from virt_steward.insight.switchover.findings import SwitchReport
from virt_steward.insight.switchover.operators import OPERATORS, observe_operator, operator_findings
from virt_steward.insight.switchover.placement import observe_placement, placement_findings

if TYPE_CHECKING:
    from collections.abc import Collection
    from datetime import datetime

    from virt_steward.controllers.options import ControllerOptions
    from virt_steward.insight.switchover.findings import SwitchFinding
    from virt_steward.kube.client import Client

Part = tuple[tuple[str, ...], tuple["SwitchFinding", ...]]
"""The traces of an operator's work, and the findings on it."""


async def check_switch(
    client: Client, controllers: Collection[str], options: ControllerOptions, now: datetime
) -> tuple[SwitchReport, ...]:
    """Look at the cluster with reads and dry runs only."""
    dry_runs = dry_run_client(client)
    reports = []
    for operator in OPERATORS:
        if operator.controller not in controllers:
            continue
        seen = await observe_operator(dry_runs, operator, now)
        traces, findings = await PARTS[operator.controller](dry_runs, options, now)
        found = (*map(str, seen.leases), *traces)
        reports.append(SwitchReport(operator.controller, found, (*operator_findings(seen), *findings)))
    return tuple(reports)


async def _advisor(client: Client, options: ControllerOptions, now: datetime) -> Part:
    seen = await observe_advisor(client, options.advisor, now)
    return seen.traces, tuple(advisor_findings(seen))


async def _autopilot(client: Client, options: ControllerOptions, now: datetime) -> Part:
    seen = await observe_autopilot(client, options.autopilot, now)
    return seen.traces, tuple(autopilot_findings(seen))


async def _approver(client: Client, options: ControllerOptions, now: datetime) -> Part:
    seen = await observe_approver(client, options.approver, now)
    return seen.traces, tuple(approver_findings(seen, options.approver))


async def _placement(client: Client, options: ControllerOptions, _now: datetime) -> Part:
    seen = await observe_placement(client, options.placement)
    return seen.traces, tuple(placement_findings(seen, options.placement.rules))


PARTS = {"advisor": _advisor, "autopilot": _autopilot, "approver": _approver, "placement": _placement}
