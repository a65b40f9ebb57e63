"""The VM of the Machine exists already: the Machine stays on its cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING

from virt_steward.controllers.placement.candidates import keep, without_kubevirt
from virt_steward.controllers.placement.observation import CONFIG_ANNOTATION, Unreachable, VmFound
from virt_steward.controllers.placement.verdicts import Abstain, Ask, Blocked, PlacementReason

if TYPE_CHECKING:
    from collections.abc import Mapping

    from virt_steward.controllers.placement.candidates import PlacementCase
    from virt_steward.controllers.placement.verdicts import Verdict


REMEDY = f"Fix the cluster's access, or set the annotation {CONFIG_ANNOTATION} to choose a cluster"


def existing_vm(case: PlacementCase) -> Verdict:
    findings = {one.name: case.observation.findings.get(one.name) for one in case.candidates}
    if unasked := tuple(name for name, finding in findings.items() if finding is None):
        return Ask(unasked)
    holders = [one for one in case.candidates if isinstance(findings[one.name], VmFound)]
    found = dict.fromkeys(finding.vm for finding in findings.values() if isinstance(finding, VmFound) and finding.vm)
    vm = " or ".join(found or case.rules.vms_of(case.machine))
    unknown = {name: finding for name, finding in findings.items() if isinstance(finding, Unreachable)}
    if len(holders) > 1:
        names = " and ".join(one.name for one in holders)
        remedy = f"delete all but one, or set the annotation {CONFIG_ANNOTATION} to choose a cluster"
        return Blocked(PlacementReason.FOUND_TWICE, f"VM {vm} exists in {names}: {remedy}")
    if unknown and (not holders or case.rules.strict_search):  # an unreachable cluster may be the one that runs it
        known = f"exists in {holders[0].name}, and " if holders else ""
        return _blocked(unknown, f"VM {vm} {known}may exist in a cluster")
    if not holders:
        return Abstain(f"VM {vm} does not exist in {', '.join(findings)}{without_kubevirt(case)}")
    return keep(holders[0], f"VM {vm} exists there{_not_searched(unknown)}")


def _blocked(unknown: Mapping[str, Unreachable], what: str) -> Blocked:
    reason = _reason(unknown)
    trouble = "is unreachable" if reason is PlacementReason.CLUSTERS_SILENT else "cannot be searched"
    each = "; ".join(one.message for one in unknown.values())
    return Blocked(reason, f"{what} that {trouble} ({each}). {REMEDY}")


def _not_searched(unknown: Mapping[str, Unreachable]) -> str:
    if not unknown:
        return ""
    is_unreachable = _reason(unknown) is PlacementReason.CLUSTERS_SILENT
    return f"; {', '.join(unknown)} {'unreachable' if is_unreachable else 'could not be searched'}"


def _reason(unknown: Mapping[str, Unreachable]) -> PlacementReason:
    """A reason that needs a person comes first: an unreachable cluster may come back by itself."""
    reasons = (one.reason for one in unknown.values())
    return next((one for one in reasons if one is not PlacementReason.CLUSTERS_SILENT), PlacementReason.CLUSTERS_SILENT)
