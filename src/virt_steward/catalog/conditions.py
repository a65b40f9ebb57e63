"""When an asset is wanted: each type of condition is a class that checks whether a context meets it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal

import msgspec

from virt_steward.catalog.filters import dig
from virt_steward.catalog.reads import KUBEVIRT_GATES, METRICS_SERVICE, Needs
from virt_steward.objects.paths import Pointer
from virt_steward.platform.hco import PREFIX
from virt_steward.platform.machineconfigs import KUBELET_SETTINGS, effective_kernel_argument

if TYPE_CHECKING:
    from collections.abc import Sequence

    from virt_steward.catalog.context import AssetContext
    from virt_steward.platform.machineconfigs import MachineConfigs


@dataclass(frozen=True, slots=True)
class Met:
    """The condition holds."""


@dataclass(frozen=True, slots=True)
class Unmet:
    """The condition does not hold."""

    why: str


@dataclass(frozen=True, slots=True)
class CannotTell:
    """What the condition depends on is unknown, which is not the same as unmet."""

    why: str


ConditionResult = Met | Unmet | CannotTell


class _Condition(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="type"):
    needs: ClassVar[Needs] = Needs()
    """What it reads besides the HCO."""

    @property
    def opt_in_key(self) -> str:
        """What a user sets to opt in; empty where the cluster decides."""
        return ""


class AnnotationCondition(_Condition, frozen=True, tag="annotation"):
    """The HyperConverged carries an annotation, with this value if one is given."""

    key: str
    value: str = ""

    def __post_init__(self) -> None:
        if not self.key.startswith(PREFIX) or self.key == PREFIX:
            raise ValueError(f"unknown annotation {self.key!r}: the autopilot reads only annotations {PREFIX}…")

    def __str__(self) -> str:
        return self.key

    @property
    def opt_in_key(self) -> str:
        return f"{self.key}={self.value}" if self.value else self.key

    def check(self, context: AssetContext) -> ConditionResult:
        actual = context.hco.annotations.get(self.key)
        if actual is not None and self.value in ("", actual):
            return Met()
        return _unmet(self.value or "any value", "absent" if actual is None else actual[:100])


class FeatureGateCondition(_Condition, frozen=True, tag="feature-gate"):
    """A feature gate of the HyperConverged is on."""

    value: str

    def __str__(self) -> str:
        return self.opt_in_key

    @property
    def opt_in_key(self) -> str:
        return f"featureGate:{self.value}"

    def check(self, context: AssetContext) -> ConditionResult:
        return Met() if context.hco.has_feature_gate(self.value) else _unmet("Enabled", "not enabled")


class KubeVirtFeatureGateCondition(_Condition, frozen=True, tag="kubevirt-feature-gate"):
    """A feature gate of KubeVirt is on, as its own object lists it: most are set by the operator, not by a person."""

    value: str

    needs: ClassVar[Needs] = Needs(objects=(KUBEVIRT_GATES,))

    def __str__(self) -> str:
        return self.opt_in_key

    @property
    def opt_in_key(self) -> str:
        return f"kubevirtFeatureGate:{self.value}"

    def check(self, context: AssetContext) -> ConditionResult:
        if KUBEVIRT_GATES.ref not in context.objects:
            return CannotTell("the KubeVirt object has not been read")
        gates = dig(context.objects[KUBEVIRT_GATES.ref] or {}, KUBEVIRT_GATES.paths[0])
        return Met() if isinstance(gates, list) and self.value in gates else _unmet("enabled", "not enabled")


class HcoFieldCondition(_Condition, frozen=True, tag="hco-field-unconfigured"):
    """A field of the HyperConverged is not set: it is absent, null or empty."""

    path: str

    def __post_init__(self) -> None:
        _ = self.pointer  # raises on an invalid pointer

    @property
    def pointer(self) -> Pointer:
        return Pointer.parse(self.path)

    def __str__(self) -> str:
        return self.opt_in_key

    @property
    def opt_in_key(self) -> str:
        return f"hcoUnconfigured:{'.'.join(self.pointer.tokens)}"

    def check(self, context: AssetContext) -> ConditionResult:
        return Met() if context.hco.value(self.pointer) in (None, {}) else _unmet("unconfigured", "configured")


class HardwareCondition(_Condition, frozen=True, tag="hardware-detection"):
    """At least one node has such hardware."""

    detector: Literal["pciDevicesPresent", "numaNodesPresent", "vfioCapable", "usbDevicesPresent", "gpuPresent"]

    needs: ClassVar[Needs] = Needs(nodes=True)

    def __str__(self) -> str:
        return self.detector

    def check(self, context: AssetContext) -> ConditionResult:
        if context.hardware is None:
            return CannotTell("the nodes have not been read")
        hardware = context.hardware
        found = {
            "pciDevicesPresent": hardware.pci,
            "numaNodesPresent": hardware.numa,
            "vfioCapable": hardware.vfio,
            "usbDevicesPresent": hardware.usb,
            "gpuPresent": hardware.gpu,
        }
        return Met() if found[self.detector] else _unmet("true", "false")


class ImageCondition(_Condition, frozen=True, tag="image"):
    """The installation names an image."""

    key: str

    def __str__(self) -> str:
        return f"image {self.key}"

    def check(self, context: AssetContext) -> ConditionResult:
        return Met() if self.key in context.images else _unmet("given", "absent")


class TopologyCondition(_Condition, frozen=True, tag="topology"):
    """The cluster has a certain shape, or runs on a certain platform."""

    field: Literal[
        "isHCP",
        "isCompact",
        "hasSchedulableMasters",
        "isAWS",
        "isAzure",
        "isGCP",
        "isBareMetal",
        "isVSphere",
        "isOpenStack",
    ]
    value: Literal["true", "false"] = "true"

    needs: ClassVar[Needs] = Needs(topology=True)

    def __str__(self) -> str:
        return self.field

    def check(self, context: AssetContext) -> ConditionResult:
        topology = context.topology
        if topology is None:
            return CannotTell("the topology has not been read")
        shapes = {
            "isHCP": topology.is_hcp,
            "isCompact": topology.is_compact,
            "hasSchedulableMasters": topology.has_schedulable_masters,
        }
        actual = "true" if shapes.get(self.field, self.field == f"is{topology.platform}") else "false"
        return Met() if actual == self.value else _unmet(self.value, actual)


class NotSetElsewhereCondition(_Condition, frozen=True, tag="not-set-elsewhere", rename="camel"):
    """Nobody else configures the same for the pool already.

    A second MachineConfig would reboot every node for nothing, and a drop-in of the kubelet would override what
    others have set in a KubeletConfig, or in a drop-in before it.
    """

    pool: str
    kernel_argument: str = ""
    swap: bool = False
    kubelet: tuple[str, ...] = ()
    """Settings of the kubelet."""

    needs: ClassVar[Needs] = Needs(machine_configs=True)

    def __post_init__(self) -> None:
        if [self.swap, bool(self.kubelet), bool(self.kernel_argument)].count(True) != 1:
            raise ValueError("exactly one of kernelArgument, swap and kubelet must be set")
        if unknown := sorted({*self.kubelet} - {*KUBELET_SETTINGS}):
            raise ValueError(f"unknown setting of the kubelet {unknown[0]!r}: add it to KUBELET_SETTINGS")

    def __str__(self) -> str:
        what = "swap" if self.swap else "the kubelet"
        return f"{self.kernel_argument or what} in pool {self.pool}"

    def check(self, context: AssetContext) -> ConditionResult:
        if context.machine_configs is None:
            return CannotTell("the MachineConfigs have not been read")
        setters = self._setters(context.machine_configs)
        return _unmet("set by nobody else", f"set by {', '.join(setters)}") if setters else Met()

    def _setters(self, known: MachineConfigs) -> Sequence[str]:
        if self.kubelet:
            return known.other_kubelets(self.pool, self.kubelet)
        others = known.others(self.pool)
        if self.swap:
            return [one.name for one in others if one.swap]
        given = effective_kernel_argument(self.kernel_argument.partition("=")[0], others)
        return [given.by] if given and given.argument == self.kernel_argument else []


class NoMetricsServiceCondition(_Condition, frozen=True, tag="no-metrics-service"):
    """The installation has no Service of its own for metrics: the autopilot runs with manifests of the Go operator."""

    needs: ClassVar[Needs] = Needs(objects=(METRICS_SERVICE,))

    def __str__(self) -> str:
        return f"Service {METRICS_SERVICE.name} of the installation"

    def check(self, context: AssetContext) -> ConditionResult:
        if METRICS_SERVICE.ref not in context.objects:
            return CannotTell("it has not been read")
        return _unmet("absent", "present") if context.objects[METRICS_SERVICE.ref] else Met()


Condition = (
    AnnotationCondition
    | FeatureGateCondition
    | KubeVirtFeatureGateCondition
    | HardwareCondition
    | ImageCondition
    | HcoFieldCondition
    | TopologyCondition
    | NotSetElsewhereCondition
    | NoMetricsServiceCondition
)


def _unmet(expected: str, actual: str) -> Unmet:
    return Unmet(f"expected={expected}, actual={actual}")
