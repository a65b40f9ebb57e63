"""The settings of the autopilot."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from virt_steward.controllers.autopilot.overrides.scope import Activation
from virt_steward.holds.gate_settings import READY_MADE_ONLY, GateSettings
from virt_steward.objects.identity import Key
from virt_steward.runtime.access import NAMESPACE

if TYPE_CHECKING:
    from collections.abc import Mapping

OPT_OUT_DELETES = "opt-out-deletes"
"""An optional set of rights, for the policy to delete what is opted out of."""
HCO = Key("openshift-cnv", "kubevirt-hyperconverged")
_RELATED_IMAGE = "RELATED_IMAGE_"


@dataclass(frozen=True, slots=True)
class AutopilotOptions:
    hco: Key = HCO
    """The HyperConverged that turns the autopilot on, and from which assets take their values."""
    images: Mapping[str, str] = field(default_factory=dict)
    """Images that assets may use, by name."""
    activation: Activation = Activation.OPT_IN
    """Whether the autopilot is on where the annotation of the HyperConverged does not say so."""
    namespace: str = NAMESPACE
    """Where the controller runs, and the ConfigMap is that freezes the installation."""
    gates: GateSettings = READY_MADE_ONLY
    """The gates that platform.kubevirt.io/rollout-gates may name, and those that every staged change waits for."""
    period: float = 300.0
    """Seconds between passes over everything, with or without events."""


def related_images(environment: Mapping[str, str]) -> dict[str, str]:
    """Read the images of the installation, by name. An empty variable names no image.

    For example, RELATED_IMAGE_KUBEVIRT_METRICS_EXPORTER is `kubevirt-metrics-exporter`.
    """
    return {
        name.removeprefix(_RELATED_IMAGE).lower().replace("_", "-"): image
        for name, image in environment.items()
        if name.startswith(_RELATED_IMAGE) and image
    }
