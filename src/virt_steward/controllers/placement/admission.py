"""An admission policy for the choice of a cluster: users can only sign it with their own name."""

from __future__ import annotations

from virt_steward.controllers.placement.observation import DECISION, MACHINE
from virt_steward.runtime.admission import annotation_policy, decided_by_caller

NAME = f"decided-by.{MACHINE.group}"

POLICIES = annotation_policy(NAME, MACHINE, decided_by_caller(DECISION))
