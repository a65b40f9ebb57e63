"""One Machine before the chain of rules: the observation, and which clusters are still candidates."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from virt_steward.controllers.placement.observation import CONFIG_ANNOTATION, KubeVirtMissing
from virt_steward.controllers.placement.verdicts import Blocked, Chosen, PlacementReason

if TYPE_CHECKING:
    from virt_steward.controllers.placement.observation import Machine, MemberCluster, PlacementObservation
    from virt_steward.controllers.placement.options import PlacementRules
    from virt_steward.controllers.placement.verdicts import Verdict

LONGEST_QUOTE = 253
"""Characters; no name has more."""


@dataclass(frozen=True, slots=True)
class PlacementCase:
    observation: PlacementObservation
    candidates: tuple[MemberCluster, ...]
    """By name; a cluster selector narrows them for the rules that follow."""

    @property
    def machine(self) -> Machine:
        return self.observation.machine

    @property
    def rules(self) -> PlacementRules:
        return self.observation.rules

    @property
    def subject(self) -> str:
        """The documented beginning of two error messages."""
        return f"machine {self.machine.metadata.key} has no KubevirtConfig reference"

    def has_kubevirt(self, cluster: MemberCluster) -> bool:
        """True also for a cluster that was not asked."""
        return not isinstance(self.observation.findings.get(cluster.name), KubeVirtMissing)

    def named(self, name: str) -> MemberCluster | None:
        return next((one for one in self.candidates if one.name == name), None)


def keep(cluster: MemberCluster, reason: str) -> Verdict:
    """Choose the cluster that the Machine is on already. It needs valid credentials, but need not be reachable now."""
    if cluster.unusable:
        return Blocked(cluster.unusable.reason, cluster.unusable.message)
    return Chosen(cluster.name, reason)


def take(cluster: MemberCluster, reason: str) -> Verdict:
    """Choose the cluster for a Machine that is new there: a cordoned cluster takes only Machines that name it."""
    verdict = keep(cluster, reason)
    if isinstance(verdict, Blocked) or cluster.schedulable:
        return verdict
    return Blocked(PlacementReason.NO_ROOM, cordoned(cluster.name, reason))


def cordoned(cluster: str, reason: str) -> str:
    return (
        f"cluster {cluster} is cordoned (spec.schedulable is false), though {reason}: set spec.schedulable of its "
        f"KubevirtConfig to true, or set the annotation {CONFIG_ANNOTATION} to choose a cluster"
    )


def config_not_found(name: str, named_by: str) -> Blocked:
    return Blocked(
        PlacementReason.CONFIG_NOT_FOUND,
        f"KubevirtConfig {quoted(name)} not found: {named_by} names it; create it, or name another",
    )


def without_kubevirt(case: PlacementCase) -> str:
    """The candidates without KubeVirt, as the end of a sentence; empty if there is none, as far as is known."""
    names = ", ".join(one.name for one in case.candidates if not case.has_kubevirt(one))
    return f"; KubeVirt is not installed in {names}" if names else ""


def quoted(text: str) -> str:
    """Text that anyone may have written, as one line of bounded length."""
    line = "".join(char if char.isprintable() else "?" for char in " ".join(text.split()))
    return line if len(line) <= LONGEST_QUOTE else f"{line[: LONGEST_QUOTE - 1]}…"
