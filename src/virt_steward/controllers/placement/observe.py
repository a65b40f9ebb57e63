"""Gathers what bears on one machine, from what is known already: no cluster is asked here."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import msgspec

from virt_steward.apis.kubevirtconfig import KubevirtConfigSpec
from virt_steward.apis.meta import Condition
from virt_steward.controllers.placement.seen import Cluster, Seen, Unusable
from virt_steward.controllers.placement.verdicts import Reason
from virt_steward.objects.meta import Meta

if TYPE_CHECKING:
    from collections.abc import Mapping

    from virt_steward.controllers.placement.ledger import Ledger
    from virt_steward.controllers.placement.room import Rooms
    from virt_steward.controllers.placement.seen import Finding, Machine, Rules, Silent
    from virt_steward.objects.identity import Key
    from virt_steward.runtime.store import Store


class ConfigMeta(Meta, frozen=True):
    labels: dict[str, str] = msgspec.field(default_factory=dict)
    generation: int = 0


class Told(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """The part of a KubevirtConfig's status that is ours; the rest belongs to others."""

    phase: str = ""
    version: str = ""
    machines: int = 0
    observed_generation: int = 0
    conditions: tuple[Condition, ...] = ()


class Config(msgspec.Struct, frozen=True):
    """A KubevirtConfig."""

    metadata: ConfigMeta
    spec: KubevirtConfigSpec = KubevirtConfigSpec()
    status: Told = Told()


class Health(Protocol):
    """What is known of clusters."""

    def usable(self, config: str) -> Unusable | None: ...

    def silence(self, config: str) -> Silent | None: ...


@dataclass(frozen=True, slots=True)
class Outlook:
    """All that a choice is made from."""

    machines: Store[Machine]
    configs: Store[Config]
    health: Health
    ledger: Ledger
    rules: Rules
    rooms: Rooms


def observe(outlook: Outlook, key: Key, findings: Mapping[str, Finding]) -> Seen | None:
    """None: there is no such machine."""
    machine = outlook.machines.get(key)
    return Seen(machine, clusters(outlook), findings, outlook.rules) if machine else None


def clusters(outlook: Outlook) -> tuple[Cluster, ...]:
    known = [_cluster(outlook, config) for config in outlook.configs]
    # What cannot be read is not absent: it may be the cluster that runs the machine.
    unreadable = [_unreadable(key.name, outlook.configs.unreadable(key)) for key in outlook.configs.unreadables()]
    return tuple(sorted((*known, *unreadable), key=lambda one: one.name))


def _cluster(outlook: Outlook, config: Config) -> Cluster:
    name = config.metadata.name
    silence = outlook.health.silence(name)
    machines = outlook.ledger.machines_on(name)
    room = outlook.rooms.of(name)
    return Cluster(
        name,
        config.metadata.labels,
        default=config.spec.default,
        weight=config.spec.weight,
        schedulable=config.spec.schedulable,
        unusable=outlook.health.usable(name),
        silent=silence.because if silence else "",
        machines=machines,
        free=room.with_machines(machines) if room else None,
    )


def _unreadable(name: str, problem: str | None) -> Cluster:
    because = f"KubevirtConfig {name} cannot be read: {problem}"
    return Cluster(name, None, unusable=Unusable(Reason.CONFIG_INCOMPLETE, because))
