"""Deletes obsolete objects that earlier releases created: only those that carry our label.

What another instance has created is deleted once a person accepts the takeover. What an asset replaces is not deleted
here but after that asset: see `replaced`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from virt_steward.catalog.load import MANAGED_BY, MANAGER
from virt_steward.controllers.autopilot import annotation_keys
from virt_steward.controllers.autopilot.overrides.exclusions import Exclusions
from virt_steward.controllers.autopilot.rollouts.policy import REBOOTING, Takeover, parse_policy
from virt_steward.kube.errors import Conflict, KubeError, NotFound
from virt_steward.kube.faults import reach

if TYPE_CHECKING:
    from virt_steward.catalog.load import Tombstone
    from virt_steward.controllers.autopilot.live_summary import LiveSummary
    from virt_steward.controllers.autopilot.observation import AutopilotObservation
    from virt_steward.controllers.autopilot.observe import AutopilotClusterView
    from virt_steward.controllers.autopilot.reporter import AutopilotReporter
    from virt_steward.kube.client import Client
    from virt_steward.objects.identity import Ref, Regarding

EXISTS, GONE, FAILED, NOT_OURS = 1, 0, -1, -2
NOT_REVIEWED = (
    "another instance or an earlier release of the autopilot has created it; it is deleted once a person sets "
    f"{annotation_keys.TAKEOVER}: {Takeover.ACCEPT.value} on the HyperConverged"
)


@dataclass(frozen=True, slots=True)
class TombstoneStatus:
    """What is reported of an object that is not deleted."""

    value: int
    message: str = ""


@dataclass(frozen=True, slots=True)
class Obsolete:
    """An object that exists and is to be deleted."""

    stone: Tombstone
    live: LiveSummary


async def delete_tombstoned(
    client: Client, view: AutopilotClusterView, reporter: AutopilotReporter, observation: AutopilotObservation
) -> None:
    """Delete each that exists. One that cannot be deleted is reported, and tried again with the next pass."""
    for stone in view.catalog.tombstones:
        if stone.replaced_by or stone.ref.kind in REBOOTING:
            continue
        match check_tombstone(stone, view, observation):
            case Obsolete() as obsolete if needs_review(obsolete, view, observation):
                reporter.report_tombstone(observation.hco, stone.ref, EXISTS, NOT_REVIEWED)
            case Obsolete() as obsolete:
                await delete_obsolete(client, reporter, obsolete, observation.hco)
            case status:
                reporter.report_tombstone(observation.hco, stone.ref, status.value, status.message)


def check_tombstone(
    stone: Tombstone, view: AutopilotClusterView, observation: AutopilotObservation
) -> Obsolete | TombstoneStatus:
    """Return the object of a tombstone, or why there is nothing to delete."""
    found = view.tombstoned(stone.ref)
    if found is None:
        return TombstoneStatus(GONE)
    if found.labels.get(MANAGED_BY) != MANAGER:
        return TombstoneStatus(NOT_OURS, f"it lacks the label {MANAGED_BY}={MANAGER}")
    if found.is_terminating:
        return TombstoneStatus(EXISTS)
    if kept := _kept_by(stone.ref, found, observation):
        return TombstoneStatus(EXISTS, kept)
    return Obsolete(stone, found)


def needs_review(obsolete: Obsolete, view: AutopilotClusterView, observation: AutopilotObservation) -> bool:
    """Whether its deletion may have to wait: nodes reboot without it, or another instance has created it."""
    policy = parse_policy(observation.context.hco.annotations, obsolete.live.annotations)
    return view.may_wait(obsolete.stone.ref.kind, obsolete.live, policy)


def _kept_by(ref: Ref, found: LiveSummary, observation: AutopilotObservation) -> str:
    """Return why a person wants to keep it; empty if nobody does."""
    if found.annotations.get(annotation_keys.MODE) == annotation_keys.UNMANAGED:
        return f"it has the annotation {annotation_keys.MODE}: {annotation_keys.UNMANAGED}"
    rule = isinstance(observation.exclusions, Exclusions) and observation.exclusions.excludes(
        ref.kind.name, ref.key.namespace, ref.key.name
    )
    return f"{annotation_keys.EXCLUDED} excludes it: {rule}" if rule else ""


async def delete_obsolete(client: Client, reporter: AutopilotReporter, obsolete: Obsolete, hco: Regarding) -> bool:
    """Delete it as it was seen; false if that failed, which is reported."""
    ref, metadata = obsolete.stone.ref, obsolete.live.metadata
    reach("autopilot.bury.before")
    try:
        await client.delete(ref, uid=metadata.uid, resource_version=metadata.resource_version)
    except (NotFound, Conflict):  # gone, or changed a moment ago: the watch will show it
        return False
    except KubeError as error:
        reporter.report_tombstone(hco, ref, FAILED, str(error))
        return False
    reporter.report_tombstone(hco, ref, GONE, metadata.uid)
    return True
