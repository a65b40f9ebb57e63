"""HyperConverged from one layout to the other: v1beta1 is flat, v1 goes by topic. Pure."""

from __future__ import annotations

from copy import deepcopy
from typing import TYPE_CHECKING, Any

from virt_steward_demo.simulation.kinds.hyperconverged import GROUP

if TYPE_CHECKING:
    from collections.abc import Iterable

    from virt_steward.kube.client import Object

Path = tuple[str, ...]

QUOTA = ("allowApplicationAwareClusterResourceQuota", "namespaceSelector", "vmiCalcConfigName")
VIRTUALIZATION = (
    "evictionStrategy",
    "higherWorkloadDensity",
    "ksmConfiguration",
    "liveMigrationConfig",
    "permittedHostDevices",
    "workloadUpdateStrategy",
)
PLACES: tuple[tuple[Path, Path], ...] = (
    *(((name,), ("virtualization", name)) for name in VIRTUALIZATION),
    *((("applicationAwareConfig", name), ("deployment", "applicationAwareConfig", name)) for name in QUOTA),
    (("deployVmConsoleProxy",), ("deployment", "deployVmConsoleProxy")),
    (("enableApplicationAwareQuota",), ("deployment", "applicationAwareConfig", "enable")),
    (("enableCommonBootImageImport",), ("workloadSources", "enableCommonBootImageImport")),
    (("infra", "nodePlacement"), ("deployment", "nodePlacements", "infra")),
    (("resourceRequirements", "vmiCPUAllocationRatio"), ("virtualization", "vmiCPUAllocationRatio")),
    (("uninstallStrategy",), ("deployment", "uninstallStrategy")),
    (("workloads", "nodePlacement"), ("deployment", "nodePlacements", "workload")),
)
"""Where a value is in the flat layout, and where in the other."""


def convert(obj: Object, version: str) -> Object:
    """The same object in the given version."""
    converted = {**obj, "apiVersion": f"{GROUP}/{version}"}
    if obj["apiVersion"] == converted["apiVersion"]:
        return obj
    spec = obj.get("spec") or {}
    return {**converted, "spec": _by_topic(spec) if version == "v1" else _flat(spec)}


def _by_topic(flat: Object) -> Object:
    spec = _moved(flat, PLACES)
    if gates := flat.get("featureGates"):
        states = {True: "Enabled", False: "Disabled"}
        spec["featureGates"] = [{"name": name, "state": states[on]} for name, on in sorted(gates.items())]
    return spec


def _flat(topics: Object) -> Object:
    spec = _moved(topics, ((topic, flat) for flat, topic in PLACES))
    if gates := topics.get("featureGates"):
        spec["featureGates"] = {gate["name"]: gate.get("state") != "Disabled" for gate in gates}
    return spec


def _moved(source: Object, places: Iterable[tuple[Path, Path]]) -> Object:
    target: Object = {}
    for here, there in places:
        value = _at(source, here)
        if value is not None:
            *parents, name = there
            place = target
            for parent in parents:
                place = place.setdefault(parent, {})
            place[name] = deepcopy(value)
    return target


def _at(value: Any, path: Path) -> Any:
    for name in path:
        value = value.get(name)
        if value is None:
            return None
    return value
