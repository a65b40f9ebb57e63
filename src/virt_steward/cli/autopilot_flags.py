"""Options of the autopilot: whether it is on where the HyperConverged does not say so."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Annotated

import typer

from virt_steward.cli import advisor_flags
from virt_steward.controllers.autopilot.options import AutopilotOptions, related_images
from virt_steward.controllers.autopilot.overrides.scope import Activation
from virt_steward.holds.gate_settings import READY_MADE_ONLY
from virt_steward.runtime.access import NAMESPACE

if TYPE_CHECKING:
    from virt_steward.holds.gate_settings import GateSettings

ActivationOption = Annotated[
    Activation,
    typer.Option(
        "--activation",
        help="opt-in: the autopilot is on if platform.kubevirt.io/autopilot on the HyperConverged is true or a list of "
        "assets. opt-out: unless it is false. A list selects assets in both.",
    ),
]


def options(
    hyperconverged: str,
    activation: Activation,
    namespace: str = NAMESPACE,
    gates: GateSettings = READY_MADE_ONLY,
) -> AutopilotOptions:
    """Raises BadSetting if the platform is not named in full. Images come from RELATED_IMAGE_ variables."""
    hco, images = advisor_flags.hco(hyperconverged), related_images(os.environ)
    return AutopilotOptions(hco, images, activation, namespace, gates)
