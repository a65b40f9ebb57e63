"""The machine's VM exists already: it stays where it runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from virt_steward.controllers.placement.candidates import keep, unequipped
from virt_steward.controllers.placement.observation import Unreachable, VmFound
from virt_steward.controllers.placement.verdicts import Abstain, Ask, Blocked, PlacementReason

if TYPE_CHECKING:
    from collections.abc import Mapping

    from virt_steward.controllers.placement.candidates import PlacementCase
    from virt_steward.controllers.placement.verdicts import Verdict


def existing_vm(case: PlacementCase) -> Verdict:
    findings = {one.name: case.seen.findings.get(one.name) for one in case.candidates}
    if unasked := tuple(name for name, finding in findings.items() if finding is None):
        return Ask(unasked)
    vm = case.rules.vm_of(case.machine)
    holders = [one for one in case.candidates if isinstance(findings[one.name], VmFound)]
    silent = {name: finding for name, finding in findings.items() if isinstance(finding, Unreachable)}
    if len(holders) > 1:
        names = " and ".join(one.name for one in holders)
        message = f"{vm} exists in {names}: delete all but one, or annotate the machine with the right one"
        return Blocked(PlacementReason.FOUND_TWICE, message)
    if silent and (not holders or case.rules.strict_search):  # one of them may be the one that runs it
        known = f"exists in {holders[0].name}, and " if holders else ""
        return _blocked_by(silent, f"{vm} {known}may exist in a cluster")
    if not holders:
        return Abstain(f"{vm} exists in none of {', '.join(findings)}{unequipped(case)}")
    return keep(holders[0], f"{vm} exists there{_unheard(silent)}")


def _blocked_by(silent: Mapping[str, Unreachable], what: str) -> Blocked:
    reason = _reason(silent)
    trouble = "does not answer" if reason is PlacementReason.CLUSTERS_SILENT else "cannot be searched"
    each = "; ".join(f"{name}: {one.because}" for name, one in silent.items())
    remedy = "mend that, or annotate the machine with the right one"
    return Blocked(reason, f"{what} that {trouble} ({each}): {remedy}")


def _unheard(silent: Mapping[str, Unreachable]) -> str:
    if not silent:
        return ""
    trouble = "did not answer" if _reason(silent) is PlacementReason.CLUSTERS_SILENT else "could not be searched"
    return f"; {', '.join(silent)} {trouble}"


def _reason(silent: Mapping[str, Unreachable]) -> PlacementReason:
    """What a person has to mend comes first: who is merely silent may come back unaided."""
    reasons = (one.reason for one in silent.values())
    return next((one for one in reasons if one is not PlacementReason.CLUSTERS_SILENT), PlacementReason.CLUSTERS_SILENT)
