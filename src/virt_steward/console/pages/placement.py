"""Placement: clusters with their health and load, Machines with their cluster and its reason."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from virt_steward.apis.kubevirtconfig import KUBEVIRT_CONFIG
from virt_steward.console.page_context import PageContent, matches, not_found
from virt_steward.console.pictures.mosaic import mosaic
from virt_steward.controllers.placement.observation import MACHINE
from virt_steward.controllers.placement.report import placed_condition, recorded_reason
from virt_steward.objects.checks import CheckResult
from virt_steward.objects.identity import Key, Ref

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from datetime import datetime

    from virt_steward.apis.kubevirtconfig import ReportedCapacity
    from virt_steward.console.live import Topic
    from virt_steward.console.page_context import PageContext
    from virt_steward.console.pictures.mosaic import Mosaic
    from virt_steward.controllers.placement.observation import Machine
    from virt_steward.controllers.placement.observe import KubevirtConfig

SHOWN = 200
DESTINATIONS_SHOWN = 50
STATES = {"warn": "Blocked", "info": "Pending", "ok": "Placed"}
"""The states of Machines by the tone of their row, the worst first."""
TOPICS: frozenset[Topic] = frozenset({"placement", "activity"})


@dataclass(frozen=True, slots=True)
class MachineRow:
    """A Machine with its state."""

    key: Key
    cluster: str
    word: str
    tone: str
    message: str


@dataclass(frozen=True, slots=True)
class CapacityBar:
    """How much of one resource is used, in percent."""

    resource: str
    used: int


@dataclass(frozen=True, slots=True)
class Destination:
    """A cluster, and the Machines that went there; those without a cluster have no name."""

    cluster: str
    picture: Mosaic
    summary: str


@dataclass(frozen=True, slots=True)
class ClusterRow:
    """A cluster with its state."""

    name: str
    word: str
    tone: str
    message: str
    machines: int
    bars: tuple[CapacityBar, ...]
    """Empty if its capacity was never measured."""
    measured: datetime | None
    """Since when these are the figures."""
    version: str
    facts: tuple[str, ...]
    labels: tuple[tuple[str, str], ...]


async def page(context: PageContext) -> PageContent:
    rows = sorted((_machine(one) for one in context.machines), key=lambda row: (row.tone == "ok", row.key))
    clusters = [_cluster(one) for one in context.clusters]
    found = [row for row in rows if matches(f"{row.key} {row.cluster} {row.word} {row.message}", context.search)]
    values = {
        "clusters": clusters,
        "destinations": destinations([one.name for one in clusters], rows),
        "machines": found[:SHOWN],
        "more": max(len(found) - SHOWN, 0),
        "all": len(rows),
        "unplaced": sum(not row.cluster for row in rows),
    }
    return PageContent("placement.html", "Placement", values, TOPICS, kinds=(KUBEVIRT_CONFIG, MACHINE))


async def machine(context: PageContext) -> PageContent:
    key = Key(context.match["namespace"], context.match["name"])
    found = context.cache.machines.get(key) if context.scope.sees(MACHINE, key.namespace) else None
    if found is None:
        return not_found(f"Machine {key}", MACHINE)
    values = {
        "machine": _machine(found),
        "annotations": found.request,
        "uid": found.metadata.uid,
        "checks": _checks(found),
        "clusters": [one.metadata.name for one in context.clusters],
        "may_choose": await context.may("patch", MACHINE, key.namespace),
        "events": context.events_about(str(Ref(MACHINE, key))),
    }
    return PageContent("machine.html", key.name, values, TOPICS)


async def cluster(context: PageContext) -> PageContent:
    name = context.match["name"]
    config = next((one for one in context.clusters if one.metadata.name == name), None)
    if config is None:
        return not_found(f"KubevirtConfig {name}", KUBEVIRT_CONFIG)
    here = sorted((_machine(one) for one in context.machines if one.request.config == name), key=lambda row: row.key)
    values = {
        "cluster": _cluster(config),
        "conditions": config.status.conditions,
        "machines": here[:SHOWN],
        "more": max(len(here) - SHOWN, 0),
    }
    return PageContent("cluster.html", name, values, TOPICS)


def destinations(clusters: Iterable[str], rows: Iterable[MachineRow]) -> list[Destination]:
    """Where Machines went: each cluster with its Machines by state, and last those without a cluster."""
    counts: dict[str, Counter[str]] = {name: Counter() for name in clusters}
    for row in rows:
        counts.setdefault(row.cluster, Counter())[STATES[row.tone]] += 1
    unplaced = counts.pop("", None)
    found = [_destination(name, counts[name]) for name in sorted(counts)[:DESTINATIONS_SHOWN]]
    return [*found, _destination("", unplaced)] if unplaced else found


def _destination(cluster: str, counts: Counter[str]) -> Destination:
    groups = [(word.lower(), word, counts[word]) for word in STATES.values() if counts[word]]
    total = counts.total()
    counted = ", ".join(f"{count:,} {word.lower()}" for _, word, count in groups)
    where = f"on {cluster}" if cluster else "without a cluster"
    machines = f"{total:,} Machine{'' if total == 1 else 's'} {where}"
    return Destination(cluster, mosaic(groups), f"{machines}: {counted}" if counted else machines)


def _bars(free: ReportedCapacity | None) -> Iterator[CapacityBar]:
    if free:
        yield CapacityBar("Memory", 100 - free.memory)
    if free and free.cpu is not None:
        yield CapacityBar("CPU", 100 - free.cpu)


def _machine(one: Machine) -> MachineRow:
    condition, cluster = placed_condition(one), one.request.config
    if condition and condition.status == "False":
        return MachineRow(one.metadata.key, cluster, condition.reason or "Unplaced", "warn", condition.message)
    if cluster:
        message = recorded_reason(one) or (condition.message if condition else "")
        return MachineRow(one.metadata.key, cluster, "Placed", "ok", message)
    return MachineRow(one.metadata.key, "", "Pending", "info", "The placement controller has not decided yet")


def _checks(machine: Machine) -> tuple[CheckResult, ...]:
    """What the controller last reported. The whole chain asks all clusters, for which the console has no rights."""
    condition = placed_condition(machine)
    if condition is None:
        return (CheckResult("Placed", "not reached", "not evaluated yet"),)
    reason = condition.message or condition.reason
    return (CheckResult("Placed", "pass" if condition.status == "True" else "fail", reason, decided=True),)


def _cluster(config: KubevirtConfig) -> ClusterRow:
    status = config.status
    failing = next((one for one in status.conditions if one.status == "False"), None)
    word, tone = status.phase or "Not checked yet", "ok" if status.phase else "info"
    if failing:
        word, tone = failing.reason, "bad"
    facts = [f"weight {config.weight}"]
    if config.is_default:
        facts.insert(0, "default")
    if not config.is_schedulable:
        facts.insert(0, "cordoned")
    return ClusterRow(
        config.metadata.name,
        word,
        tone,
        failing.message if failing else "",
        status.machines,
        tuple(_bars(status.free)),
        status.free.at if status.free else None,
        status.version,
        tuple(facts),
        tuple(sorted(config.metadata.labels.items())),
    )
