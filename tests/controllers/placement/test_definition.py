"""The placement as it is put together, with a server that answers as a test wants."""

from types import SimpleNamespace
from typing import Any

import msgspec
import pytest
from prometheus_client import CollectorRegistry

from tests.controllers.placement.builders import a_machine
from tests.machines import a_definition_of_machines
from tests.runtime.clocks import ManualClock
from virt_steward.controllers.placement.definition import definition
from virt_steward.controllers.placement.options import PlacementOptions
from virt_steward.controllers.placement.reconcile import STALE
from virt_steward.controllers.placement.watches import CONFIGS, MACHINES, ClusterKey
from virt_steward.kube.errors import Invalid
from virt_steward.objects.identity import Key
from virt_steward.runtime.store import Store

WEB = Key("default", "web")


class Informers:
    """Stores that a test fills, and who listens to them."""

    def __init__(self) -> None:
        self._known: dict[Any, SimpleNamespace] = {}

    def of(self, source: Any) -> Any:
        if source not in self._known:
            handlers: list[Any] = []
            self._known[source] = SimpleNamespace(
                store=Store(source.indexes or {}), tell=handlers.append, handlers=handlers
            )
        return self._known[source]

    def put(self, source: Any, obj: Any) -> None:
        informer = self.of(source)
        before = informer.store.put(obj)
        for handle in informer.handlers:
            handle(obj.metadata.key, before, obj)

    def remove(self, source: Any, key: Key) -> None:
        informer = self.of(source)
        before = informer.store.remove(key)
        for handle in informer.handlers:
            handle(key, before, None)


class Server:
    """Knows the definition of machines, and refuses to patch them."""

    async def get(self, _ref: object, into: Any) -> Any:
        return msgspec.json.decode(msgspec.json.encode(a_definition_of_machines()), type=into)

    async def json_patch(self, *_: object, **__: object) -> None:
        self.meanwhile()
        raise Invalid(422, "Invalid", "the server rejected our request due to an error in our request")

    def meanwhile(self) -> None:
        """What happens before the patch arrives."""


class Bench:
    def __init__(self) -> None:
        self.informers = Informers()
        self.server = Server()
        self.registry = CollectorRegistry()
        tools = SimpleNamespace(
            informers=self.informers,
            store=lambda source: self.informers.of(source).store,
            client=self.server,
            recorder=SimpleNamespace(**dict.fromkeys(("once", "again", "tell"), lambda _: None)),
            clock=ManualClock(),
            registry=self.registry,
            wake=lambda _: None,
            accompany=lambda _: None,
        )
        self.controller = definition(PlacementOptions()).build(tools)  # type: ignore[arg-type]

    def unplaced(self) -> float | None:
        return self.registry.get_sample_value("virt_steward_placement_unplaced_machines", {"reason": "NoConfigs"})

    def reachable(self) -> float | None:
        return self.registry.get_sample_value("virt_steward_placement_cluster_reachable", {"cluster": "east"})


@pytest.fixture
def bench() -> Bench:
    return Bench()


async def test_a_machine_that_goes_while_another_process_leads_waits_no_more(bench: Bench) -> None:
    bench.informers.put(MACHINES, a_machine("web"))
    with pytest.raises(Invalid):
        await bench.controller.reconcile(WEB)
    assert bench.unplaced() == 1
    bench.informers.remove(MACHINES, WEB)
    assert bench.unplaced() is None


async def test_a_config_that_goes_while_another_process_leads_leaves_no_series(bench: Bench) -> None:
    config = CONFIGS.decode(b'{"metadata":{"name":"east"},"spec":{}}')
    bench.informers.put(CONFIGS, config)
    bench.server.apply = answered  # type: ignore[attr-defined]
    await bench.controller.reconcile(ClusterKey("east"))
    assert bench.reachable() == 0
    bench.informers.remove(CONFIGS, config.metadata.key)
    assert bench.reachable() is None


async def answered(*_: object, **__: object) -> None:
    """Take it."""


async def test_a_condition_on_a_machine_that_has_changed_is_for_the_next_time(bench: Bench) -> None:
    machine = a_machine("web")
    bench.informers.put(MACHINES, machine)
    metadata = msgspec.structs.replace(machine.metadata, resource_version="2")
    bench.server.meanwhile = lambda: bench.informers.put(  # type: ignore[method-assign]
        MACHINES, msgspec.structs.replace(machine, metadata=metadata)
    )
    assert await bench.controller.reconcile(WEB) == STALE


async def test_a_condition_that_the_server_does_not_take_is_an_error(bench: Bench) -> None:
    bench.informers.put(MACHINES, a_machine("web"))
    with pytest.raises(Invalid):
        await bench.controller.reconcile(WEB)
