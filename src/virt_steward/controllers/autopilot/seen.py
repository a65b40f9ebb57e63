"""The frozen record of what was seen of the platform, from which it follows what is wanted of each object."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from virt_steward.catalog.report import Look
from virt_steward.controllers.autopilot import marks
from virt_steward.controllers.autopilot.overrides import exclusions, scope

if TYPE_CHECKING:
    from virt_steward.catalog.context import Context
    from virt_steward.catalog.report import Served
    from virt_steward.controllers.autopilot.overrides.exclusions import Exclusions, Unreadable
    from virt_steward.controllers.autopilot.overrides.scope import Everything, Idle, Only
    from virt_steward.objects.identity import Regarding


@dataclass(frozen=True, slots=True)
class ServedKinds:
    """The resources of the catalog that the server knows."""

    resources: frozenset[tuple[str, str]]

    def serves(self, group: str, plural: str) -> bool:
        return (group, plural) in self.resources


@dataclass(frozen=True, slots=True)
class Seen:
    """The same for all assets, until something of it changes."""

    hco: Regarding
    look: Look
    """What the catalog's filters and templates see."""
    scope: Everything | Only | Idle
    exclusions: Exclusions | Unreadable
    namespaces: frozenset[str]
    """Those of the catalog that exist."""

    @classmethod
    def of(cls, hco: Regarding, context: Context, served: Served, namespaces: frozenset[str]) -> Seen:
        """Read what the HyperConverged's own annotations say."""
        given = context.hco.annotations
        chosen = scope.parse(given.get(marks.SCOPE))
        names = chosen.names if isinstance(chosen, scope.Only) else None
        return cls(hco, Look(context, names, served), chosen, exclusions.parse(given.get(marks.EXCLUDED)), namespaces)
