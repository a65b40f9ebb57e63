"""What an installation says to the autopilot."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from virt_steward.objects.identity import Key

if TYPE_CHECKING:
    from collections.abc import Mapping

OPT_OUT_DELETES = "opt-out-deletes"
"""Rights that an installation may grant besides, for a policy of deleting."""
HCO = Key("openshift-cnv", "kubevirt-hyperconverged")


@dataclass(frozen=True, slots=True)
class AutopilotOptions:
    hco: Key = HCO
    """The HyperConverged that turns the autopilot on, and from which assets take their values."""
    images: Mapping[str, str] = field(default_factory=dict)
    """Images that assets may use, by name."""
    period: float = 300.0
    """Seconds between passes over everything, whatever events say."""
