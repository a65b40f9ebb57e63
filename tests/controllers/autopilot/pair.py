"""Two assets that are looked after: one to do things to, and one that tells when these have been seen."""

from functools import partial
from typing import Any

from tests.controllers.autopilot.rig import AutopilotRig, spec_of
from tests.eventually import eventually
from virt_steward.controllers.autopilot.signatures import is_signature_pending

ASSET = "descheduler-loadaware"
OTHER = "metrics-service"
BOTH = f"{ASSET},{OTHER}"
AUTOPILOT = "virt-platform-autopilot"

Object = dict[str, Any]


async def activate_two(rig: AutopilotRig) -> None:
    await rig.activate(BOTH)
    for asset in (ASSET, OTHER):
        assert await eventually(partial(rig.has_event, "AssetApplied", asset), within=30)


async def substance(rig: AutopilotRig, asset: str = ASSET) -> Object:
    """All of an object that counts, but annotations of people, and which fields are the autopilot's."""
    obj = await rig.live(asset)
    assert obj
    metadata = obj["metadata"]
    owned = [one["fieldsV1"] for one in metadata["managedFields"] if one["manager"] == AUTOPILOT]
    return {"spec": obj["spec"], "labels": metadata["labels"], "uid": metadata["uid"], "owned": owned}


async def is_corrected(rig: AutopilotRig) -> None:
    """The other asset drifts and is set right: by then, whatever came before it was seen.

    Just after its creation, the annotation of its signature still changes its owner: that is waited for.
    """
    assert await eventually(partial(_is_signed, rig, OTHER), within=30)
    before = await substance(rig, OTHER)
    await rig.edit(OTHER, {"metadata": {"labels": {"app": "other"}}})

    async def as_before() -> bool:
        return await substance(rig, OTHER) == before

    assert await eventually(as_before, within=30)


async def _is_signed(rig: AutopilotRig, asset: str) -> bool:
    live = await rig.live(asset)
    return live is not None and not is_signature_pending(live)


async def becomes(rig: AutopilotRig, **spec: Any) -> bool:
    async def is_so() -> bool:
        return spec.items() <= spec_of(await rig.live(ASSET)).items()

    return await eventually(is_so, within=30)
