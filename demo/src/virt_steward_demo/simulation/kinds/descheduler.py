"""KubeDescheduler, whose profiles and customizations differ between releases."""

from dataclasses import dataclass

from virt_steward.objects.identity import Kind
from virt_steward_demo.simulation.schemas import (
    Schema,
    boolean,
    condition,
    integer,
    map_list,
    plain_list,
    record,
    string,
    untyped,
)
from virt_steward_demo.simulation.stubs import Stub, StubVersion

GROUP = "operator.openshift.io"
KUBE_DESCHEDULER = Kind(GROUP, "KubeDescheduler", "kubedeschedulers")

OLDEST_PROFILES = (
    "AffinityAndTaints",
    "TopologyAndDuplicates",
    "LifecycleAndUtilization",
    "DevPreviewLongLifecycle",
    "LongLifecycle",
    "SoftTopologyAndDuplicates",
    "EvictPodsWithLocalStorage",
    "EvictPodsWithPVC",
    "CompactAndScale",
)
DEVIATIONS = ("Low", "Medium", "High", "AsymmetricLow", "AsymmetricMedium", "AsymmetricHigh", "")
LOG_LEVELS = ("", "Normal", "Debug", "Trace", "TraceAll")


@dataclass(frozen=True, slots=True)
class Release:
    """What one release of the descheduler's operator added."""

    name: str
    more_profiles: tuple[str, ...] = ()
    knows_load: bool = True
    """Customizations that the KubeVirt profiles need."""
    limits_per_node: bool = False
    singleton: bool = False


RELEASES = (
    Release("v510", knows_load=False),
    Release("v514", ("DevKubeVirtRelieveAndMigrate",)),
    Release("v521", ("DevKubeVirtRelieveAndMigrate",)),
    Release(
        "v532", ("DevKubeVirtRelieveAndMigrate", "KubeVirtRelieveAndMigrate"), limits_per_node=True, singleton=True
    ),
)
LATEST = RELEASES[-1].name


def kube_descheduler(release: str = LATEST) -> Stub:
    """The kind as a release defines it."""
    of = next(known for known in RELEASES if known.name == release)
    limits = {"total": integer()} | ({"node": integer()} if of.limits_per_node else {})
    spec = record(
        deschedulingIntervalSeconds=integer(),
        evictionLimits=record(**limits),
        logLevel=string(*LOG_LEVELS, default="Normal"),
        managementState=string(),
        mode=string("Automatic", "Predictive", default="Predictive"),
        observedConfig=untyped(),
        operatorLogLevel=string(*LOG_LEVELS, default="Normal"),
        profileCustomizations=_customizations(of),
        profiles=plain_list(string(*OLDEST_PROFILES, *of.more_profiles)),
        unsupportedConfigOverrides=untyped(),
    )
    status = record(
        conditions=map_list(condition(), "type"),
        observedGeneration=integer(),
        readyReplicas=integer(),
        version=string(),
    )
    version = StubVersion(
        "v1",
        spec,
        status,
        required=("spec",) if of.knows_load else (),
        rules=(("self.metadata.name == 'cluster'", "there is one descheduler, and its name is cluster"),)
        if of.singleton
        else (),
    )
    return Stub(KUBE_DESCHEDULER, "Namespaced", (version,))


def _customizations(release: Release) -> Schema:
    fields = {
        "devEnableEvictionsInBackground": boolean(),
        "devHighNodeUtilizationThresholds": string("Minimal", "Modest", "Moderate", ""),
        "devLowNodeUtilizationThresholds": string(default="Medium"),
        "namespaces": record(excluded=plain_list(string()), included=plain_list(string())),
        "podLifetime": string(),
        "thresholdPriority": integer(),
        "thresholdPriorityClassName": string(),
    }
    if release.knows_load:
        fields |= {
            "devActualUtilizationProfile": string(),
            "devDeviationThresholds": string(*DEVIATIONS),
            "devEnableSoftTainter": boolean(),
            "devLowNodeUtilizationThresholds": string("Low", "Medium", "High", ""),
            "evictionLimits": record(node=integer(), total=integer()),
        }
    return record(**fields)


STUBS = (kube_descheduler(),)
