"""What people and Prometheus hear of decisions."""

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
from virt_steward.controllers.placement.verdicts import Blocked, Chosen, PlacementReason
from virt_steward.controllers.placement.watches import MACHINES
from virt_steward.kube.events import Occurrence
from virt_steward.objects.identity import Key
from virt_steward.objects.wallclock import rfc3339
from virt_steward.ssa.managers import PLACEMENT

WEB = a_machine("web")
TWICE = Blocked(PlacementReason.FOUND_TWICE, "vm-web exists in east and west")
OURS = PLACEMENT.name
SILENT = Blocked(PlacementReason.CLUSTERS_SILENT, "vm-web may exist in west")


class Told:
    """A reporter, and what was heard of it."""

    def __init__(self) -> None:
        self.heard: list[Occurrence] = []
        self.clock = ManualClock()
        self._registry = CollectorRegistry()
        self.reporter = PlacementReporter(self, self.clock, self._registry)  # type: ignore[arg-type]  # only `once` is used

    def once(self, occurrence: Occurrence) -> None:
        self.heard.append(occurrence)

    def metric(self, name: str, **labels: str) -> float | None:
        return self._registry.get_sample_value(f"virt_steward_placement_{name}", labels)

    def exposition(self) -> str:
        return generate_latest(self._registry).decode()


@pytest.fixture
def told() -> Told:
    return Told()


def test_a_choice_is_an_event_with_its_reason_and_is_counted_by_strategy(told: Told) -> None:
    told.reporter.placed(WEB, Chosen("east", "it is the only one"), "the_only_one", ())
    [event] = told.heard
    assert (event.type, event.reason, event.note) == ("Normal", "Placed", "placed on cluster east: it is the only one")
    assert told.metric("decisions_total", strategy="the_only_one", outcome="Placed") == 1


def test_a_field_that_was_taken_is_told_with_its_owner(told: Told) -> None:
    told.reporter.placed(WEB, Chosen("east", "it is the only one"), "the_only_one", ("kubectl",))
    assert told.heard[0].note.endswith("it is the only one (the empty annotation was taken from kubectl)")


def test_what_blocks_is_a_warning_with_the_same_name_each_time(told: Told) -> None:
    told.reporter.blocked(WEB, TWICE, "existing_vm")
    told.reporter.blocked(WEB, TWICE, "existing_vm")
    told.reporter.blocked(WEB, SILENT, "existing_vm")
    assert [one.type for one in told.heard] == ["Warning"] * 3
    assert told.heard[0].key == told.heard[1].key != told.heard[2].key
    assert told.metric("decisions_total", strategy="existing_vm", outcome="FoundTwice") == 2


def test_machines_that_wait_are_counted_by_reason_and_the_oldest_is_known(told: Told) -> None:
    now = told.clock.utc().timestamp()
    told.reporter.waits(WEB, TWICE, waited=10)
    told.reporter.waits(a_machine("db"), TWICE, waited=60)
    assert told.metric("unplaced_machines", reason="FoundTwice") == 2
    assert told.metric("oldest_unplaced_timestamp_seconds", reason="FoundTwice") == now - 60
    told.reporter.waits(a_machine("db"), SILENT, waited=60)
    told.reporter.waits_no_more(Key("default", "web"))
    assert told.metric("unplaced_machines", reason="FoundTwice") is None
    assert told.metric("unplaced_machines", reason="ClustersSilent") == 1


@pytest.mark.parametrize(
    ("since", "expected"),
    [
        pytest.param("2030-01-01T00:00:00Z", 1893456000.0, id="before-this-process-began"),
        pytest.param("yesterday", 1893457000.0, id="unless-somebody-edited-it"),
    ],
)
def test_a_machine_waits_since_its_condition_says_so(told: Told, since: str, expected: float) -> None:
    condition = MachineCondition("Placed", "False", "FoundTwice", "", since)
    machine = msgspec.structs.replace(WEB, status=MachineStatus((condition,)))
    told.reporter.waits(machine, TWICE, waited=0)
    assert told.metric("oldest_unplaced_timestamp_seconds", reason="FoundTwice") == expected


def test_a_cluster_is_reachable_if_it_answers_whatever_it_says(told: Told) -> None:
    told.reporter.cluster("fine", ClusterReached("v1.36.3"))
    told.reporter.cluster("strict", ClusterRejected("no"))
    told.reporter.cluster("dead", Unreachable("no"))
    told.reporter.cluster("unknown", UnusableCluster(PlacementReason.SECRET_NOT_FOUND, "no"))
    reachable = [told.metric("cluster_reachable", cluster=name) for name in ("fine", "strict", "dead", "unknown")]
    assert reachable == [1, 1, 0, 0]


def test_a_cluster_that_is_gone_leaves_no_series(told: Told) -> None:
    told.reporter.cluster("east", ClusterReached("v1.36.3"))
    told.reporter.asked("east", 0.1, answered=True)
    assert 'cluster="east"' in told.exposition()
    told.reporter.gone("east")
    assert 'cluster="east"' not in told.exposition()


@pytest.mark.parametrize(
    ("manager", "ago", "cluster", "notes"),
    [
        pytest.param(OURS, 30, "east", ["placed on cluster east: it is the only one"], id="of-late-by-us"),
        pytest.param(OURS, 3600, "east", [], id="long-ago"),
        pytest.param("kubectl", 30, "east", [], id="by-somebody-else"),
        pytest.param(OURS, 30, "west", [], id="by-us-but-changed-since"),
    ],
)
def test_a_choice_that_was_recorded_is_told_again_with_its_reason_if_it_was_made(
    told: Told, manager: str, ago: float, cluster: str, notes: list[str]
) -> None:
    time = rfc3339(told.clock.utc() - timedelta(seconds=ago))
    metadata = {
        "name": "web",
        "namespace": "default",
        "uid": "web",
        "annotations": {CONFIG_ANNOTATION: cluster, BECAUSE_ANNOTATION: "east: it is the only one"},
        "managedFields": [{"manager": "others", "time": time}, {"manager": manager, "time": time}],
    }
    machine = MACHINES.decode(msgspec.json.encode({"metadata": metadata}))
    told.reporter.was_placed(machine)
    assert [one.note for one in told.heard] == notes
    told.reporter.placed(machine, Chosen("east", "it is the only one"), "the_only_one", ())
    assert len({one.key for one in told.heard}) == 1, "a server takes it but once"
