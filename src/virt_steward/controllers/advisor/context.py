"""All that a profile may look at, as its declaration says; nothing else reaches it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from virt_steward.apis.virtplatformconfig import HigherDensityOptions, LoadAwareOptions, ProfileOptions
from virt_steward.platform.hco import LiveMigration

if TYPE_CHECKING:
    from collections.abc import Mapping

    from virt_steward.objects.identity import Ref
    from virt_steward.objects.schemafacts import SchemaFacts
    from virt_steward.platform.hco import Hco
    from virt_steward.platform.machineconfigs import MachineConfigFacts
    from virt_steward.platform.pools import Pool

Object = dict[str, Any]


DEFAULTS = ProfileOptions()


@dataclass(frozen=True, slots=True)
class ProfileContext:
    """One profile's view of the cluster."""

    options: ProfileOptions = DEFAULTS
    hco: Hco | None = None
    schemas: Mapping[str, SchemaFacts] = field(default_factory=dict)
    """By CRD."""
    configs: tuple[MachineConfigFacts, ...] = ()
    """MachineConfigs."""
    pools: tuple[Pool, ...] = ()
    targets: Mapping[Ref, Object | None] = field(default_factory=dict)
    """What the profile may write, as it is now."""

    @property
    def load_aware(self) -> LoadAwareOptions:
        return self.options.load_aware or LoadAwareOptions()

    @property
    def higher_density(self) -> HigherDensityOptions:
        return self.options.virt_higher_density or HigherDensityOptions()

    @property
    def live_migration(self) -> LiveMigration:
        return self.hco.live_migration if self.hco else LiveMigration()

    def selected_by(self, pool: str, *, but: str) -> tuple[MachineConfigFacts, ...]:
        """The MachineConfigs that a pool selects, but for ours, in the order in which they are merged."""
        chosen = next((one for one in self.pools if one.name == pool), None)
        if chosen is None:
            return ()
        selector = chosen.spec.machine_config_selector
        found = (one for one in self.configs if one.name != but and selector.selects(one.metadata.labels))
        return tuple(sorted(found, key=lambda one: one.name))
