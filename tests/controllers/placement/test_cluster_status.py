"""The status writer of clusters, on a manual clock: when it probes, when it writes, and which keys it wakes."""

from collections.abc import AsyncIterator, Hashable
from dataclasses import replace
from functools import partial
from random import Random
from typing import Any

import pytest
from aiohttp import web
from prometheus_client import CollectorRegistry

from tests.clients import a_client
from tests.controllers.placement.builders import a_machine
from tests.eventually import eventually
from tests.fleet import Members, a_fleet
from tests.gateway import Gateway, a_status
from tests.machines import a_config, the_config
from tests.proxy import FaultProxy
from tests.runtime.clocks import ManualClock
from tests.widgets import install_crd
from virt_steward.apis.kubevirtconfig import KUBEVIRT_CONFIG_CRD
from virt_steward.controllers.placement.assignments import Assignments
from virt_steward.controllers.placement.capacity import CapacityCache
from virt_steward.controllers.placement.clusters import BETWEEN_STATUS_WRITES, JITTER, ClusterStatusWriter
from virt_steward.controllers.placement.observe import KubevirtConfig, PlacementClusterView
from virt_steward.controllers.placement.options import PlacementRules
from virt_steward.controllers.placement.pending import PendingMachines
from virt_steward.controllers.placement.reporter import PlacementReporter
from virt_steward.controllers.placement.verdicts import Blocked, PlacementReason
from virt_steward.controllers.placement.watches import CONFIGS, MACHINES
from virt_steward.kube.client import Client
from virt_steward.kube.events import Occurrence
from virt_steward.objects.identity import Key
from virt_steward.runtime.outcomes import Done, Outcome, RequeueAfter
from virt_steward.runtime.store import Store
from virt_steward_demo.local.controlplane import ControlPlane

INTERVAL = 60.0
WEB = Key("default", "web")


class Ears:
    """Hears the events about a cluster."""

    def __init__(self) -> None:
        self.events: list[str] = []

    def again(self, occurrence: Occurrence) -> None:
        self.events.append(occurrence.reason)

    def tell(self, occurrence: Occurrence) -> None:
        """It is no event."""


class Rig:
    """A reporter of one cluster, `east`, whose config is on the server."""

    def __init__(self, client: Client, members: Members, clock: ManualClock) -> None:
        self.members = members
        self.clock = clock
        self.assignments = Assignments()
        self.pending = PendingMachines(clock)
        self.woken: list[Hashable] = []
        self.configs: Store[KubevirtConfig] = Store(CONFIGS.indexes or {})
        machines: Store[Any] = Store(MACHINES.indexes or {})
        capacities = CapacityCache(members.fleet, self.configs, self.assignments, clock, lasting=INTERVAL)
        view = PlacementClusterView(
            machines, self.configs, members.fleet, self.assignments, PlacementRules(), capacities
        )
        self.ears = Ears()
        self._client = client
        self._reporter = ClusterStatusWriter(
            client=client,
            view=view,
            fleet=members.fleet,
            pending=self.pending,
            reporter=PlacementReporter(self.ears, clock, CollectorRegistry()),  # type: ignore[arg-type]
            wake=self.woken.append,
            interval=INTERVAL,
            clock=clock,
            rng=Random(1),
        )

    async def see(self) -> None:
        """As the watch of configs would."""
        self.configs.put(await self._client.get(the_config("east"), KubevirtConfig))

    async def report(self) -> Outcome:
        return await self._reporter.report("east")

    async def reported_by(self, client: Client) -> Outcome:
        """The same by way of another client."""
        return await replace(self._reporter, client=client).report("east")

    async def machines(self) -> int:
        status = (await self._client.get(the_config("east"))).get("status", {})
        return int(status.get("machines", 0))

    async def reasons(self) -> set[str]:
        """Of all conditions."""
        status = (await self._client.get(the_config("east"))).get("status", {})
        return {one["reason"] for one in status.get("conditions", [])}

    @property
    def looks(self) -> int:
        return len(self.members.observed)


@pytest.fixture
async def rig(control_plane: ControlPlane, admin: Client, namespace: str, proxy: FaultProxy) -> AsyncIterator[Rig]:
    await install_crd(admin, KUBEVIRT_CONFIG_CRD.manifest())
    clock = ManualClock()
    async with a_fleet(control_plane, admin, namespace, clock=clock) as members:
        await members.join("east", server=proxy.server)
        await admin.create(a_config("east", Key(namespace, "east")))
        rig = Rig(admin, members, clock)
        await rig.see()
        yield rig
        await admin.delete(the_config("east"))


def seconds(outcome: Outcome) -> float:
    assert isinstance(outcome, RequeueAfter)
    return outcome.seconds


async def test_a_cluster_that_answers_is_looked_at_once_in_a_while_and_not_in_step_with_others(rig: Rig) -> None:
    pauses = []
    for number in range(1, 4):
        pauses.append(seconds(await rig.report()))
        await rig.report()
        assert rig.looks == number
        await rig.clock.advance(pauses[-1])
    assert all(INTERVAL * (1 - JITTER) <= pause <= INTERVAL * (1 + JITTER) for pause in pauses)
    assert len(set(pauses)) == 3


