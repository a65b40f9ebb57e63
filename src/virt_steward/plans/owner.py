"""On whose behalf a plan is drafted and written. Everything in this package takes it as an argument."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from virt_steward.kube import faults

if TYPE_CHECKING:
    from virt_steward.ssa.managers import FieldManager


@dataclass(frozen=True, slots=True)
class PlanOwner:
    """The owner of a plan: the advisor for one of its profiles, for example."""

    name: str
    """What the annotations on targets and the record of what was there before say, such as `virt-higher-density`."""
    manager: FieldManager
    """The field manager that applies the items."""
    fault_prefix: str
    """The first part of the names of its fault points, such as `advisor`."""

    def reach(self, point: str) -> None:
        """Pass a fault point, at which a test can cut the process."""
        faults.reach(f"{self.fault_prefix}.{point}")
