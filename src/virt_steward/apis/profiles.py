"""The profiles and their options: one type and one field of ProfileOptions for each profile that has options."""

from typing import TYPE_CHECKING, Annotated, Literal

import msgspec
from msgspec import Meta

from virt_steward.apis.meta import LabelSelector
from virt_steward.apis.profileoptions import AnyOptions, OptionsStruct, options_fields
from virt_steward.apis.schema import INT32, ApiStruct, rule

LOAD_AWARE = "load-aware-rebalancing"
HIGHER_DENSITY = "virt-higher-density"
EXAMPLE = "example-profile"


class LoadAwareOptions(OptionsStruct, frozen=True):
    """How virtual machines are moved away from busy nodes."""

    profile = LOAD_AWARE

    descheduling_interval_seconds: Annotated[
        int, Meta(description="Seconds between two evaluations of the load of the nodes.", ge=60, le=86400), INT32
    ] = 60
    mode: Annotated[
        Literal["Automatic", "Predictive"],
        Meta(description="Automatic moves virtual machines; Predictive only reports which it would move."),
    ] = "Automatic"
    enable_psi_metrics: Annotated[
        bool,
        Meta(description="Turn on pressure stall information on the workers, by a kernel argument: they reboot."),
    ] = msgspec.field(default=True, name="enablePSIMetrics")
    dev_deviation_thresholds: Annotated[
        Literal["Low", "Medium", "High", "AsymmetricLow", "AsymmetricMedium", "AsymmetricHigh"],
        Meta(description="How far from the average a node's load must be to count as busy or idle."),
    ] = "AsymmetricLow"
    eviction_limit_total: Annotated[
        Annotated[int, Meta(ge=1, le=1000), INT32] | None,
        Meta(description="Evictions at a time in the cluster; unset: as many as HyperConverged allows migrations."),
    ] = None
    eviction_limit_node: Annotated[
        Annotated[int, Meta(ge=1, le=100), INT32] | None,
        Meta(description="Evictions at a time from a node; unset: as many as HyperConverged allows migrations."),
    ] = None


class KsmConfiguration(ApiStruct, frozen=True):
    """Whether equal memory pages are shared between machines."""

    enabled: Annotated[
        bool, Meta(description="Share equal memory pages; false turns it off, even if somebody else turned it on.")
    ] = True
    node_label_selector: Annotated[
        LabelSelector | None, Meta(description="On which nodes; unset means on all of them.")
    ] = None


_NEEDS_SWAP = "memoryToRequestRatio > 120 requires enableSwap=true"


class HigherDensityOptions(OptionsStruct, frozen=True):
    """How more virtual machines fit on a node."""

    profile = HIGHER_DENSITY
    rules = (rule("self.memoryToRequestRatio <= 120 || self.enableSwap", _NEEDS_SWAP),)

    enable_swap: Annotated[
        bool, Meta(description="Let workers swap to the partition labelled CNV_SWAP: they reboot once.")
    ] = True
    ksm_configuration: Annotated[
        KsmConfiguration | None, Meta(description="Whether equal memory pages are shared; unset means on all nodes.")
    ] = None
    memory_to_request_ratio: Annotated[
        int, Meta(description="Memory promised to machines, in percent of what they request.", ge=100, le=300), INT32
    ] = 150

    def contradiction(self) -> str:
        return _NEEDS_SWAP if self.memory_to_request_ratio > 120 and not self.enable_swap else ""


class ProfileOptions(ApiStruct, frozen=True):
    """The options of the profile; only the field of that profile may be set.

    A profile with options is one field here; `OPTIONS_OF` and all that depends on it follow.
    """

    load_aware: Annotated[LoadAwareOptions | None, Meta(description="Options of load-aware-rebalancing.")] = None
    virt_higher_density: Annotated[HigherDensityOptions | None, Meta(description="Options of virt-higher-density.")] = (
        None
    )

    def of(self, kind: type[AnyOptions]) -> AnyOptions:
        """The options of this type; the defaults if they are not set."""
        found: AnyOptions | None = getattr(self, OPTIONS_OF[kind.profile].attribute)
        return found or kind()

    def contradiction(self) -> str:
        """What the CEL rules of the CRD refuse of these options though each is valid alone; empty if nothing."""
        chosen = (getattr(self, one.attribute) for one in OPTIONS_OF.values())
        return next((found for one in chosen if one and (found := one.contradiction())), "")


OPTIONS_OF = options_fields(ProfileOptions)
"""The table of profiles with options. The CEL rules, ProfileName, forms, `--set` and contexts follow from it."""


PROFILES_WITHOUT_OPTIONS = (EXAMPLE,)


if TYPE_CHECKING:
    ProfileName = str
else:
    ProfileName = Literal[(*OPTIONS_OF, *PROFILES_WITHOUT_OPTIONS)]
