"""The field managers, and the writes that are not server-side apply: one table of all that is ever written.

To the server, what a manager applies is all that it wants of an object; what it owned and does not send again is
deleted. So every partial write has a manager of its own.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto

from virt_steward.objects.paths import Pointer


class Force(Enum):
    """When a manager takes fields that others own."""

    NEVER = auto()
    LISTED = auto()
    """Only what a plan or an event has listed, with the owner's name."""
    ALWAYS = auto()
    """Its fields are nobody else's business; undivided lists and maps of others are spared even so."""


WHOLE = (Pointer(),)


@dataclass(frozen=True, slots=True)
class Manager:
    """A field manager of server-side apply."""

    name: str
    writes: tuple[Pointer, ...]
    """It sends nothing outside of these. WHOLE is a complete intent, which may set all but the status."""
    force: Force
    why: str
    subresource: str = ""

    @property
    def is_complete(self) -> bool:
        return self.writes == WHOLE


@dataclass(frozen=True, slots=True)
class Patch:
    """A write that is not server-side apply, and what keeps it from overwriting what it has not seen."""

    name: str
    how: str
    writes: str
    guard: str
    why: str


class UnknownManager(LookupError):
    """The table has no manager of this name."""


def _annotation(key: str) -> tuple[Pointer, ...]:
    return (Pointer(("metadata", "annotations", key)),)


def _status_of(controller: str) -> Manager:
    return Manager(
        name=f"virt-steward-{controller}-status",
        writes=(Pointer(("status",)),),
        force=Force.ALWAYS,
        why=f"the {controller} is the only author of this status, whoever wrote it before",
        subresource="status",
    )


ADVISOR = Manager(
    name="virt-advisor-operator",
    writes=WHOLE,
    force=Force.LISTED,
    why="the items of an approved plan; the name under which earlier installations own them",
)
AUTOPILOT = Manager(
    name="virt-platform-autopilot",
    writes=WHOLE,
    force=Force.LISTED,
    why="the assets that are kept at best practice; the name under which earlier installations own them",
)
PAUSE = Manager(
    name="virt-steward-pause",
    writes=_annotation("platform.kubevirt.io/reconcile-paused"),
    force=Force.ALWAYS,
    why="stops an edit war; applied by the autopilot's manager it would delete the object's spec",
)
PLACEMENT = Manager(
    name="virt-steward-placement",
    writes=_annotation("vitistack.io/kubevirt-config"),
    force=Force.NEVER,
    why="the chosen cluster of a Machine; a choice that somebody else made stands",
)
LEASE = Manager(
    name="virt-steward-lease",
    writes=(Pointer(("spec",)),),
    force=Force.ALWAYS,
    why="who leads; candidates take over from each other under the lock of the resourceVersion",
)
INSTALL = Manager(
    name="virt-steward-install",
    writes=WHOLE,
    force=Force.NEVER,
    why="our own definitions and roles, where a command installs them",
)
ADVISOR_STATUS = _status_of("advisor")
APPROVER_STATUS = _status_of("approver")
PLACEMENT_STATUS = _status_of("placement")

MANAGERS = (ADVISOR, AUTOPILOT, PAUSE, PLACEMENT, LEASE, INSTALL, ADVISOR_STATUS, APPROVER_STATUS, PLACEMENT_STATUS)

APPROVAL = Patch(
    name="virt-steward-approval",
    how="merge patch",
    writes="InstallPlan: spec.approved and the annotation that says who approved",
    guard="metadata.resourceVersion in the patch",
    why="OLM owns the spec by updates, and an approval is one flip of a flag, not a wish to keep it",
)
CONDITION = Patch(
    name="virt-steward-condition",
    how="JSON patch",
    writes="our element of a condition list that the schema does not mark as a map",
    guard="a test on metadata.resourceVersion",
    why="such a list has one owner: applied, it would lose the conditions of everybody else",
)
RELEASE = Patch(
    name="virt-steward-release",
    how="JSON patch",
    writes="metadata.managedFields: our entry goes, the values stay",
    guard="metadata.resourceVersion in the patch",
    why="an apply without the fields would delete them",
)

PATCHES = (APPROVAL, CONDITION, RELEASE)


def manager(name: str) -> Manager:
    """Return the manager of this name, or raise UnknownManager."""
    for known in MANAGERS:
        if known.name == name:
            return known
    raise UnknownManager(f"{name!r} is no field manager of this project: {', '.join(one.name for one in MANAGERS)}")
