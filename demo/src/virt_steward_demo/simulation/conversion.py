"""Converts HyperConverged between v1beta1, whose spec is flat, and v1, whose spec is grouped by topic. Pure."""

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
FIELD_PATHS: tuple[tuple[Path, Path], ...] = (
    *(((name,), ("virtualization", name)) for name in VIRTUALIZATION),
    *((("applicationAwareConfig", name), ("deployment", "applicationAwareConfig", name)) for name in QUOTA),
    (("deployVmConsoleProxy",), ("deployment", "deployVmConsoleProxy")),
    (("enableApplicationAwareQuota",), ("deployment", "applicationAwareConfig", "enable")),
    (("enableCommonBootImageImport",), ("workloadSources", "enableCommonBootImageImport")),
    (("infra", "nodePlacement"), ("deployment", "nodePlacements", "infra")),
    (("resourceRequirements", "vmiCPUAllocationRatio"), ("virtualization", "vmiCPUAllocationRatio")),
    (("tlsSecurityProfile",), ("security", "tlsSecurityProfile")),
    (("uninstallStrategy",), ("deployment", "uninstallStrategy")),
    (("workloads", "nodePlacement"), ("deployment", "nodePlacements", "workload")),
)
"""The path of each value in the flat spec, and in the grouped one."""


def convert(obj: Object, version: str) -> Object:
    """The same object in the given version."""
    converted = {**obj, "apiVersion": f"{GROUP}/{version}"}
    if obj["apiVersion"] == converted["apiVersion"]:
        return obj
    spec = obj.get("spec") or {}
    return {**converted, "spec": _grouped(spec) if version == "v1" else _flat(spec)}


def _grouped(flat: Object) -> Object:
    spec = _moved(flat, FIELD_PATHS)
    if gates := flat.get("featureGates"):
        states = {True: "Enabled", False: "Disabled"}
        spec["featureGates"] = [{"name": name, "state": states[on]} for name, on in sorted(gates.items())]
    return spec


def _flat(topics: Object) -> Object:
    spec = _moved(topics, ((topic, flat) for flat, topic in FIELD_PATHS))
    if gates := topics.get("featureGates"):
        spec["featureGates"] = {gate["name"]: gate.get("state") != "Disabled" for gate in gates}
    return spec


def _moved(source: Object, paths: Iterable[tuple[Path, Path]]) -> Object:
    target: Object = {}
    for here, there in paths:
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
