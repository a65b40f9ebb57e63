"""Which nodes reboot when changes of assets are written, and which VMs migrate or stop: by the advisor's own count."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from virt_steward.insight.assets.changes import ChangeAction
from virt_steward.kube.errors import Forbidden
from virt_steward.plans.blast_radius import radius_of, take_census
from virt_steward.platform.machineconfigs import MACHINE_CONFIG

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from virt_steward.apis.virtplatformconfig import BlastRadius
    from virt_steward.insight.assets.changes import AssetChange
    from virt_steward.insight.assets.survey import Survey
    from virt_steward.kube.client import Reader
    from virt_steward.objects.identity import Ref
    from virt_steward.plans.blast_radius import Census
    from virt_steward.platform.pools import Pool

NO_POOL = "no MachineConfigPool selects it, so no node reboots"
BY_SELECTOR = "nodes of the pools that its machineConfigPoolSelector selects reboot"


@dataclass(frozen=True, slots=True)
class RebootImpact:
    """What the write of one object disrupts."""

    message: str
    radius: BlastRadius | None = None
    """None: it is not known, or no node reboots."""


def impact_on(affected: Sequence[Pool], pools: Sequence[Pool], census: Census) -> RebootImpact:
    """Count what reboots when the nodes of the affected pools do."""
    if not affected:
        return RebootImpact(NO_POOL)
    radius = radius_of(affected, pools, census)
    return RebootImpact(radius.message, radius)


async def find_impacts(reader: Reader, survey: Survey, changes: Iterable[AssetChange]) -> Mapping[Ref, RebootImpact]:
    """Return the impact of each change that reboots nodes; nodes and VMs are listed only if some do."""
    rebooting = [one for one in changes if one.reboots]
    if not rebooting:
        return {}
    pools = survey.view.pools()
    if pools is None:
        unknown = RebootImpact("which nodes reboot is unknown: MachineConfigPools cannot be read")
        return {one.ref: unknown for one in rebooting}
    try:
        census = await take_census(reader)
    except Forbidden as error:
        return {one.ref: RebootImpact(f"which nodes reboot is unknown: {error}") for one in rebooting}
    return {one.ref: _impact(one, pools, census) for one in rebooting}


def _impact(change: AssetChange, pools: Sequence[Pool], census: Census) -> RebootImpact:
    if change.action is ChangeAction.DELETE and change.ref.kind != MACHINE_CONFIG and not change.pools:
        return RebootImpact(BY_SELECTOR)  # its selector could not be read
    return impact_on(change.pools, pools, census)
