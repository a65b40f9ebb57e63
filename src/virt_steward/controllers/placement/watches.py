"""What the placement watches, and which Machines and clusters a change may concern. Handlers are pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import msgspec

from virt_steward.apis.kubevirtconfig import KUBEVIRT_CONFIG
from virt_steward.controllers.placement.observation import MACHINE, Machine
from virt_steward.controllers.placement.observe import KubevirtConfig
from virt_steward.kube.watch import projection
from virt_steward.runtime.access import Reach
from virt_steward.runtime.controller import Trigger
from virt_steward.runtime.informer import Source
from virt_steward.ssa import managers

if TYPE_CHECKING:
    from collections.abc import Iterable

    from virt_steward.objects.identity import Key
    from virt_steward.runtime.store import Store

NOWHERE = ""
"""The index key of Machines that are not placed."""


@dataclass(frozen=True, slots=True, order=True)
class ClusterKey:
    """The key under which a cluster is probed and reported; Machines have their own."""

    config: str

    def __str__(self) -> str:
        return f"status of {self.config}"


def _config_of(machine: Machine) -> tuple[str, ...]:
    return (machine.request.config,) if machine.is_ours else ()


_decoded = projection(Machine)


def _machine(raw: bytes) -> Machine:
    machine = _decoded(raw)
    ours = tuple(one for one in machine.metadata.managed_fields if one.manager == managers.PLACEMENT.name)
    metadata = msgspec.structs.replace(machine.metadata, managed_fields=ours)
    return msgspec.structs.replace(machine, metadata=metadata)


MACHINES = Source(MACHINE, _machine, indexes={"config": _config_of}, where=Reach.TARGETS)
CONFIGS = Source(KUBEVIRT_CONFIG, projection(KubevirtConfig))


class PlacementEventHandlers:
    """Maps each event to the keys that it can concern."""

    def __init__(self, machines: Store[Machine]) -> None:
        self._machines = machines

    @property
    def triggers(self) -> tuple[Trigger[Any], ...]:
        return (Trigger(CONFIGS, self._by_config), Trigger(MACHINES, self._by_machine))

    def by_cluster(self, config: str) -> Iterable[Key | ClusterKey]:
        """What is known of a cluster has changed."""
        yield ClusterKey(config)
        yield from self.machines_of(config)

    def machines_of(self, config: str) -> Iterable[Key]:
        """The Machines that a change of a cluster may concern: those on it, and those that are on none."""
        for machine in (*self._machines.by("config", NOWHERE), *self._machines.by("config", config)):
            yield machine.metadata.key

    def unplaced(self) -> Iterable[Key]:
        """The Machines that are on no cluster."""
        return [machine.metadata.key for machine in self._machines.by("config", NOWHERE)]

    def _by_machine(self, key: Key, before: Machine | None, after: Machine | None) -> Iterable[Key | ClusterKey]:
        placed_on = {name for one in (before, after) if one for name in _config_of(one)} - {NOWHERE}
        if any(one and one.is_ours for one in (before, after)):
            yield key
        if before is None or after is None or _config_of(before) != _config_of(after):
            yield from (ClusterKey(name) for name in placed_on)

    def _by_config(
        self, key: Key, before: KubevirtConfig | None, after: KubevirtConfig | None
    ) -> Iterable[Key | ClusterKey]:
        if not key.name:  # the permission to read has changed, not an object
            return ()
        if before and after and not concerns_choices(before, after):
            return (ClusterKey(key.name),)
        return self.by_cluster(key.name)


def concerns_choices(before: KubevirtConfig | None, after: KubevirtConfig | None) -> bool:
    """Whether the change of a KubevirtConfig may change the choice of a cluster; a new status does not."""
    if before is None or after is None:
        return True
    return _choice_facts(before) != _choice_facts(after)


def _choice_facts(config: KubevirtConfig) -> tuple[Any, ...]:
    return config.spec, config.metadata.labels, config.metadata.annotations, config.metadata.uid
