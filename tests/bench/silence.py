"""Counts the requests of the autopilot for a converged object."""

from random import Random

from tests.audit import AuditLog
from tests.bench.bare import a_config_map
from tests.bench.figures import Count
from virt_steward.catalog.load import load
from virt_steward.catalog.render import Renderer
from virt_steward.controllers.autopilot.annotation_keys import DriftMode
from virt_steward.controllers.autopilot.converge import Task, Toolkit, converge
from virt_steward.controllers.autopilot.decide import Wanted
from virt_steward.controllers.autopilot.live_summary import live_summary
from virt_steward.controllers.autopilot.options import HCO
from virt_steward.controllers.autopilot.overrides.governed import NOT_GOVERNED
from virt_steward.controllers.autopilot.overrides.mask import NO_MASK
from virt_steward.controllers.autopilot.rollouts.ledger import StagingLedger
from virt_steward.controllers.autopilot.rollouts.policy import RolloutPolicy
from virt_steward.controllers.autopilot.verdicts import AssetApplied, AssetInSync
from virt_steward.kube.client import Client
from virt_steward.objects.identity import ref_of
from virt_steward.runtime.clock import SystemClock
from virt_steward.runtime.store import Store

LOOKS = 100

INTENT = a_config_map("bench-converged", mode="Automatic")
WANTED = Wanted(INTENT, NO_MASK, DriftMode.ENFORCE, is_paused=False, rollout=RolloutPolicy())


async def measure(client: Client, audit_log: AuditLog) -> Count:
    clock = SystemClock()
    ledger = StagingLedger(client, Store({}), HCO, clock)
    bench = Toolkit.of(client, Renderer(load()), ledger, Random(1), clock)
    made = await converge(bench, Task(WANTED, None, NOT_GOVERNED, INTENT))
    assert isinstance(made, AssetApplied), made
    seen = live_summary(await client.get(ref_of(INTENT)))
    mark = audit_log.mark()
    for _ in range(LOOKS):
        verdict = await converge(bench, Task(WANTED, seen, NOT_GOVERNED, INTENT))
        assert isinstance(verdict, AssetInSync), verdict
    ours = [request for request in audit_log.since(mark) if request.name == "bench-converged"]
    return Count("requests if converged", len(ours) / LOOKS)
