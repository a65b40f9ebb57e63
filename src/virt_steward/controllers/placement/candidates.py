"""One machine before the chain: what was seen, and which clusters are still in question."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from virt_steward.controllers.placement.observation import KubeVirtMissing
from virt_steward.controllers.placement.verdicts import Blocked, Chosen, PlacementReason

if TYPE_CHECKING:
    from virt_steward.controllers.placement.observation import (
        Machine,
        MemberCluster,
        PlacementObservation,
        PlacementRules,
    )
    from virt_steward.controllers.placement.verdicts import Verdict

LONGEST_QUOTE = 253
"""Characters; no name has more."""


@dataclass(frozen=True, slots=True)
class PlacementCase:
    seen: PlacementObservation
    candidates: tuple[MemberCluster, ...]
    """By name; a selector narrows them for all that follow."""

    @property
    def machine(self) -> Machine:
        return self.seen.machine

    @property
    def rules(self) -> PlacementRules:
        return self.seen.rules

    @property
    def subject(self) -> str:
        """How the documented messages begin."""
        return f"machine {self.machine.metadata.key} has no KubevirtConfig reference"

    def is_equipped(self, cluster: MemberCluster) -> bool:
        """Whether it has KubeVirt, as far as somebody has asked."""
        return not isinstance(self.seen.findings.get(cluster.name), KubeVirtMissing)

    def named(self, name: str) -> MemberCluster | None:
        return next((one for one in self.candidates if one.name == name), None)


def keep(cluster: MemberCluster, because: str) -> Verdict:
    """Leave the machine there, if credentials are at hand. It need not answer now: that is not what was asked."""
    if cluster.unusable:
        return Blocked(cluster.unusable.reason, cluster.unusable.because)
    return Chosen(cluster.name, because)


def take(cluster: MemberCluster, because: str) -> Verdict:
    """The same for a machine that is new there: a cordoned cluster gets only those that name it themselves."""
    verdict = keep(cluster, because)
    if isinstance(verdict, Blocked) or cluster.schedulable:
        return verdict
    return Blocked(
        PlacementReason.NO_ROOM,
        f"{cluster.name} takes no new machines, though {because}: set its spec.schedulable, or annotate the machine",
    )


def missing(name: str, asked_by: str) -> Blocked:
    return Blocked(
        PlacementReason.CONFIG_NOT_FOUND,
        f"KubevirtConfig {shown(name)} not found: {asked_by} names it; create it, or name another",
    )


def unequipped(case: PlacementCase) -> str:
    """Which candidates have no KubeVirt, as the end of a sentence; empty if none is known to have none."""
    names = ", ".join(one.name for one in case.candidates if not case.is_equipped(one))
    return f"; there is no KubeVirt in {names}" if names else ""


def shown(text: str) -> str:
    """What anyone may have written, fit for a sentence: one line, and not without end."""
    line = "".join(char if char.isprintable() else "?" for char in " ".join(text.split()))
    return line if len(line) <= LONGEST_QUOTE else f"{line[: LONGEST_QUOTE - 1]}…"
