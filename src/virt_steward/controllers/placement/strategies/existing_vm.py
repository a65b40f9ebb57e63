"""The machine's VM exists already: it stays where it runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from virt_steward.controllers.placement.case import keep
from virt_steward.controllers.placement.seen import Found, Silent
from virt_steward.controllers.placement.verdicts import Abstain, Ask, Blocked, Reason

if TYPE_CHECKING:
    from virt_steward.controllers.placement.case import Case
    from virt_steward.controllers.placement.verdicts import Verdict


def existing_vm(case: Case) -> Verdict:
    findings = {one.name: case.seen.findings.get(one.name) for one in case.candidates}
    if unasked := tuple(name for name, finding in findings.items() if finding is None):
        return Ask(unasked)
    vm = case.rules.vm_of(case.machine)
    holders = [one for one in case.candidates if isinstance(findings[one.name], Found)]
    silent = {name: finding.because for name, finding in findings.items() if isinstance(finding, Silent)}
    if len(holders) > 1:
        names = " and ".join(one.name for one in holders)
        message = f"{vm} exists in {names}: delete all but one, or annotate the machine with the right one"
        return Blocked(Reason.FOUND_TWICE, message)
    if silent and (not holders or case.rules.strict_search):  # one of them may be the one that runs it
        reasons = "; ".join(f"{name}: {why}" for name, why in silent.items())
        known = f"exists in {holders[0].name}, and " if holders else ""
        return Blocked(Reason.CLUSTERS_SILENT, f"{vm} {known}may exist in a cluster that does not answer ({reasons})")
    if not holders:
        return Abstain(f"{vm} exists in none of {', '.join(findings)}")
    unheard = f"; {', '.join(silent)} did not answer" if silent else ""
    return keep(holders[0], f"{vm} exists there{unheard}")
