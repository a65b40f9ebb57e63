"""What the command line says to the approver."""

from __future__ import annotations

from dataclasses import dataclass

from virt_steward.holds.gate_settings import READY_MADE_ONLY, GateSettings
from virt_steward.runtime.access import NAMESPACE


@dataclass(frozen=True, slots=True)
class ApproverOptions:
    policy_namespaces: frozenset[str] = frozenset({NAMESPACE})
    """Where InstallPlanApprovers cover what their spec says; anywhere else they cover their own namespace alone."""
    namespace: str = NAMESPACE
    """Where the controller runs, and the ConfigMap is that freezes the installation."""
    gates: GateSettings = READY_MADE_ONLY
    """The gates that policy.gates may name, and those that every approval waits for."""
