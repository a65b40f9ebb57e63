"""Measures the latency of requests and of a reaction, alternately with bare requests."""

import time
from collections.abc import Awaitable, Callable, Mapping

from tests.audit import AuditLog
from tests.bench.bare import GET, PATCH, Bare, a_config_map
from tests.bench.figures import Count, Figure, Report, Round
from tests.bench.reaction import AGENT, Reactions
from virt_steward.kube.client import Client

WARM_UP = 20
ROUNDS = 10
TURNS = 20

DRY_RUN = "apply, dry run"
FROM_EVENT = "watch event → patch"
FROM_CHANGE = "change → patch"

APPLIED = a_config_map("bench-applied", mode="Automatic", interval="60")

Samples = Mapping[str, list[float]]


async def measure(client: Client, bare: Bare, audit_log: AuditLog) -> Report:
    await client.apply(APPLIED, manager="bench")
    async with Reactions.of_a_controller(client) as reactions:
        await _round(WARM_UP, client, bare, reactions)
        mark = audit_log.mark()
        rounds = [await _round(TURNS, client, bare, reactions) for _ in range(ROUNDS)]
        of_the_controller = [request for request in audit_log.since(mark) if request.user_agent.startswith(AGENT)]
    figures = tuple(_figure(name, rounds) for name in (PATCH, GET, DRY_RUN, FROM_EVENT, FROM_CHANGE))
    return Report(figures, (Count("requests per reaction", len(of_the_controller) / (ROUNDS * TURNS)),))


async def _round(turns: int, client: Client, bare: Bare, reactions: Reactions) -> Samples:
    samples: Samples = {name: [] for name in (PATCH, GET, DRY_RUN, FROM_EVENT, FROM_CHANGE)}
    for _ in range(turns):
        samples[PATCH].append(await _milliseconds(bare.patch))
        samples[GET].append(await _milliseconds(bare.get))
        samples[DRY_RUN].append(await _milliseconds(lambda: client.apply(APPLIED, manager="bench", dry_run=True)))
        reaction = await reactions.next()
        samples[FROM_EVENT].append(reaction.from_event * 1000)
        samples[FROM_CHANGE].append(reaction.from_change * 1000)
    return samples


async def _milliseconds(request: Callable[[], Awaitable[object]]) -> float:
    started = time.perf_counter()
    await request()
    return (time.perf_counter() - started) * 1000


def _figure(name: str, rounds: list[Samples]) -> Figure:
    return Figure(name, "ms", PATCH, tuple(Round(tuple(samples[name]), tuple(samples[PATCH])) for samples in rounds))
