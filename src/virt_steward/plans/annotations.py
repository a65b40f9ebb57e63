"""The two annotations on a target that say which plan applied it. They alone are no change."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

GOVERNED_BY = "advisor.kubevirt.io/governed-by"
"""On a target of a plan: the profile that set fields of it, which the autopilot then leaves to the profile."""
APPLIED_HASH = "advisor.kubevirt.io/applied-profile-hash"
"""On a target of a plan: a hash of the fields that were applied, by which a restart recognizes its own write."""


def with_annotations(desired: Mapping[str, Any], profile: str, applied: str) -> dict[str, Any]:
    """The intent with the name of its profile and the hash of its fields."""
    metadata = desired["metadata"]
    annotations = {**metadata.get("annotations", {}), GOVERNED_BY: profile, APPLIED_HASH: applied}
    return {**desired, "metadata": {**metadata, "annotations": annotations}}


def without_annotations(obj: Mapping[str, Any]) -> dict[str, Any]:
    """The object without our annotations."""
    metadata = dict(obj["metadata"])
    annotations = metadata.pop("annotations", None) or {}
    rest = {name: value for name, value in annotations.items() if name not in (GOVERNED_BY, APPLIED_HASH)}
    return {**obj, "metadata": metadata | ({"annotations": rest} if rest else {})}


def is_annotated(obj: Mapping[str, Any], profile: str, applied: str) -> bool:
    """Whether it has both annotations with these values."""
    annotations = obj["metadata"].get("annotations") or {}
    return (annotations.get(GOVERNED_BY), annotations.get(APPLIED_HASH)) == (profile, applied)
