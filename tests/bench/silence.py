"""How many requests it takes the autopilot to find that nothing has changed since the last time."""

from random import Random

from tests.audit import AuditLog
from tests.bench.bare import a_config_map
from tests.bench.figures import Count
from virt_steward.catalog.load import load
from virt_steward.catalog.render import Renderer
from virt_steward.controllers.autopilot.baseline import Bench, Work, converge
from virt_steward.controllers.autopilot.decide import Wanted
from virt_steward.controllers.autopilot.overrides.drift_mode import DriftMode
from virt_steward.controllers.autopilot.overrides.governed import NOT_GOVERNED
from virt_steward.controllers.autopilot.overrides.mask import NO_MASK
from virt_steward.controllers.autopilot.sighted import sighted
from virt_steward.controllers.autopilot.verdicts import Applied, InOrder
from virt_steward.controllers.autopilot.wars import Wars
from virt_steward.kube.client import Client
from virt_steward.objects.identity import ref_of
from virt_steward.runtime.clock import SystemClock
from virt_steward.ssa.memo import Memo

LOOKS = 100

INTENT = a_config_map("bench-converged", mode="Automatic")
WANTED = Wanted(INTENT, NO_MASK, DriftMode.ENFORCE, is_paused=False)


async def measure(client: Client, audit_log: AuditLog) -> Count:
    bench = Bench(client, Renderer(load()), Memo(Random(1)), Memo(Random(1)), Wars(), SystemClock())
    made = await converge(bench, Work(WANTED, None, NOT_GOVERNED, INTENT))
    assert isinstance(made, Applied), made
    seen = sighted(await client.get(ref_of(INTENT)))
    mark = audit_log.mark()
    for _ in range(LOOKS):
        verdict = await converge(bench, Work(WANTED, seen, NOT_GOVERNED, INTENT))
        assert isinstance(verdict, InOrder), verdict
    ours = [request for request in audit_log.since(mark) if request.name == "bench-converged"]
    return Count("requests if converged", len(ours) / LOOKS)
