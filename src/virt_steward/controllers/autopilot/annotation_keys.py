"""The annotations by which people steer the autopilot, and those by which it marks what it did."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from virt_steward.platform.hco import PREFIX

if TYPE_CHECKING:
    from collections.abc import Mapping


SCOPE = f"{PREFIX}autopilot"
"""On the HyperConverged: `true`, or names and groups of assets."""
EXCLUDED = f"{PREFIX}disabled-resources"
"""On the HyperConverged: objects that are not to be made or touched."""
ON_OPT_OUT = f"{PREFIX}on-opt-out"
"""On the HyperConverged: `delete` removes what we made and nobody else manages, once it falls out of scope."""
CREATED = f"{PREFIX}created-uid"
"""On an object that we made: its uid, which a copy of the object does not have."""
MODE = f"{PREFIX}mode"
PAUSED = f"{PREFIX}reconcile-paused"
PATCH = f"{PREFIX}patch"
IGNORED = f"{PREFIX}ignore-fields"
DRIFT = f"{PREFIX}drift"
UNTIL = f"{PREFIX}override-until"
GOVERNED_BY = "advisor.kubevirt.io/governed-by"
"""Set by the advisor on what an approved plan has changed."""

UNMANAGED = "unmanaged"


def ours(annotations: Mapping[str, str] | None) -> dict[str, str]:
    """Return those that bear on what the autopilot does; all others are not kept."""
    return {
        name: value for name, value in (annotations or {}).items() if name.startswith(PREFIX) or name == GOVERNED_BY
    }


def mark(live: Mapping[str, Any], name: str, value: str) -> dict[str, Any]:
    """Return what puts one annotation on the object, and nothing else."""
    metadata = {part: live["metadata"][part] for part in ("name", "namespace") if part in live["metadata"]}
    return {
        "apiVersion": live["apiVersion"],
        "kind": live["kind"],
        "metadata": metadata | {"annotations": {name: value}},
    }
