"""The events, conditions and metrics of placement decisions."""

from datetime import timedelta

import msgspec
import pytest
from prometheus_client import CollectorRegistry, generate_latest

from tests.controllers.placement.builders import a_machine
from tests.runtime.clocks import ManualClock
from virt_steward.controllers.placement.fleet import ClusterReached, ClusterRejected
from virt_steward.controllers.placement.observation import (
    BECAUSE_ANNOTATION,
    CONFIG_ANNOTATION,
    MachineCondition,
    MachineStatus,
    Unreachable,
    UnusableCluster,
)
from virt_steward.controllers.placement.reporter import PlacementReporter
from virt_steward.controllers.placement.rules import RULES
from virt_steward.controllers.placement.verdicts import Blocked, Chosen, PlacementReason
from virt_steward.controllers.placement.watches import MACHINES
from virt_steward.kube.events import Occurrence
from virt_steward.objects.identity import Key
from virt_steward.objects.wallclock import rfc3339
from virt_steward.ssa.managers import PLACEMENT

WEB = a_machine("web")
[ONLY_ONE] = [rule for rule in RULES if rule.name == "the_only_one"]
[EXISTING_VM] = [rule for rule in RULES if rule.name == "existing_vm"]
TWICE = Blocked(PlacementReason.FOUND_TWICE, "vm-web exists in east and west")
OURS = PLACEMENT.name
SILENT = Blocked(PlacementReason.CLUSTERS_SILENT, "vm-web may exist in west")


class Reported:
    """A reporter, and the events that it recorded."""

    def __init__(self) -> None:
        self.events: list[Occurrence] = []
        self.clock = ManualClock()
        self._registry = CollectorRegistry()
        self.reporter = PlacementReporter(self, self.clock, self._registry)  # type: ignore[arg-type]  # no others are used

    def once(self, occurrence: Occurrence) -> None:
        self.events.append(occurrence)

    def tell(self, occurrence: Occurrence) -> None:
        """It is no event."""

    def metric(self, name: str, **labels: str) -> float | None:
        return self._registry.get_sample_value(f"virt_steward_placement_{name}", labels)

    def exposition(self) -> str:
        return generate_latest(self._registry).decode()


@pytest.fixture
def reported() -> Reported:
    return Reported()


def test_placed_records_an_event_and_counts_by_rule(reported: Reported) -> None:
    reported.reporter.placed(WEB, Chosen("east", "it is the only cluster"), ONLY_ONE, ())
    [event] = reported.events
    assert (event.type, event.reason, event.note) == (
        "Normal",
        "Placed",
        "placed on cluster east: it is the only cluster",
    )
    assert reported.metric("decisions_total", strategy="the_only_one", outcome="Placed") == 1


def test_placed_names_the_manager_of_a_taken_field(reported: Reported) -> None:
    reported.reporter.placed(WEB, Chosen("east", "it is the only cluster"), ONLY_ONE, ("kubectl",))
    assert reported.events[0].note.endswith("it is the only cluster (the empty annotation was taken from kubectl)")


def test_blocked_records_the_same_warning_each_time(reported: Reported) -> None:
    reported.reporter.blocked(WEB, TWICE, EXISTING_VM)
    reported.reporter.blocked(WEB, TWICE, EXISTING_VM)
    reported.reporter.blocked(WEB, SILENT, EXISTING_VM)
    assert [one.type for one in reported.events] == ["Warning"] * 3
    assert reported.events[0].key == reported.events[1].key != reported.events[2].key
    assert reported.metric("decisions_total", strategy="existing_vm", outcome="FoundTwice") == 2


def test_pending_counts_machines_and_oldest_by_reason(reported: Reported) -> None:
    now = reported.clock.utc().timestamp()
    reported.reporter.pending(WEB, TWICE, seconds=10)
    reported.reporter.pending(a_machine("db"), TWICE, seconds=60)
    assert reported.metric("unplaced_machines", reason="FoundTwice") == 2
    assert reported.metric("oldest_unplaced_timestamp_seconds", reason="FoundTwice") == now - 60
    reported.reporter.pending(a_machine("db"), SILENT, seconds=60)
    reported.reporter.not_pending(Key("default", "web"))
    assert reported.metric("unplaced_machines", reason="FoundTwice") is None
    assert reported.metric("unplaced_machines", reason="ClustersSilent") == 1


@pytest.mark.parametrize(
    ("since", "expected"),
    [
        pytest.param("2030-01-01T00:00:00Z", 1893456000.0, id="before-this-process-began"),
        pytest.param("yesterday", 1893457000.0, id="unless-somebody-edited-it"),
    ],
)
def test_pending_starts_at_the_transition_of_the_condition(reported: Reported, since: str, expected: float) -> None:
    condition = MachineCondition("Placed", "False", "FoundTwice", "", since)
    machine = msgspec.structs.replace(WEB, status=MachineStatus((condition,)))
    reported.reporter.pending(machine, TWICE, seconds=0)
    assert reported.metric("oldest_unplaced_timestamp_seconds", reason="FoundTwice") == expected


def test_cluster_probed_is_reachable_if_it_answers(reported: Reported) -> None:
    reported.reporter.cluster_probed("fine", ClusterReached("v1.36.3"))
    reported.reporter.cluster_probed("strict", ClusterRejected("no"))
    reported.reporter.cluster_probed("dead", Unreachable("no"))
    reported.reporter.cluster_probed("unknown", UnusableCluster(PlacementReason.SECRET_NOT_FOUND, "no"))
    reachable = [reported.metric("cluster_reachable", cluster=name) for name in ("fine", "strict", "dead", "unknown")]
    assert reachable == [1, 1, 0, 0]


def test_cluster_deleted_removes_its_series(reported: Reported) -> None:
    reported.reporter.cluster_probed("east", ClusterReached("v1.36.3"))
    reported.reporter.request_ended("east", 0.1, answered=True)
    assert 'cluster="east"' in reported.exposition()
    reported.reporter.cluster_deleted("east")
    assert 'cluster="east"' not in reported.exposition()


@pytest.mark.parametrize(
    ("manager", "ago", "cluster", "notes"),
    [
        pytest.param(OURS, 30, "east", ["placed on cluster east: it is the only cluster"], id="of-late-by-us"),
        pytest.param(OURS, 3600, "east", [], id="long-ago"),
        pytest.param("kubectl", 30, "east", [], id="by-somebody-else"),
        pytest.param(OURS, 30, "west", [], id="by-us-but-changed-since"),
    ],
)
def test_already_placed_records_the_event_of_a_recent_choice(
    reported: Reported, manager: str, ago: float, cluster: str, notes: list[str]
) -> None:
    time = rfc3339(reported.clock.utc() - timedelta(seconds=ago))
    metadata = {
        "name": "web",
        "namespace": "default",
        "uid": "web",
        "annotations": {CONFIG_ANNOTATION: cluster, BECAUSE_ANNOTATION: "east: it is the only cluster"},
        "managedFields": [{"manager": "others", "time": time}, {"manager": manager, "time": time}],
    }
    machine = MACHINES.decode(msgspec.json.encode({"metadata": metadata}))
    reported.reporter.already_placed(machine)
    assert [one.note for one in reported.events] == notes
    reported.reporter.placed(machine, Chosen("east", "it is the only cluster"), ONLY_ONE, ())
    assert len({one.key for one in reported.events}) == 1, "a server takes it but once"
