"""What an installation says about the advisor."""

from __future__ import annotations

from dataclasses import dataclass

from virt_steward import __version__
from virt_steward.objects.identity import Key
from virt_steward.runtime.access import NAMESPACE

THE_HCO = Key("openshift-cnv", "kubevirt-hyperconverged")


@dataclass(frozen=True, slots=True)
class AdvisorOptions:
    operator_version: str = f"v{__version__}"
    """The version that plans are stamped with: another one means that the logic of profiles may have changed."""
    hco: Key = THE_HCO
    """The HyperConverged object of the platform."""
    namespace: str = NAMESPACE
    """Where the controller runs, and keeps what targets looked like before it changed them."""
    docs_url: str = ""
    """Where the profiles are documented, each below its name. Empty: advertised profiles name no page."""
