"""The settings of the advisor."""

from __future__ import annotations

from dataclasses import dataclass

from virt_steward import __version__
from virt_steward.holds.gate_settings import READY_MADE_ONLY, GateSettings
from virt_steward.objects.identity import Key
from virt_steward.runtime.access import NAMESPACE

THE_HCO = Key("openshift-cnv", "kubevirt-hyperconverged")


@dataclass(frozen=True, slots=True)
class AdvisorOptions:
    """What an installation may set."""

    operator_version: str = f"v{__version__}"
    """The version that plans carry: a plan of another version may have been made by other logic."""
    hco: Key = THE_HCO
    """The HyperConverged object of the platform."""
    namespace: str = NAMESPACE
    """Where the controller runs, and records its plans and what targets looked like before it changed them."""
    docs_url: str = ""
    """Where the profiles are documented, each below its name. Empty: advertised profiles name no page."""
    gates: GateSettings = READY_MADE_ONLY
    """The gates that spec.gates may name, and those that every profile waits for."""
    example_profile: bool = False
    """Whether example-profile can be used, and the rights that it needs are granted."""
