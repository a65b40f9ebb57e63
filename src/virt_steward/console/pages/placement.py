"""Clusters with health and load, machines and what was decided about them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from virt_steward.apis.kubevirtconfig import KUBEVIRT_CONFIG
from virt_steward.console.page_context import PageContent, holds, not_there
from virt_steward.controllers.placement.observation import MACHINE
from virt_steward.controllers.placement.report import placed_condition, recorded_reason
from virt_steward.objects.identity import Key, Ref

if TYPE_CHECKING:
    from virt_steward.console.hub import Topic
    from virt_steward.console.page_context import PageContext
    from virt_steward.controllers.placement.observation import Machine
    from virt_steward.controllers.placement.observe import KubevirtConfig

SHOWN = 200
TOPICS: frozenset[Topic] = frozenset({"placement", "activity"})


@dataclass(frozen=True, slots=True)
class MachineRow:
    key: Key
    cluster: str
    word: str
    tone: str
    why: str


@dataclass(frozen=True, slots=True)
class ClusterRow:
    name: str
    word: str
    tone: str
    why: str
    machines: int
    version: str
    facts: tuple[str, ...]
    labels: tuple[tuple[str, str], ...]


async def page(visit: PageContext) -> PageContent:
    rows = sorted((_machine(one) for one in visit.machines), key=lambda row: (row.tone == "ok", row.key))
    found = [row for row in rows if holds(f"{row.key} {row.cluster} {row.word} {row.why}", visit.words)]
    values = {
        "clusters": [_cluster(one) for one in visit.clusters],
        "machines": found[:SHOWN],
        "more": max(len(found) - SHOWN, 0),
        "all": len(rows),
        "unplaced": sum(not row.cluster for row in rows),
    }
    return PageContent("placement.html", "Placement", values, TOPICS, missing=(KUBEVIRT_CONFIG, MACHINE))


async def machine(visit: PageContext) -> PageContent:
    key = Key(visit.match["namespace"], visit.match["name"])
    found = visit.cache.machines.get(key) if visit.sight.sees(MACHINE, key.namespace) else None
    if found is None:
        return not_there(f"Machine {key}", MACHINE)
    values = {
        "machine": _machine(found),
        "record": found,
        "clusters": [one.metadata.name for one in visit.clusters],
        "may_choose": await visit.may("patch", MACHINE, key.namespace),
        "told": visit.told_of(str(Ref(MACHINE, key))),
    }
    return PageContent("machine.html", key.name, values, TOPICS)


async def cluster(visit: PageContext) -> PageContent:
    name = visit.match["name"]
    config = next((one for one in visit.clusters if one.metadata.name == name), None)
    if config is None:
        return not_there(f"KubevirtConfig {name}", KUBEVIRT_CONFIG)
    here = sorted((_machine(one) for one in visit.machines if one.request.config == name), key=lambda row: row.key)
    values = {
        "cluster": _cluster(config),
        "conditions": config.status.conditions,
        "machines": here[:SHOWN],
        "more": max(len(here) - SHOWN, 0),
    }
    return PageContent("cluster.html", name, values, TOPICS)


def _machine(one: Machine) -> MachineRow:
    said, cluster = placed_condition(one), one.request.config
    if said and said.status == "False":
        return MachineRow(one.metadata.key, cluster, said.reason or "Unplaced", "warn", said.message)
    if cluster:
        return MachineRow(
            one.metadata.key, cluster, "Placed", "ok", recorded_reason(one) or (said.message if said else "")
        )
    return MachineRow(one.metadata.key, "", "Waiting", "info", "nobody has decided yet")


def _cluster(config: KubevirtConfig) -> ClusterRow:
    status, spec = config.status, config.spec
    wrong = next((one for one in status.conditions if one.status == "False"), None)
    word, tone = status.phase or "Not looked at yet", "ok" if status.phase else "info"
    if wrong:
        word, tone = wrong.reason, "bad"
    facts = [f"weight {spec.weight}"]
    if spec.default:
        facts.insert(0, "default")
    if not spec.schedulable:
        facts.insert(0, "takes no new machines")
    return ClusterRow(
        config.metadata.name,
        word,
        tone,
        wrong.message if wrong else "",
        status.machines,
        status.version,
        tuple(facts),
        tuple(sorted(config.metadata.labels.items())),
    )
