"""A controller that is killed again and again in the midst of its work."""

import asyncio
import time
from itertools import cycle
from pathlib import Path
from random import Random

from tests.eventually import eventually
from tests.replicas import Replica, some_replicas
from virt_steward.kube.client import Client
from virt_steward_demo.local.controlplane import ControlPlane

KILLS = 50
BURST = 10
MOMENTS = ("--lease-duration=1", "--lease-retry=0.1")


def has_begun(replica: Replica) -> bool:
    return replica.said("leading") or not replica.alive  # what is left of earlier bursts may have cut it already


async def test_replicas_stamp_each_object_once_despite_kills(
    control_plane: ControlPlane, admin: Client, namespace: str, tmp_path: Path
) -> None:
    seed = time.time_ns()
    rng = Random(seed)
    cuts = cycle(["stamp.before", "stamp.after", ""])  # at a point, or wherever it happens to be
    started = time.monotonic()
    left_behind = 0
    with some_replicas(control_plane, admin, namespace, tmp_path) as replicas:
        account = await replicas.account("ann")

        def a_replica(cut: str) -> Replica:
            fault = f"{cut}#{rng.randint(1, BURST)}:kill" if cut else ""
            return replicas.start(account, *MOMENTS, fault=fault)

        pair = [a_replica(next(cuts)) for _ in range(2)]  # one waits, so that the next begins a moment later
        for kill in range(KILLS):
            assert await eventually(lambda: any(map(has_begun, pair)), within=30)
            await replicas.ask_for_stamps(*(f"paper-{kill}-{number}" for number in range(BURST)))
            await asyncio.sleep(rng.uniform(0, 0.3))
            leader = next(filter(has_begun, pair))
            leader.kill()
            left_behind += sum(count == 0 for count in (await replicas.stamps()).values())
            pair[pair.index(leader)] = a_replica(next(cuts))
        assert await eventually(replicas.all_are_stamped, within=60)
        stamps = await replicas.stamps()
    print(
        f"\n{KILLS} kills (seed {seed}) in {time.monotonic() - started:.0f} s, "
        f"{left_behind / KILLS:.1f} objects not stamped at each kill: "
        f"{len(stamps)} objects, {sum(stamps.values())} stamps"
    )
    assert len(stamps) == KILLS * BURST
    assert set(stamps.values()) == {1}
