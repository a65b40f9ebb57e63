"""What the advisor asks of the server: a plan drafted without effect, one item written, a status reported."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from virt_steward.apis.virtplatformconfig import API_VERSION, VIRT_PLATFORM_CONFIG, PlanItem
from virt_steward.kube import faults
from virt_steward.kube.errors import Conflict
from virt_steward.objects.identity import Key, Ref
from virt_steward.plans.blast_radius import blast_radius, take_census
from virt_steward.plans.draft import Draft, Drafted, draft
from virt_steward.plans.intent import is_of
from virt_steward.plans.rollback import draft_rollback
from virt_steward.platform.machineconfigs import MACHINE_CONFIG
from virt_steward.ssa import managers
from virt_steward.ssa.apply import apply
from virt_steward.ssa.locks import Absent, Stale
from virt_steward.ssa.preview import fetch
from virt_steward.ssa.release import release

if TYPE_CHECKING:
    from virt_steward.apis.virtplatformconfig import VirtPlatformConfigStatus
    from virt_steward.controllers.advisor.context import ProfileContext
    from virt_steward.controllers.advisor.observation import VirtPlatformConfig
    from virt_steward.controllers.advisor.profiles.profile import Profile
    from virt_steward.kube.client import Client, Object, Reader
    from virt_steward.plans.preimage import PreImage


async def draft_plan(client: Client, profile: Profile, context: ProfileContext) -> Draft:
    """Try what the profile wants, and count what a reboot would cost."""
    drafted = await draft(client, profile.name, profile.intents(context), context.targets)
    faults.reach("advisor.drafted")
    if not isinstance(drafted, Drafted):
        return drafted
    return Drafted(await _with_radius(client, drafted.items, context))


async def draft_rollback_plan(client: Client, image: PreImage, context: ProfileContext) -> Draft:
    """Try the way back from an executed plan, and count what a reboot would cost."""
    drafted = await draft_rollback(client, image, context.targets)
    if not isinstance(drafted, Drafted):
        return drafted
    return Drafted(await _with_radius(client, drafted.items, context))


async def _with_radius(reader: Reader, items: tuple[PlanItem, ...], context: ProfileContext) -> tuple[PlanItem, ...]:
    if not any(_reboots(item) for item in items):
        return items
    census = await take_census(reader)
    return tuple(
        msgspec.structs.replace(
            item, blast_radius=blast_radius(item.desired_state["metadata"].get("labels", {}), context.pools, census)
        )
        if _reboots(item)
        else item
        for item in items
    )


def _reboots(item: PlanItem) -> bool:
    return item.state == "Pending" and is_of(item.target_ref, MACHINE_CONFIG)


async def write_status(client: Client, config: VirtPlatformConfig, status: VirtPlatformConfigStatus) -> Object:
    """Write the whole status, if the config is still as it was read. Gives what the server has now."""
    seen = config.metadata
    faults.reach("advisor.status.before")
    applied = await client.apply(
        {
            "apiVersion": API_VERSION,
            "kind": VIRT_PLATFORM_CONFIG.name,
            "metadata": {"name": seen.name, "uid": seen.uid, "resourceVersion": seen.resource_version},
            "status": msgspec.to_builtins(status),
        },
        manager=managers.ADVISOR_STATUS.name,
        force=True,
        subresource="status",
    )
    faults.reach("advisor.status.after")
    return applied.object


async def advertise(client: Client, profile: Profile, docs_url: str) -> None:
    """Offer the profile, unless somebody was faster; its fields are nobody's until a user sets them."""
    await apply(client, profile.advertisement(docs_url), managers.ADVERTISEMENT, Absent())
    faults.reach("advisor.advertised")
    await release_advertisement(client, Ref(VIRT_PLATFORM_CONFIG, Key("", profile.name)))


async def release_advertisement(client: Client, config: Ref) -> None:
    """Give up what an advertisement owns, so that a user's own apply does not conflict with it."""
    live = await fetch(client, config)
    if live is not None:
        outcome = await release(client, live, managers.ADVERTISEMENT)
        if isinstance(outcome, Stale):
            raise Conflict(409, "Conflict", outcome.because)


def has_advertisement_fields(config: VirtPlatformConfig) -> bool:
    """Whether an advertisement still owns fields of this config: a process was cut off before it gave them up."""
    return any(owner.manager == managers.ADVERTISEMENT.name for owner in config.metadata.managed_fields)
