"""Moves virtual machines away from busy nodes: pressure metrics by a kernel argument, then the descheduler."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from virt_steward.apis.profiles import LOAD_AWARE, LoadAwareOptions, ProfileOptions
from virt_steward.apis.virtplatformconfig import Input
from virt_steward.controllers.advisor.profiles.profile import Prerequisite, Profile, ProfileDescription
from virt_steward.objects.identity import Key, Kind, Ref
from virt_steward.objects.paths import Pointer
from virt_steward.plans.fields import fields_set_by
from virt_steward.plans.intent import Impacts, Intent
from virt_steward.platform.hco import HYPERCONVERGED
from virt_steward.platform.machineconfigs import MACHINE_CONFIG, ROLE, KernelArgument, effective_kernel_argument

if TYPE_CHECKING:
    from virt_steward.controllers.advisor.options import AdvisorOptions
    from virt_steward.controllers.advisor.profiles.profile import ProfileContext

KUBE_DESCHEDULER = Kind("operator.openshift.io", "KubeDescheduler", "kubedeschedulers")
CRD = "kubedeschedulers.operator.openshift.io"
PSI = Ref(MACHINE_CONFIG, Key("", "99-worker-psi-karg"))
DESCHEDULER = Ref(KUBE_DESCHEDULER, Key("openshift-kube-descheduler-operator", "cluster"))

POOL = "worker"
KEY = "psi"
ARGUMENT = f"{KEY}=1"
BY_LOAD = ("KubeVirtRelieveAndMigrate", "DevKubeVirtRelieveAndMigrate")
NOT_BY_LOAD = "LongLifecycle"
KEPT = ("AffinityAndTaints", "SoftTopologyAndDuplicates")

PROFILES = Pointer(("spec", "profiles"))
CUSTOMIZATIONS = Pointer(("spec", "profileCustomizations"))
LIMITS = Pointer(("spec", "evictionLimits"))
CUSTOMIZED = (
    "devActualUtilizationProfile",
    "devDeviationThresholds",
    "devEnableEvictionsInBackground",
    "devEnableSoftTainter",
)


def profile(_: AdvisorOptions) -> Profile:
    return Profile(
        name=LOAD_AWARE,
        about=ProfileDescription(
            category="scheduling",
            description="Moves virtual machines away from nodes under load, measured by pressure stall information",
            impact="Medium",
            impact_summary="Medium - May require node reboots if PSI metrics are enabled",
            options="deschedulingIntervalSeconds, mode, enablePSIMetrics, devDeviationThresholds, evictionLimitTotal,"
            " evictionLimitNode (in spec.options.loadAware)",
        ),
        targets=(PSI, DESCHEDULER),
        prerequisites=_prerequisites,
        intents=_intents,
        inputs=_inputs,
        schemas={CRD: (PROFILES, *(CUSTOMIZATIONS / name for name in CUSTOMIZED), LIMITS / "total", LIMITS / "node")},
    )


def _prerequisites(options: ProfileOptions) -> tuple[Prerequisite, ...]:
    chosen = options.of(LoadAwareOptions)
    needed = [Prerequisite(KUBE_DESCHEDULER, "install the Descheduler Operator")]
    if chosen.enable_psi_metrics:
        needed.append(Prerequisite(MACHINE_CONFIG, "PSI metrics need the Machine Config Operator; or turn them off"))
    if chosen.eviction_limit_total is None or chosen.eviction_limit_node is None:
        needed.append(Prerequisite(HYPERCONVERGED, "install OpenShift Virtualization, or set both eviction limits"))
    return tuple(needed)


def _inputs(context: ProfileContext) -> tuple[Input, ...]:
    options, limits = context.options.of(LoadAwareOptions), context.live_migration
    facts = context.schemas.get(CRD)
    found = [Input("KubeDescheduler profile", _profile(context))]
    known = [name for name in CUSTOMIZED if facts and facts.has(CUSTOMIZATIONS / name)]
    found.append(Input("KubeDescheduler customizations", ", ".join(known)))
    if options.eviction_limit_total is None:
        found.append(Input("parallelMigrationsPerCluster", str(limits.per_cluster)))
    if options.eviction_limit_node is None and facts and facts.has(LIMITS / "node"):
        found.append(Input("parallelOutboundMigrationsPerNode", str(limits.per_node)))
    if options.enable_psi_metrics:
        found.append(Input(f"MachineConfig with {ARGUMENT}", _psi_by(context) or "none"))
    return tuple(found)


def _intents(context: ProfileContext) -> tuple[Intent, ...]:
    psi = (_psi(context),) if context.options.of(LoadAwareOptions).enable_psi_metrics else ()
    return (*psi, _descheduler(context))


def _psi(context: ProfileContext) -> Intent:
    desired = {
        "apiVersion": f"{PSI.kind.group}/v1",
        "kind": PSI.kind.name,
        "metadata": {"name": PSI.key.name, "labels": {ROLE: POOL}},
        "spec": {"kernelArguments": [ARGUMENT]},
    }
    by = _psi_by(context)
    return Intent(
        name="enable-psi-metrics",
        desired=desired,
        fields=fields_set_by(desired),
        impacts=Impacts(creates="High", changes="High"),
        message=f"MachineConfig '{PSI.key.name}' will turn on PSI metrics by the kernel argument {ARGUMENT}"
        + _psi_off(context),
        moot=f"PSI metrics are already effective in MachineConfigPool '{POOL}', by MachineConfig '{by}'" if by else "",
    )


def _psi_by(context: ProfileContext) -> str:
    """Who else turns it on, unless we do so already."""
    given = _psi_of_others(context)
    if context.targets.get(PSI) is not None or given is None or given.argument != ARGUMENT:
        return ""
    return given.by


def _psi_off(context: ProfileContext) -> str:
    """A warning, if a MachineConfig that comes after ours turns it off."""
    given = _psi_of_others(context)
    if given is None or given.argument == ARGUMENT or given.by < PSI.key.name:
        return ""
    return f", but MachineConfig '{given.by}' overrides it with {given.argument}"


def _psi_of_others(context: ProfileContext) -> KernelArgument | None:
    return effective_kernel_argument(KEY, context.selected_by(POOL, but=PSI.key.name))


def _descheduler(context: ProfileContext) -> Intent:
    chosen = _profile(context)
    desired = {
        "apiVersion": f"{KUBE_DESCHEDULER.group}/v1",
        "kind": KUBE_DESCHEDULER.name,
        "metadata": {"name": DESCHEDULER.key.name, "namespace": DESCHEDULER.key.namespace},
        "spec": _spec(context, chosen),
    }
    message = f"KubeDescheduler '{DESCHEDULER.key.name}' will be configured with profile '{chosen}'"
    if chosen not in BY_LOAD:
        message += ": the installed release knows no profile that looks at load, so this is not load-aware"
    return Intent(
        name="configure-descheduler",
        desired=desired,
        fields=fields_set_by(desired),
        impacts=Impacts(creates="Medium", changes="Low"),
        message=message,
    )


def _spec(context: ProfileContext, chosen: str) -> dict[str, Any]:
    options = context.options.of(LoadAwareOptions)
    wanted = {
        "devActualUtilizationProfile": "PrometheusCPUCombined",
        "devDeviationThresholds": options.dev_deviation_thresholds,
        "devEnableEvictionsInBackground": True,
        "devEnableSoftTainter": True,
    }
    limits = {
        "total": options.eviction_limit_total or context.live_migration.per_cluster,
        "node": options.eviction_limit_node or context.live_migration.per_node,
    }
    spec: dict[str, Any] = {
        "managementState": "Managed",
        "mode": options.mode,
        "deschedulingIntervalSeconds": options.descheduling_interval_seconds,
        "profiles": [*_kept(context), chosen],
    }
    parts = {
        "profileCustomizations": _known(context, CUSTOMIZATIONS, wanted),
        "evictionLimits": _known(context, LIMITS, limits),
    }
    return spec | {name: part for name, part in parts.items() if part}


def _known(context: ProfileContext, at: Pointer, wanted: dict[str, Any]) -> dict[str, Any]:
    """As far as the installed release has these fields: others would be dropped, and look like drift."""
    facts = context.schemas.get(CRD)
    return {name: value for name, value in wanted.items() if facts and facts.has(at / name)}


def _profile(context: ProfileContext) -> str:
    facts = context.schemas.get(CRD)
    offered = facts.enum(PROFILES) if facts else ()
    return next((name for name in BY_LOAD if name in offered), NOT_BY_LOAD)


def _kept(context: ProfileContext) -> list[str]:
    """Profiles that go together with ours stay, in the order in which they are."""
    live = context.targets.get(DESCHEDULER) or {}
    return [name for name in (live.get("spec") or {}).get("profiles") or () if name in KEPT]
