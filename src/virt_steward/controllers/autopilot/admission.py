"""Admission policies for decisions about the autopilot's objects.

Users can only sign them with their own name, and override a freeze only with a right of its own. Who may release
changes, but not update the HyperConverged, can do nothing else with it.
"""

from __future__ import annotations

from virt_steward.catalog.load import load
from virt_steward.controllers.autopilot.annotation_keys import (
    DECISION,
    OVERRIDE_FREEZE,
    OVERRIDE_FREEZE_BY,
    OVERRIDE_FREEZE_COMMENT,
    ROLLOUT_RELEASE,
)
from virt_steward.platform.hco import HYPERCONVERGED, PREFIX
from virt_steward.runtime.admission import annotation_policy, decided_by_caller, freeze_override, only_decides

NAME = f"decided-by.{PREFIX.rstrip('/')}"

POLICIES = (
    *annotation_policy(
        NAME,
        {HYPERCONVERGED, *(asset.object.kind for asset in load().assets)},
        decided_by_caller(DECISION),
    ),
    *annotation_policy(
        f"override-freeze.{PREFIX.rstrip('/')}",
        {HYPERCONVERGED},
        *freeze_override(HYPERCONVERGED, OVERRIDE_FREEZE, OVERRIDE_FREEZE_BY, OVERRIDE_FREEZE_COMMENT),
        only_decides(
            HYPERCONVERGED,
            ROLLOUT_RELEASE,
            *DECISION,
            OVERRIDE_FREEZE,
            OVERRIDE_FREEZE_BY,
            OVERRIDE_FREEZE_COMMENT,
        ),
    ),
)
"""The first is for the kinds of the catalog: a release is recorded on the HyperConverged, a resume on the object."""
