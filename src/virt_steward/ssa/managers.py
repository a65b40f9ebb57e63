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
    SEEN = auto()
    """Whatever others own of the object as it was seen: the lock keeps it to just those, and an event names them."""
    ALWAYS = auto()
    """Its fields are nobody else's business; undivided lists and maps of others are spared even so."""


AT_ONCE = frozenset({Force.SEEN, Force.ALWAYS})
"""Those who need not ask first who else owns what they write."""

WHOLE = (Pointer(),)


@dataclass(frozen=True, slots=True)
class FieldManager:
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


def _annotations(*keys: str) -> tuple[Pointer, ...]:
    return tuple(Pointer(("metadata", "annotations", key)) for key in keys)


def _status_of(controller: str) -> FieldManager:
    return FieldManager(
        name=f"virt-steward-{controller}-status",
        writes=(Pointer(("status",)),),
        force=Force.ALWAYS,
        why=f"the {controller} is the only author of this status, whoever wrote it before",
        subresource="status",
    )


ADVISOR = FieldManager(
    name="virt-advisor-operator",
    writes=WHOLE,
    force=Force.LISTED,
    why="the items of an approved plan; the name under which earlier installations own them",
)
AUTOPILOT = FieldManager(
    name="virt-platform-autopilot",
    writes=WHOLE,
    force=Force.SEEN,
    why="the assets that are kept at best practice; the name under which earlier installations own them",
)
PAUSE = FieldManager(
    name="virt-steward-pause",
    writes=_annotations("platform.kubevirt.io/reconcile-paused"),
    force=Force.ALWAYS,
    why="stops an edit war; applied by the autopilot's manager it would delete the object's spec",
)
CREATION = FieldManager(
    name="virt-steward-creation",
    writes=_annotations("platform.kubevirt.io/created-uid"),
    force=Force.ALWAYS,
    why="which objects the autopilot made itself: the uid is known only once there is one",
)
PLACEMENT = FieldManager(
    name="virt-steward-placement",
    writes=_annotations("vitistack.io/kubevirt-config", "vitistack.io/kubevirt-config-because"),
    force=Force.LISTED,
    why="the chosen cluster of a Machine, and why; a choice that somebody else made stands, an empty one is taken",
)
LEASE = FieldManager(
    name="virt-steward-lease",
    writes=(Pointer(("spec",)),),
    force=Force.ALWAYS,
    why="who leads; candidates take over from each other under the lock of the resourceVersion",
)
ADVERTISEMENT = FieldManager(
    name="virt-steward-advertisement",
    writes=WHOLE,
    force=Force.NEVER,
    why="offers a profile by creating its config, and gives the fields up at once: they are the user's",
)
INSTALL = FieldManager(
    name="virt-steward-install",
    writes=WHOLE,
    force=Force.NEVER,
    why="our own definitions and roles, where a command installs them",
)
ADVISOR_STATUS = _status_of("advisor")
APPROVER_STATUS = _status_of("approver")
PLACEMENT_STATUS = _status_of("placement")

MANAGERS = (
    ADVISOR,
    AUTOPILOT,
    PAUSE,
    CREATION,
    PLACEMENT,
    LEASE,
    ADVERTISEMENT,
    INSTALL,
    ADVISOR_STATUS,
    APPROVER_STATUS,
    PLACEMENT_STATUS,
)

APPROVAL = Patch(
    name="virt-steward-approval",
    how="merge patch",
    writes="InstallPlan: spec.approved; VirtPlatformConfig: spec.action; on both, annotations on who approved",
    guard="metadata.resourceVersion in the patch",
    why="the spec is somebody else's, and an approval is one flip of a flag, not a wish to keep it",
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
    writes="metadata.managedFields: our entry goes, the values stay; on the way back from a plan, also what was there",
    guard="metadata.resourceVersion in the patch",
    why="an apply without the fields would delete them",
)
CONSOLE = Patch(
    name="virt-steward-console",
    how="merge patch",
    writes="what a person decides there: action, options and approval of a config, a cluster, the end of a pause",
    guard="metadata.resourceVersion in the patch, where what was shown matters",
    why="a person's own edit, with their own credentials, as by kubectl",
)

PATCHES = (APPROVAL, CONDITION, RELEASE, CONSOLE)
