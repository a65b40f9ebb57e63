"""The frozen record of what was seen of the platform, from which it follows what is wanted of each object."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from virt_steward.catalog.report import AssetInputs
from virt_steward.controllers.autopilot import annotation_keys
from virt_steward.controllers.autopilot.overrides import exclusions, scope

if TYPE_CHECKING:
    from virt_steward.catalog.context import AssetContext
    from virt_steward.catalog.report import Served
    from virt_steward.controllers.autopilot.overrides.exclusions import Exclusions, UnreadableExclusions
    from virt_steward.controllers.autopilot.overrides.scope import Everything, Idle, Only
    from virt_steward.objects.identity import Regarding


@dataclass(frozen=True, slots=True)
class ServedKinds:
    """The resources of the catalog that the server knows."""

    resources: frozenset[tuple[str, str]]

    def serves(self, group: str, plural: str) -> bool:
        return (group, plural) in self.resources


@dataclass(frozen=True, slots=True)
class AutopilotObservation:
    """The same for all assets, until something of it changes."""

    hco: Regarding
    look: AssetInputs
    """What the catalog's filters and templates see."""
    scope: Everything | Only | Idle
    exclusions: Exclusions | UnreadableExclusions
    namespaces: frozenset[str]
    """Those of the catalog that exist."""

    @classmethod
    def of(
        cls, hco: Regarding, context: AssetContext, served: Served, namespaces: frozenset[str]
    ) -> AutopilotObservation:
        """Read what the HyperConverged's own annotations say."""
        given = context.hco.annotations
        chosen = scope.parse(given.get(annotation_keys.SCOPE))
        names = chosen.names if isinstance(chosen, scope.Only) else None
        return cls(
            hco,
            AssetInputs(context, names, served),
            chosen,
            exclusions.parse(given.get(annotation_keys.EXCLUDED)),
            namespaces,
        )
