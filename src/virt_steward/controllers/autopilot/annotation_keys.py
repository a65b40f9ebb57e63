"""The annotations by which people steer the autopilot, and those by which it records what it did."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Any

from virt_steward.objects.decision_record import DecisionKeys
from virt_steward.platform.hco import AUTOPILOT_SCOPE, PREFIX

if TYPE_CHECKING:
    from collections.abc import Mapping


SCOPE = AUTOPILOT_SCOPE
"""On the HyperConverged: `true`, or the names and groups of the assets to manage."""
EXCLUDED = f"{PREFIX}disabled-resources"
"""On the HyperConverged: rules for objects that are neither created nor changed."""
ON_OPT_OUT = f"{PREFIX}on-opt-out"
"""On the HyperConverged: `delete` removes what we created and nobody else manages, once it falls out of scope."""
CREATED = f"{PREFIX}created-uid"
"""On a managed object: its uid, if the autopilot created it; a copy of the object does not have the same."""
CREATED_BY = f"{PREFIX}created-by"
"""On a managed object, beside created-uid: the program that signed it. Version 0.1 did not write it."""
SIGNER = "virt-steward"
"""The value of CREATED_BY."""
UID_PENDING = "pending"
"""The value of CREATED in the request that creates the object: only the answer tells the uid."""
MODE = f"{PREFIX}mode"
"""On a managed object: `unmanaged` means that it is neither changed nor deleted."""
PAUSED = f"{PREFIX}reconcile-paused"
"""On a managed object: `true` pauses it; the autopilot sets it to end an edit war. Remove it to resume."""
PAUSE_REASON = f"{PREFIX}reconcile-paused-reason"
"""On a managed object: why the autopilot has paused it."""
PATCH = f"{PREFIX}patch"
"""On a managed object: a JSON patch (RFC 6902) that is applied to what the asset renders."""
IGNORED = f"{PREFIX}ignore-fields"
"""On a managed object: fields whose live values are kept, as JSON pointers with commas between them."""
DRIFT = f"{PREFIX}drift"
"""On a managed object: `enforce` (the default) corrects drift, `report` only reports it."""
UNTIL = f"{PREFIX}override-until"
"""On a managed object: when the overrides on it expire, such as `2030-01-31T18:00:00Z`."""
ROLLOUT = f"{PREFIX}rollout"
"""On the HyperConverged or on an object, which wins: `immediate`, `coalesce`, `window` or `approve`.

When changes are written that reboot nodes."""
ROLLOUT_WINDOW = f"{PREFIX}rollout-window"
"""On the HyperConverged or on an object, which wins: the window, such as `0 22 * * FRI 4h Europe/Oslo`."""
ROLLOUT_DEADLINE = f"{PREFIX}rollout-deadline"
"""On the HyperConverged or on an object, which wins: how long a change may be staged, such as `7d`."""
ROLLOUT_DEADLINE_ACTION = f"{PREFIX}rollout-deadline-action"
"""On the HyperConverged or on an object, which wins: what happens then, `warn` or `release`."""
ROLLOUT_RELEASE = f"{PREFIX}rollout-release"
"""On the HyperConverged: the staged changes that people have released, by their ids."""
DECISION = DecisionKeys.under(PREFIX)
"""On the HyperConverged or on a managed object: the last decision of a person, such as a release or a resume."""
TAKEOVER = f"{PREFIX}takeover"
"""On the HyperConverged or on an object, which wins: whether changes to what another instance left need a review."""
ROLLOUT_GATES = f"{PREFIX}rollout-gates"
"""On the HyperConverged or on an object, which wins: gates that must be open, with commas between them."""
OVERRIDE_FREEZE = f"{PREFIX}rollout-override-freeze"
"""On the HyperConverged: the staged changes that people have released in spite of a freeze, by their ids."""
OVERRIDE_FREEZE_BY = f"{PREFIX}rollout-override-freeze-by"
"""On the HyperConverged: who has released them in spite of a freeze."""
OVERRIDE_FREEZE_COMMENT = f"{PREFIX}rollout-override-freeze-comment"
"""On the HyperConverged: why they were released in spite of a freeze."""
BYPASS = f"{PREFIX}bypass-mcp-rollout-coalescing"
"""On a managed object: no change of it is staged. The Go operator uses the same."""
GOVERNED_BY = "advisor.kubevirt.io/governed-by"
"""On a target of a plan: set by the advisor on what an approved plan has changed."""

UNMANAGED = "unmanaged"


class DriftMode(Enum):
    """Whether a difference is corrected or only reported."""

    ENFORCE = "enforce"
    REPORT = "report"

    @classmethod
    def parse(cls, annotation: str | None) -> DriftMode | None:
        """Read the annotation: differences are corrected unless it says otherwise. None: it has an unknown value."""
        if annotation is None:
            return cls.ENFORCE
        return next((mode for mode in cls if mode.value == annotation.strip()), None)


def select_steering(annotations: Mapping[str, str] | None) -> dict[str, str]:
    """Return those that bear on what the autopilot does; all others are not kept."""
    return {
        name: value for name, value in (annotations or {}).items() if name.startswith(PREFIX) or name == GOVERNED_BY
    }


def annotation_intent(live: Mapping[str, Any], annotations: Mapping[str, str]) -> dict[str, Any]:
    """Return an intent that sets these annotations of the object, and nothing else."""
    metadata = {part: live["metadata"][part] for part in ("name", "namespace") if part in live["metadata"]}
    return {
        "apiVersion": live["apiVersion"],
        "kind": live["kind"],
        "metadata": metadata | {"annotations": dict(annotations)},
    }
