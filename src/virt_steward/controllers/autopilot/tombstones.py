"""Deletes obsolete objects that earlier releases created: only those that carry our label."""

from __future__ import annotations

from typing import TYPE_CHECKING

from virt_steward.catalog.load import MANAGED_BY, MANAGER
from virt_steward.controllers.autopilot import annotation_keys
from virt_steward.controllers.autopilot.overrides.exclusions import Exclusions
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


async def delete_tombstoned(
    client: Client, view: AutopilotClusterView, reporter: AutopilotReporter, observation: AutopilotObservation
) -> None:
    """Delete each that exists. One that cannot be deleted is reported, and tried again with the next pass."""
    for stone in view.catalog.tombstones:
        found = view.tombstoned(stone.ref)
        if found is None:
            reporter.report_tombstone(observation.hco, stone.ref, GONE)
        elif found.labels.get(MANAGED_BY) != MANAGER:
            reporter.report_tombstone(
                observation.hco, stone.ref, NOT_OURS, f"it lacks the label {MANAGED_BY}={MANAGER}"
            )
        elif found.is_terminating or (kept := _kept_by(stone.ref, found, observation)):
            reporter.report_tombstone(observation.hco, stone.ref, EXISTS, "" if found.is_terminating else kept)
        else:
            await _delete(client, reporter, stone, found, observation.hco)


def _kept_by(ref: Ref, found: LiveSummary, observation: AutopilotObservation) -> str:
    """Return why a person wants to keep it; empty if nobody does."""
    if found.annotations.get(annotation_keys.MODE) == annotation_keys.UNMANAGED:
        return f"it carries {annotation_keys.MODE}: {annotation_keys.UNMANAGED}"
    rule = isinstance(observation.exclusions, Exclusions) and observation.exclusions.excludes(
        ref.kind.name, ref.key.namespace, ref.key.name
    )
    return f"{annotation_keys.EXCLUDED} excludes it: {rule}" if rule else ""


async def _delete(
    client: Client, reporter: AutopilotReporter, stone: Tombstone, found: LiveSummary, hco: Regarding
) -> None:
    reach("autopilot.bury.before")
    try:
        await client.delete(stone.ref, uid=found.metadata.uid, resource_version=found.metadata.resource_version)
    except (NotFound, Conflict):  # gone, or changed a moment ago: the watch will show it
        return
    except KubeError as error:
        reporter.report_tombstone(hco, stone.ref, FAILED, str(error))
        return
    reporter.report_tombstone(hco, stone.ref, GONE, found.metadata.uid)
