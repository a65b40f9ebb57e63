"""How many requests it takes to find that nothing has changed since the last time."""

import time
from random import Random

from tests.audit import AuditLog
from tests.bench.bare import a_config_map
from tests.bench.figures import Count
from virt_steward.kube.client import Client
from virt_steward.ssa.managers import AUTOPILOT
from virt_steward.ssa.memo import Memo, Sighting
from virt_steward.ssa.previewer import Previewer

LOOKS = 100

INTENT = a_config_map("bench-converged", mode="Automatic")


async def measure(client: Client, audit_log: AuditLog) -> Count:
    applied = await client.apply(INTENT, manager=AUTOPILOT.name)
    sighting = Sighting.of(applied.object)
    previewer = Previewer(client, Memo(Random(1)), time.monotonic)
    await previewer.preview(INTENT, AUTOPILOT, sighting)
    mark = audit_log.mark()
    for _ in range(LOOKS):
        await previewer.preview(INTENT, AUTOPILOT, sighting)
    ours = [request for request in audit_log.since(mark) if request.name == "bench-converged"]
    return Count("requests if converged", len(ours) / LOOKS)
