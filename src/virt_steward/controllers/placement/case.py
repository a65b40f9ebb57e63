"""One machine before the chain: what was seen, and which clusters are still in question."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from virt_steward.controllers.placement.verdicts import Blocked, Chosen, Reason

if TYPE_CHECKING:
    from virt_steward.controllers.placement.seen import Cluster, Machine, Rules, Seen
    from virt_steward.controllers.placement.verdicts import Verdict


@dataclass(frozen=True, slots=True)
class Case:
    seen: Seen
    candidates: tuple[Cluster, ...]
    """By name; a selector narrows them for all that follow."""

    @property
    def machine(self) -> Machine:
        return self.seen.machine

    @property
    def rules(self) -> Rules:
        return self.seen.rules

    @property
    def subject(self) -> str:
        """How the documented messages begin."""
        return f"machine {self.machine.metadata.key} has no KubevirtConfig reference"

    def named(self, name: str) -> Cluster | None:
        return next((one for one in self.candidates if one.name == name), None)


def take(cluster: Cluster, because: str) -> Verdict:
    """Choose it, if its credentials are at hand. It need not answer now: that is not what was asked."""
    if cluster.unusable:
        return Blocked(cluster.unusable.reason, cluster.unusable.because)
    return Chosen(cluster.name, because)


def missing(name: str, asked_by: str) -> Blocked:
    return Blocked(
        Reason.CONFIG_NOT_FOUND, f"KubevirtConfig {name} not found: {asked_by} names it; create it, or name another"
    )
