"""All field managers, and all writes that are not server-side apply: one table of everything that is written.

An apply is the complete intent of its field manager: the server deletes fields that the manager owned and does not send
again. So each partial write needs a field manager of its own.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto

from virt_steward.objects.paths import Pointer


class Force(Enum):
    """When a manager takes fields that other managers own."""

    NEVER = auto()
    LISTED = auto()
    """Only what a plan or an event has listed, with the owner's name."""
    AS_READ = auto()
    """All fields that others own of the object as it was read: the lock ensures that, and an event names them."""
    ALWAYS = auto()
    """Its fields belong to no one else. Atomic lists and maps of others are refused even so."""


AT_ONCE = frozenset({Force.AS_READ, Force.ALWAYS})
"""The first apply is forced, without asking for conflicts."""

WHOLE = (Pointer(),)


@dataclass(frozen=True, slots=True)
class FieldManager:
    """A field manager of server-side apply."""

    name: str
    writes: tuple[Pointer, ...]
    """The only fields that it sends. WHOLE is a complete intent, which may set all but the status."""
    force: Force
    why: str
    subresource: str = ""

    @property
    def is_complete(self) -> bool:
        return self.writes == WHOLE


@dataclass(frozen=True, slots=True)
class Patch:
    """A write that is not server-side apply, and the precondition that prevents lost updates."""

    name: str
    how: str
    writes: str
    guard: str
    why: str


def _annotations(*keys: str) -> tuple[Pointer, ...]:
    return tuple(Pointer(("metadata", "annotations", key)) for key in keys)


ADVISOR = FieldManager(
    name="virt-advisor-operator",
    writes=WHOLE,
    force=Force.LISTED,
    why="the items of an approved plan; earlier installations own them by this name",
)
AUTOPILOT = FieldManager(
    name="virt-platform-autopilot",
    writes=WHOLE,
    force=Force.AS_READ,
    why="the assets of the catalog; earlier installations own them by this name",
)
PAUSE = FieldManager(
    name="virt-steward-pause",
    writes=_annotations("platform.kubevirt.io/reconcile-paused", "platform.kubevirt.io/reconcile-paused-reason"),
    force=Force.ALWAYS,
    why="stops an edit war; applied by the autopilot's manager it would delete the object's spec",
)
CREATION = FieldManager(
    name="virt-steward-creation",
    writes=_annotations("platform.kubevirt.io/created-uid", "platform.kubevirt.io/created-by"),
    force=Force.ALWAYS,
    why="marks the objects that the autopilot created: the uid is known only after the create",
)
STAGING = FieldManager(
    name="virt-steward-staging",
    writes=WHOLE,
    force=Force.ALWAYS,
    why="the autopilot's own record of changes that wait, beside the HyperConverged",
)
PLACEMENT = FieldManager(
    name="virt-steward-placement",
    writes=_annotations("vitistack.io/kubevirt-config", "vitistack.io/kubevirt-config-because"),
    force=Force.LISTED,
    why="the chosen cluster of a Machine, and why; the choice of another manager is kept, an empty one is taken",
)
LEASE = FieldManager(
    name="virt-steward-lease",
    writes=(Pointer(("spec",)),),
    force=Force.ALWAYS,
    why="leader election; candidates take over from each other under a lock on the resourceVersion",
)
ADVERTISEMENT = FieldManager(
    name="virt-steward-advertisement",
    writes=WHOLE,
    force=Force.NEVER,
    why="creates the config of an advertised profile, and releases its fields at once: they are the user's",
)
PLAN_RECORD = FieldManager(
    name="virt-steward-plan-record",
    writes=WHOLE,
    force=Force.ALWAYS,
    why="the advisor's own record of a plan and its progress, in its namespace",
)
INSTALL = FieldManager(
    name="virt-steward-install",
    writes=WHOLE,
    force=Force.NEVER,
    why="our own CRDs and roles, where a command installs them",
)
PLACEMENT_STATUS = FieldManager(
    name="virt-steward-placement-status",
    writes=(Pointer(("status",)),),
    force=Force.ALWAYS,
    why="what the placement observes of a cluster; other fields of a KubevirtConfig's status belong to others",
    subresource="status",
)

MANAGERS = (
    ADVISOR,
    AUTOPILOT,
    PAUSE,
    CREATION,
    STAGING,
    PLACEMENT,
    LEASE,
    ADVERTISEMENT,
    INSTALL,
    PLAN_RECORD,
    PLACEMENT_STATUS,
)

APPROVAL = Patch(
    name="virt-steward-approval",
    how="merge patch",
    writes="InstallPlan: spec.approved; VirtPlatformConfig: spec.action; on both, annotations on who approved",
    guard="metadata.resourceVersion in the patch",
    why="another manager owns the spec, and an approval sets a flag once, without owning it",
)
CONDITION = Patch(
    name="virt-steward-condition",
    how="JSON patch",
    writes="our element of a condition list that the schema does not mark as a map",
    guard="a test on metadata.resourceVersion",
    why="such a list is atomic: an apply would remove the conditions of all others",
)
RELEASE = Patch(
    name="virt-steward-release",
    how="JSON patch",
    writes="metadata.managedFields: removes our entry, the values stay; on a rollback, also the previous values",
    guard="metadata.resourceVersion in the patch",
    why="an apply without the fields would delete their values",
)
CONSOLE = Patch(
    name="virt-steward-console",
    how="merge patch",
    writes="decisions of its users: action, options and approval of a config, a cluster, the end of a pause",
    guard="metadata.resourceVersion in the patch, where the decision depends on the state shown",
    why="an edit of the user, with their own credentials, as with kubectl",
)
NOTIFIED = Patch(
    name="virt-steward-notified",
    how="merge patch",
    writes="ConfigMap virt-steward-notified-NAME in our namespace: a key for each notification",
    guard="none: each key is written for itself, and a lost one repeats a notification",
    why="an apply would have to send all keys each time",
)


def _status_of(controller: str, kind: str) -> Patch:
    return Patch(
        name=f"virt-steward-{controller}-status",
        how="JSON patch",
        writes=f"{kind}: the whole status",
        guard="metadata.resourceVersion in the patch",
        why="an apply would keep what other managers have added to the status",
    )


ADVISOR_STATUS = _status_of("advisor", "VirtPlatformConfig")
APPROVER_STATUS = _status_of("approver", "InstallPlanApprover")

PATCHES = (ADVISOR_STATUS, APPROVER_STATUS, APPROVAL, CONDITION, RELEASE, CONSOLE, NOTIFIED)
