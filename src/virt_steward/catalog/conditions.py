"""When an asset is wanted: each type of condition is a class, and says of a context whether it is met."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal

import msgspec

from virt_steward.catalog.reads import Needs
from virt_steward.objects.paths import Pointer
from virt_steward.platform.machineconfigs import effective_argument

if TYPE_CHECKING:
    from collections.abc import Sequence

    from virt_steward.catalog.context import AssetContext
    from virt_steward.platform.machineconfigs import MachineConfigs


@dataclass(frozen=True, slots=True)
class Met:
    """The condition holds."""


@dataclass(frozen=True, slots=True)
class Unmet:
    """It does not."""

    why: str


@dataclass(frozen=True, slots=True)
class CannotTell:
    """What it asks for is not known, which is not the same as unmet."""

    why: str


Verdict = Met | Unmet | CannotTell


class _Condition(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="type"):
    needs: ClassVar[Needs] = Needs()
    """What it reads besides the HCO."""

    @property
    def asks_for(self) -> str:
        """How a person opts in by it; empty where the cluster decides."""
        return ""


class Annotation(_Condition, frozen=True, tag="annotation"):
    """The HCO carries an annotation, with this value if one is given."""

    key: str
    value: str = ""

    def __str__(self) -> str:
        return self.key

    @property
    def asks_for(self) -> str:
        return f"{self.key}={self.value}" if self.value else self.key

    def check(self, context: AssetContext) -> Verdict:
        actual = context.hco.annotations.get(self.key)
        if actual is not None and self.value in ("", actual):
            return Met()
        return _unmet(self.value or "any value", "absent" if actual is None else actual)


class FeatureGate(_Condition, frozen=True, tag="feature-gate"):
    """A feature gate of the HCO is on."""

    value: str

    def __str__(self) -> str:
        return self.asks_for

    @property
    def asks_for(self) -> str:
        return f"featureGate:{self.value}"

    def check(self, context: AssetContext) -> Verdict:
        return Met() if context.hco.has_feature_gate(self.value) else _unmet("Enabled", "not enabled")


class HcoFieldUnconfigured(_Condition, frozen=True, tag="hco-field-unconfigured"):
    """Nobody has set a field of the HCO: it is absent, null or empty."""

    path: str

    def __post_init__(self) -> None:
        _ = self.pointer  # which refuses what is none

    @property
    def pointer(self) -> Pointer:
        return Pointer.parse(self.path)

    def __str__(self) -> str:
        return self.asks_for

    @property
    def asks_for(self) -> str:
        return f"hcoUnconfigured:{'.'.join(self.pointer.tokens)}"

    def check(self, context: AssetContext) -> Verdict:
        return Met() if context.hco.value(self.pointer) in (None, {}) else _unmet("unconfigured", "configured")


class HardwareDetection(_Condition, frozen=True, tag="hardware-detection"):
    """Some node has such hardware."""

    detector: Literal["pciDevicesPresent", "numaNodesPresent", "vfioCapable", "usbDevicesPresent", "gpuPresent"]

    needs: ClassVar[Needs] = Needs(nodes=True)

    def __str__(self) -> str:
        return self.detector

    def check(self, context: AssetContext) -> Verdict:
        if context.hardware is None:
            return CannotTell("the nodes are not known")
        seen = context.hardware
        found = {
            "pciDevicesPresent": seen.pci,
            "numaNodesPresent": seen.numa,
            "vfioCapable": seen.vfio,
            "usbDevicesPresent": seen.usb,
            "gpuPresent": seen.gpu,
        }
        return Met() if found[self.detector] else _unmet("true", "false")


class Image(_Condition, frozen=True, tag="image"):
    """The installation names an image."""

    key: str

    def __str__(self) -> str:
        return f"image {self.key}"

    def check(self, context: AssetContext) -> Verdict:
        return Met() if self.key in context.images else _unmet("given", "absent")


class Topology(_Condition, frozen=True, tag="topology"):
    """The cluster is of some shape, or on some platform."""

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

    def check(self, context: AssetContext) -> Verdict:
        seen = context.topology
        if seen is None:
            return CannotTell("the topology is not known")
        shapes = {
            "isHCP": seen.is_hcp,
            "isCompact": seen.is_compact,
            "hasSchedulableMasters": seen.has_schedulable_masters,
        }
        actual = "true" if shapes.get(self.field, self.field == f"is{seen.platform}") else "false"
        return Met() if actual == self.value else _unmet(self.value, actual)


class NotSetElsewhere(_Condition, frozen=True, tag="not-set-elsewhere", rename="camel"):
    """Nobody else sets it for the pool already.

    A second MachineConfig would reboot every node for nothing, and a newer KubeletConfig displace an older one.
    """

    pool: str
    kernel_argument: str = ""
    swap: bool = False
    kubelet: bool = False

    needs: ClassVar[Needs] = Needs(machine_configs=True)

    def __post_init__(self) -> None:
        if [self.swap, self.kubelet, bool(self.kernel_argument)].count(True) != 1:
            raise ValueError("it asks for one of these: a kernelArgument, swap, kubelet")

    def __str__(self) -> str:
        what = "swap" if self.swap else "the kubelet"
        return f"{self.kernel_argument or what} in pool {self.pool}"

    def check(self, context: AssetContext) -> Verdict:
        if context.machine_configs is None:
            return CannotTell("the MachineConfigs are not known")
        setters = self._setters(context.machine_configs)
        return _unmet("set by nobody else", f"set by {', '.join(setters)}") if setters else Met()

    def _setters(self, known: MachineConfigs) -> Sequence[str]:
        if self.kubelet:
            return known.other_kubelets(self.pool)
        others = known.others(self.pool)
        if self.swap:
            return [one.name for one in others if one.swap]
        given = effective_argument(self.kernel_argument.partition("=")[0], others)
        return [given.by] if given and given.argument == self.kernel_argument else []


Condition = Annotation | FeatureGate | HardwareDetection | Image | HcoFieldUnconfigured | Topology | NotSetElsewhere


def _unmet(expected: str, actual: str) -> Unmet:
    return Unmet(f"expected={expected}, actual={actual}")
