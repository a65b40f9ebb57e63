"""A plan that waits for review, written by hand: no advisor is at work."""

from typing import Any

import msgspec

from tests.controllers.advisor.builders import a_status
from tests.controllers.advisor.desk import Desk, the_config
from virt_steward.apis.virtplatformconfig import EXAMPLE
from virt_steward.kube.client import Client


async def waiting(client: Client, **spec: Any) -> Desk:
    desk = Desk(client, EXAMPLE)
    await desk.ask(**spec)
    await tell(desk, phase="ReviewRequired")
    return desk


async def tell(desk: Desk, **changes: Any) -> None:
    generation = (await desk.config())["metadata"]["generation"]
    told = msgspec.structs.replace(a_status(), observed_generation=generation, items=(), inputs=(), **changes)
    status = msgspec.to_builtins(told)
    await desk.client.merge_patch(the_config(EXAMPLE), {"status": status}, subresource="status")
