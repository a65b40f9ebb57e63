"""A profile: a declaration of what it writes and reads, and pure functions from that to its intents."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from virt_steward.apis.profiles import ProfileOptions
from virt_steward.apis.virtplatformconfig import API_VERSION, Impact, Input
from virt_steward.objects.identity import Kind, Ref
from virt_steward.objects.ownership import owned_by
from virt_steward.platform.hco import AUTOPILOT_SCOPE, LiveMigration
from virt_steward.platform.machineconfigs import MACHINE_CONFIG
from virt_steward.ssa.managers import AUTOPILOT

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from virt_steward.objects.paths import Pointer
    from virt_steward.objects.schemafacts import SchemaFacts
    from virt_steward.plans.intent import Intent
    from virt_steward.platform.hco import Hco
    from virt_steward.platform.machineconfigs import MachineConfigFacts
    from virt_steward.platform.pools import Pool

Object = dict[str, Any]

PREFIX = "advisor.kubevirt.io"
AUTO_CREATED = f"{PREFIX}/auto-created"
"""On a VirtPlatformConfig: `true` if the advisor created it to offer the profile."""
DESCRIPTION = f"{PREFIX}/description"
"""On a VirtPlatformConfig: what the profile does."""
IMPACT_SUMMARY = f"{PREFIX}/impact-summary"
"""On a VirtPlatformConfig: what it may cost."""
DOCUMENTATION_URL = f"{PREFIX}/documentation-url"
"""On a VirtPlatformConfig: its page below `--profile-docs-url`, if that is set."""
PREREQUISITES = f"{PREFIX}/prerequisites"
"""On a VirtPlatformConfig: what must be installed."""
OPTIONS = f"{PREFIX}/options"
"""On a VirtPlatformConfig: the options that it takes."""
CATEGORY = f"{PREFIX}/category"
"""Label on a VirtPlatformConfig: the kind of profile, such as `scheduling`."""

DEFAULTS = ProfileOptions()


@dataclass(frozen=True, slots=True)
class ProfileContext:
    """All that a profile may look at, as its declaration says; nothing else reaches it."""

    options: ProfileOptions = DEFAULTS
    hco: Hco | None = None
    schemas: Mapping[str, SchemaFacts] = field(default_factory=dict)
    """By the name of the CRD."""
    configs: tuple[MachineConfigFacts, ...] = ()
    """MachineConfigs."""
    pools: tuple[Pool, ...] = ()
    targets: Mapping[Ref, Object | None] = field(default_factory=dict)
    """The live objects that the profile may write; None if there is none."""

    @property
    def live_migration(self) -> LiveMigration:
        return self.hco.live_migration if self.hco else LiveMigration()

    @property
    def is_autopilot_on(self) -> bool:
        """Whether somebody turned the autopilot on, or it owns fields of a target."""
        scope = self.hco.annotations.get(AUTOPILOT_SCOPE, "") if self.hco else ""
        is_writing = any(live and owned_by(live, AUTOPILOT.name) for live in self.targets.values())
        return scope not in ("", "false") or is_writing

    def selected_by(self, pool: str, *, but: str) -> tuple[MachineConfigFacts, ...]:
        """The MachineConfigs that a pool selects, except for ours, in the order in which they are merged."""
        chosen = next((one for one in self.pools if one.name == pool), None)
        if chosen is None:
            return ()
        selector = chosen.spec.machine_config_selector
        found = (one for one in self.configs if one.name != but and selector.selects(one.metadata.labels))
        return tuple(sorted(found, key=lambda one: one.name))


@dataclass(frozen=True, slots=True)
class Prerequisite:
    """A kind that must be served, or an object that must be there."""

    what: Kind | Ref
    remedy: str
    """What to do if it is missing."""

    @property
    def kind(self) -> Kind:
        return self.what.kind if isinstance(self.what, Ref) else self.what

    @property
    def missing(self) -> str:
        """The sentence for users if it is not met."""
        fact = f"{self.what} not found" if isinstance(self.what, Ref) else f"{self.what.name} CRD is missing"
        return f"{fact} ({self.remedy})"

    def __str__(self) -> str:
        named = str(self.what) if isinstance(self.what, Ref) else f"{self.what.name} ({self.what.group})"
        return f"{named}: {self.remedy}"


@dataclass(frozen=True, slots=True)
class ProfileDescription:
    """What users read before they activate a profile."""

    category: str
    description: str
    impact: Impact
    """The highest impact to expect."""
    impact_summary: str
    options: str
    """Its options in a line."""
    is_advertised: bool = True


@dataclass(frozen=True, slots=True)
class Profile:
    name: str
    about: ProfileDescription
    targets: tuple[Ref, ...]
    """All objects that it may ever write."""
    prerequisites: Callable[[ProfileOptions], tuple[Prerequisite, ...]]
    """What it needs, by its options."""
    intents: Callable[[ProfileContext], tuple[Intent, ...]]
    """What it wants, in the order of execution."""
    inputs: Callable[[ProfileContext], tuple[Input, ...]]
    """What that depends on besides options and targets: a change of it needs a new review."""
    schemas: Mapping[str, tuple[Pointer, ...]] = field(default_factory=dict)
    """The fields of CRDs that it asks about."""

    @property
    def uses_machine_configs(self) -> bool:
        """Whether MachineConfigs and their pools are read and watched for it: its own take effect as nodes reboot."""
        return any(ref.kind == MACHINE_CONFIG for ref in self.targets)

    def advertisement(self, docs_url: str) -> dict[str, Any]:
        """The object that offers this profile on the cluster, inactive (action Ignore) until somebody activates it."""
        needed = "; ".join(str(one) for one in self.prerequisites(ProfileOptions()))
        annotations = {
            DESCRIPTION: self.about.description,
            IMPACT_SUMMARY: self.about.impact_summary,
            **({DOCUMENTATION_URL: f"{docs_url}/{self.name}"} if docs_url else {}),
            PREREQUISITES: needed,
            OPTIONS: self.about.options,
            AUTO_CREATED: "true",
        }
        return {
            "apiVersion": API_VERSION,
            "kind": "VirtPlatformConfig",
            "metadata": {
                "name": self.name,
                "annotations": annotations,
                "labels": {CATEGORY: self.about.category},
            },
            "spec": {"profile": self.name, "action": "Ignore"},
        }
