"""The frozen record of what was observed of the platform; what is wanted of each object follows from it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from virt_steward.controllers.autopilot import annotation_keys
from virt_steward.controllers.autopilot.overrides import exclusions, scope
from virt_steward.controllers.autopilot.overrides.scope import Activation

if TYPE_CHECKING:
    from virt_steward.catalog.context import AssetContext
    from virt_steward.controllers.autopilot.overrides.exclusions import Exclusions, UnreadableExclusions
    from virt_steward.controllers.autopilot.overrides.scope import Everything, Idle, Only
    from virt_steward.objects.identity import Regarding


class Served(Protocol):
    """Which resources a server has; discovery knows."""

    def serves(self, group: str, plural: str) -> bool: ...


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
    context: AssetContext
    """What conditions and templates read."""
    served: Served
    scope: Everything | Only | Idle
    exclusions: Exclusions | UnreadableExclusions
    namespaces: frozenset[str]
    """Those of the catalog that exist."""

    @classmethod
    def of(
        cls,
        hco: Regarding,
        context: AssetContext,
        served: Served,
        namespaces: frozenset[str],
        activation: Activation = Activation.OPT_IN,
    ) -> AutopilotObservation:
        """Complete it by what the HyperConverged's own annotations say."""
        annotations = context.hco.annotations
        return cls(
            hco,
            context,
            served,
            scope.parse(annotations.get(annotation_keys.SCOPE), activation),
            exclusions.parse(annotations.get(annotation_keys.EXCLUDED)),
            namespaces,
        )
