"""A config whose plan is in review, written without an advisor."""

from typing import Any

import msgspec

from tests.controllers.advisor.builders import a_status
from tests.controllers.advisor.desk import Desk, the_config
from virt_steward.apis.profiles import EXAMPLE
from virt_steward.kube.client import Client


async def config_in_review(client: Client, **spec: Any) -> Desk:
    desk = Desk(client, EXAMPLE)
    await desk.ask(**spec)
    await write_status(desk, phase="ReviewRequired")
    return desk


async def write_status(desk: Desk, **changes: Any) -> None:
    generation = (await desk.config())["metadata"]["generation"]
    changed = msgspec.structs.replace(a_status(), observed_generation=generation, items=(), inputs=(), **changes)
    status = msgspec.to_builtins(changed)
    await desk.client.merge_patch(the_config(EXAMPLE), {"status": status}, subresource="status")
