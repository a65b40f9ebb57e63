"""An admission policy for the choice of a cluster: users can only sign it with their own name.

Who may choose clusters, but not update Machines, can do nothing else with them.
"""

from __future__ import annotations

from virt_steward.controllers.placement.observation import CONFIG_ANNOTATION, DECISION, MACHINE
from virt_steward.runtime.admission import annotation_policy, decided_by_caller, only_decides

NAME = f"decided-by.{MACHINE.group}"

POLICIES = annotation_policy(
    NAME, MACHINE, decided_by_caller(DECISION), only_decides(MACHINE, CONFIG_ANNOTATION, *DECISION)
)
