"""KubeDescheduler, of which profiles and customizations differ from release to release."""

from dataclasses import dataclass

from virt_steward.objects.identity import Kind
from virt_steward_demo.simulation.schemas import Schema, anything, condition, flag, keyed, listed, number, record, text
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
    limits = {"total": number()} | ({"node": number()} if of.limits_per_node else {})
    spec = record(
        deschedulingIntervalSeconds=number(),
        evictionLimits=record(**limits),
        logLevel=text(*LOG_LEVELS, default="Normal"),
        managementState=text(),
        mode=text("Automatic", "Predictive", default="Predictive"),
        observedConfig=anything(),
        operatorLogLevel=text(*LOG_LEVELS, default="Normal"),
        profileCustomizations=_customizations(of),
        profiles=listed(text(*OLDEST_PROFILES, *of.more_profiles)),
        unsupportedConfigOverrides=anything(),
    )
    status = record(
        conditions=keyed(condition(), "type"), observedGeneration=number(), readyReplicas=number(), version=text()
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
        "devEnableEvictionsInBackground": flag(),
        "devHighNodeUtilizationThresholds": text("Minimal", "Modest", "Moderate", ""),
        "devLowNodeUtilizationThresholds": text(default="Medium"),
        "namespaces": record(excluded=listed(text()), included=listed(text())),
        "podLifetime": text(),
        "thresholdPriority": number(),
        "thresholdPriorityClassName": text(),
    }
    if release.knows_load:
        fields |= {
            "devActualUtilizationProfile": text(),
            "devDeviationThresholds": text(*DEVIATIONS),
            "devEnableSoftTainter": flag(),
            "devLowNodeUtilizationThresholds": text("Low", "Medium", "High", ""),
            "evictionLimits": record(node=number(), total=number()),
        }
    return record(**fields)


STUBS = (kube_descheduler(),)
