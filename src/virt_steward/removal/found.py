"""What virt-steward has left on a cluster, as it was observed."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from virt_steward.ssa.managers import MANAGERS, PATCHES, RELEASE
from virt_steward.ssa.release import PLACEHOLDER_FIELDS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from virt_steward.objects.identity import Ref

PREFIXES = ("platform.kubevirt.io/", "advisor.kubevirt.io/", "operators.bapu.cloud/", "vitistack.io/kubevirt-config")
"""Of labels and annotations that controllers of ours write, or follow."""
OUR_MANAGERS = frozenset(one.name for one in (*MANAGERS, *PATCHES))
HELM, OLM = "app.kubernetes.io/managed-by", "olm.owner"
"""Labels of what Helm and OLM install."""


class Part(StrEnum):
    """What an object is to virt-steward, in the order in which it is removed."""

    POLICY = "admission policy"
    TARGET = "target"
    """An object of others, or one that the autopilot created for others to use."""
    RECORD = "record"
    """A Lease, a ConfigMap or a ControllerRevision that controllers wrote for themselves."""
    INSTALLATION = "installation"
    FREEZE = "freeze"
    """The ConfigMap by which people freeze the installation."""
    CRD = "CRD"
    NAMESPACE = "namespace"


@dataclass(frozen=True, slots=True)
class FoundObject:
    """One object, and what of it is ours."""

    ref: Ref
    part: Part
    uid: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)
    """Of a target those with one of PREFIXES, of all others those of Helm and OLM."""
    annotations: tuple[str, ...] = ()
    """Those with one of PREFIXES, by name."""
    managers: tuple[str, ...] = ()
    """Field managers of ours that own fields of it."""
    count: int = 0
    """Of a CRD: how many objects of its kind exist."""


@dataclass(frozen=True, slots=True)
class InstallationSeen:
    """All that was found."""

    namespace: str
    objects: tuple[FoundObject, ...] = ()
    running: tuple[str, ...] = ()
    """Why controllers seem to run, or would be started again."""
    problems: tuple[str, ...] = ()
    """What could not be read, and why."""


def found_object(ref: Ref, part: Part, obj: Mapping[str, Any], count: int = 0) -> FoundObject:
    """Keep what matters of an object; its metadata is enough."""
    metadata = obj["metadata"]
    labels = metadata.get("labels") or {}
    telling = PREFIXES if part is Part.TARGET else (HELM, OLM)
    return FoundObject(
        ref=ref,
        part=part,
        uid=metadata.get("uid", ""),
        labels={name: value for name, value in labels.items() if name.startswith(telling)},
        annotations=tuple(sorted(name for name in metadata.get("annotations") or {} if name.startswith(PREFIXES))),
        managers=tuple(sorted({entry["manager"] for entry in metadata.get("managedFields") or () if is_ours(entry)})),
        count=count,
    )


def is_ours(entry: Mapping[str, Any]) -> bool:
    """Whether an entry of managedFields is one of ours. The one that a release leaves behind owns no value."""
    manager = entry.get("manager")
    is_placeholder = manager == RELEASE.name and entry.get("fieldsV1") == PLACEHOLDER_FIELDS
    return manager in OUR_MANAGERS and not is_placeholder
