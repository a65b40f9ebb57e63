"""An admission policy for decisions about the autopilot's objects: users can only sign them with their own name."""

from __future__ import annotations

from virt_steward.catalog.load import load
from virt_steward.controllers.autopilot.annotation_keys import DECISION
from virt_steward.platform.hco import HYPERCONVERGED, PREFIX
from virt_steward.runtime.admission import annotation_policy, decided_by_caller

NAME = f"decided-by.{PREFIX.rstrip('/')}"

POLICIES = annotation_policy(
    NAME,
    {HYPERCONVERGED, *(asset.object.kind for asset in load().assets)},
    decided_by_caller(DECISION),
)
"""For the kinds of the catalog: a release is recorded on the HyperConverged, a resume on the object itself."""
