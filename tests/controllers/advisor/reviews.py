"""A config whose plan is in review, written without an advisor."""

from typing import Any

import msgspec

from tests.controllers.advisor.builders import a_status
from tests.controllers.advisor.rig import AdvisorRig, the_config
from virt_steward.apis.profiles import EXAMPLE
from virt_steward.kube.client import Client


async def config_in_review(client: Client, **spec: Any) -> AdvisorRig:
    rig = AdvisorRig(client, EXAMPLE)
    await rig.ask(**spec)
    await write_status(rig, phase="ReviewRequired")
    return rig


async def write_status(rig: AdvisorRig, **changes: Any) -> None:
    generation = (await rig.config())["metadata"]["generation"]
    changed = msgspec.structs.replace(a_status(), observed_generation=generation, items=(), inputs=(), **changes)
    status = msgspec.to_builtins(changed)
    await rig.client.merge_patch(the_config(EXAMPLE), {"status": status}, subresource="status")
