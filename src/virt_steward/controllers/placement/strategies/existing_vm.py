"""The machine's VM exists already: it stays where it runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from virt_steward.controllers.placement.case import keep, unequipped
from virt_steward.controllers.placement.seen import Found, Silent
from virt_steward.controllers.placement.verdicts import Abstain, Ask, Blocked, Reason

if TYPE_CHECKING:
    from collections.abc import Mapping

    from virt_steward.controllers.placement.case import Case
    from virt_steward.controllers.placement.verdicts import Verdict


def existing_vm(case: Case) -> Verdict:
    findings = {one.name: case.seen.findings.get(one.name) for one in case.candidates}
    if unasked := tuple(name for name, finding in findings.items() if finding is None):
        return Ask(unasked)
    vm = case.rules.vm_of(case.machine)
    holders = [one for one in case.candidates if isinstance(findings[one.name], Found)]
    silent = {name: finding for name, finding in findings.items() if isinstance(finding, Silent)}
    if len(holders) > 1:
        names = " and ".join(one.name for one in holders)
        message = f"{vm} exists in {names}: delete all but one, or annotate the machine with the right one"
        return Blocked(Reason.FOUND_TWICE, message)
    if silent and (not holders or case.rules.strict_search):  # one of them may be the one that runs it
        known = f"exists in {holders[0].name}, and " if holders else ""
        return _blocked_by(silent, f"{vm} {known}may exist in a cluster")
    if not holders:
        return Abstain(f"{vm} exists in none of {', '.join(findings)}{unequipped(case)}")
    return keep(holders[0], f"{vm} exists there{_unheard(silent)}")


def _blocked_by(silent: Mapping[str, Silent], what: str) -> Blocked:
    reason = _reason(silent)
    trouble = "does not answer" if reason is Reason.CLUSTERS_SILENT else "cannot be searched"
    each = "; ".join(f"{name}: {one.because}" for name, one in silent.items())
    remedy = "mend that, or annotate the machine with the right one"
    return Blocked(reason, f"{what} that {trouble} ({each}): {remedy}")


def _unheard(silent: Mapping[str, Silent]) -> str:
    if not silent:
        return ""
    trouble = "did not answer" if _reason(silent) is Reason.CLUSTERS_SILENT else "could not be searched"
    return f"; {', '.join(silent)} {trouble}"


def _reason(silent: Mapping[str, Silent]) -> Reason:
    """What a person has to mend comes first: who is merely silent may come back unaided."""
    reasons = (one.reason for one in silent.values())
    return next((one for one in reasons if one is not Reason.CLUSTERS_SILENT), Reason.CLUSTERS_SILENT)
