"""What the advisor asks of the API server: plans drafted by dry run, statuses written, profiles advertised."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from virt_steward.apis.virtplatformconfig import VIRT_PLATFORM_CONFIG, PlanItem
from virt_steward.kube import faults
from virt_steward.kube.errors import Conflict
from virt_steward.objects.identity import Key, Ref
from virt_steward.plans.blast_radius import blast_radius, take_census
from virt_steward.plans.draft import Draft, Drafted, draft
from virt_steward.plans.intent import is_of
from virt_steward.plans.owner import PlanOwner
from virt_steward.plans.rollback import draft_rollback
from virt_steward.platform.machineconfigs import MACHINE_CONFIG
from virt_steward.ssa import managers
from virt_steward.ssa.apply import apply
from virt_steward.ssa.locks import Absent, Stale
from virt_steward.ssa.preview import fetch
from virt_steward.ssa.release import release

if TYPE_CHECKING:
    from virt_steward.apis.virtplatformconfig import VirtPlatformConfigStatus
    from virt_steward.controllers.advisor.observation import VirtPlatformConfig
    from virt_steward.controllers.advisor.profiles.profile import Profile, ProfileContext
    from virt_steward.kube.client import Client, Object, Reader
    from virt_steward.plans.preimage import PreImage

AUTOPILOT_IS_ON = "the autopilot is on: if it manages this object, it then sets its own values"
"""Fields that are rolled back are not governed any more, so the autopilot writes them again."""


def owner_of(profile: str) -> PlanOwner:
    """The advisor as the owner of the plans of one profile."""
    return PlanOwner(profile, managers.ADVISOR, "advisor")


async def draft_plan(client: Client, profile: Profile, context: ProfileContext) -> Draft:
    """Draft the plan of a profile, with the nodes and virtual machines that its reboots concern."""
    owner = owner_of(profile.name)
    drafted = await draft(client, owner, profile.intents(context), context.targets)
    owner.reach("drafted")
    if not isinstance(drafted, Drafted):
        return drafted
    return Drafted(await _with_radius(client, drafted.items, context))


async def draft_rollback_plan(client: Client, image: PreImage, context: ProfileContext) -> Draft:
    """Draft the rollback of an executed plan, with what its reboots concern."""
    note = AUTOPILOT_IS_ON if context.is_autopilot_on else ""
    drafted = await draft_rollback(client, owner_of(image.profile), image, context.targets, note)
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
    """Replace the whole status if the config is still as it was read, and return the object as it is then.

    An apply would keep what others have added, even below our own items.
    """
    metadata = config.metadata
    faults.reach("advisor.status.before")
    written = await client.json_patch(
        Ref(VIRT_PLATFORM_CONFIG, metadata.key),
        [
            {"op": "replace", "path": "/metadata/resourceVersion", "value": metadata.resource_version},
            {"op": "add", "path": "/status", "value": msgspec.to_builtins(status)},
        ],
        manager=managers.ADVISOR_STATUS.name,
        subresource="status",
    )
    faults.reach("advisor.status.after")
    return written


async def advertise(client: Client, profile: Profile, docs_url: str) -> None:
    """Create the config that offers the profile unless it exists, and release its fields for users to set."""
    await apply(client, profile.advertisement(docs_url), managers.ADVERTISEMENT, Absent())
    faults.reach("advisor.advertised")
    await release_advertisement(client, Ref(VIRT_PLATFORM_CONFIG, Key("", profile.name)))


async def release_advertisement(client: Client, config: Ref) -> None:
    """Release the fields of an advertisement, so that a user's own apply does not conflict with it."""
    live = await fetch(client, config)
    if live is not None:
        outcome = await release(client, live, managers.ADVERTISEMENT)
        if isinstance(outcome, Stale):
            raise Conflict(409, "Conflict", outcome.because)


def has_advertisement_fields(config: VirtPlatformConfig) -> bool:
    """Whether an advertisement still owns fields of this config: a process ended before it released them."""
    return any(owner.manager == managers.ADVERTISEMENT.name for owner in config.metadata.managed_fields)
