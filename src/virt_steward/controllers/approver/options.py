"""What the command line says to the approver."""

from __future__ import annotations

from dataclasses import dataclass

from virt_steward.runtime.access import NAMESPACE


@dataclass(frozen=True, slots=True)
class ApproverOptions:
    policy_namespaces: frozenset[str] = frozenset({NAMESPACE})
    """Where InstallPlanApprovers cover what their spec says; anywhere else they cover their own namespace alone."""