async def test_counts_that_change_quickly_are_written_once_a_second(rig: Rig) -> None:
    await rig.report()
    await rig.see()
    for number in range(5):
        rig.assignments.assume(a_machine(f"m{number}"), "east")
        assert seconds(await rig.report()) == BETWEEN_STATUS_WRITES
    assert await rig.machines() == 0
    await rig.clock.advance(BETWEEN_STATUS_WRITES)
    await rig.report()
    assert await rig.machines() == 5
    assert rig.looks == 1


async def test_a_silent_cluster_is_looked_at_when_it_may_be_asked_again_and_wakes_who_waits_for_it(
    rig: Rig, proxy: FaultProxy
) -> None:
    await proxy.refuse()
    assert seconds(await rig.report()) == pytest.approx(1.0)
    rig.pending.block(WEB, Blocked(PlacementReason.CLUSTERS_SILENT, "east sleeps"))
    await rig.clock.advance(1.0)
    assert seconds(await rig.report()) == pytest.approx(2.0)
    assert rig.woken == []
    await proxy.accept()
    await rig.clock.advance(2.0)
    assert seconds(await rig.report()) > 2.0
    assert rig.woken == [WEB]


async def test_a_search_that_fails_is_believed_before_the_next_look(rig: Rig, proxy: FaultProxy) -> None:
    await rig.report()
    await rig.see()
    await proxy.refuse()
    await proxy.cut()
    await rig.members.fleet.ask("east", lambda reader: reader.raw("/readyz"))
    await rig.clock.advance(BETWEEN_STATUS_WRITES / 2)
    assert seconds(await rig.report()) <= 1.0
    assert rig.looks == 2


async def test_a_rotated_secret_is_looked_at_at_once(rig: Rig, proxy: FaultProxy) -> None:
    await rig.report()
    edition = rig.members.fleet.edition("east")
    await rig.members.rotate("east", rig.members.kubeconfig(proxy.server) + "# rotated\n")
    assert await eventually(lambda: rig.members.fleet.edition("east") != edition)
    await rig.report()
    assert rig.looks == 2


async def test_a_config_that_is_gone_is_looked_at_no_more(rig: Rig) -> None:
    await rig.report()
    rig.configs.remove(Key("", "east"))
    await rig.clock.advance(INTERVAL * 2)
    assert await rig.report() == Done()
    assert rig.looks == 1


async def test_a_server_that_answers_with_nonsense_is_looked_at_no_more_often_than_others(
    rig: Rig, gateway: Gateway
) -> None:
    gateway.intercept = knows_nothing
    await rig.members.rotate("east", rig.members.kubeconfig(gateway.secure_server))
    assert await eventually(partial(leads_to, rig, gateway))
    before = rig.looks
    assert seconds(await rig.report()) >= INTERVAL * (1 - JITTER)
    for _ in range(3):
        await rig.report()
    assert rig.looks == before + 1


async def test_a_web_page_in_place_of_a_cluster_is_told_as_a_refusal(rig: Rig, gateway: Gateway) -> None:
    gateway.intercept = knows_nothing
    await rig.members.rotate("east", rig.members.kubeconfig(gateway.secure_server))
    assert await eventually(partial(leads_to, rig, gateway))
    await rig.report()
    assert await rig.reasons() == {"Refuses"}


async def knows_nothing(_request: web.BaseRequest) -> web.StreamResponse | None:
    return web.Response(status=404, text="404 page not found")


async def leads_to(rig: Rig, gateway: Gateway) -> bool:
    await rig.members.fleet.probe("east")
    return bool(gateway.requests)


async def test_a_definition_without_a_status_does_not_make_it_write_every_second(
    rig: Rig, control_plane: ControlPlane, gateway: Gateway
) -> None:
    async def has_no_status(request: web.BaseRequest) -> web.StreamResponse | None:
        return a_status(404, "NotFound") if request.path.endswith("/status") else None

    gateway.intercept = has_no_status
    async with a_client(control_plane, server=gateway.server) as client:
        assert seconds(await rig.reported_by(client)) >= INTERVAL * (1 - JITTER)


async def test_another_trouble_with_the_credentials_is_told_at_once(rig: Rig) -> None:
    for content, reason in (("garbage: [", "BadKubeconfig"), ("", "SecretKeyMissing")):
        await rig.members.rotate("east", content)
        assert await eventually(partial(is_unusable, rig, reason))
        await rig.report()
        await rig.see()
        assert reason in await rig.reasons()
        await rig.clock.advance(BETWEEN_STATUS_WRITES)


async def is_unusable(rig: Rig, reason: str) -> bool:
    unusable = rig.members.fleet.why_unusable("east")
    return unusable is not None and unusable.reason == reason


async def test_a_cluster_that_fails_and_answers_again_is_an_event_each(rig: Rig, proxy: FaultProxy) -> None:
    await rig.report()
    await rig.see()
    assert rig.ears.events == [], "it answers from the beginning"
    await proxy.refuse()
    await proxy.cut()
    await rig.clock.advance(2 * INTERVAL)
    await rig.report()
    await rig.see()
    await rig.clock.advance(2 * INTERVAL)
    await rig.report()
    assert rig.ears.events == ["ClusterUnreachable"]
    await proxy.accept()
    await rig.clock.advance(2 * INTERVAL)
    await rig.report()
    assert rig.ears.events == ["ClusterUnreachable", "ClusterReady"]
