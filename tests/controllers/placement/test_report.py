"""The status of a KubevirtConfig, for every way in which a cluster can answer or not."""

from datetime import UTC, datetime, timedelta

import msgspec
import pytest

from virt_steward.apis.kubevirtconfig import ReportedCapacity
from virt_steward.controllers.placement.fleet import ClusterReached, ClusterRejected
from virt_steward.controllers.placement.observation import CapacityFree, Unreachable, UnusableCluster
from virt_steward.controllers.placement.observe import KubevirtConfig, KubevirtConfigMeta
from virt_steward.controllers.placement.report import Answer, config_status, reported_capacity
from virt_steward.controllers.placement.verdicts import PlacementReason

NOW = datetime(2031, 1, 6, 12, 0, tzinfo=UTC)
EAST = KubevirtConfig(KubevirtConfigMeta(name="east", uid="east", generation=3))
SILENT = Unreachable("cluster east: unreachable: timed out after 5 s")
KNOWN = ReportedCapacity(memory=60, cpu=40, at=NOW - timedelta(hours=1))


@pytest.mark.parametrize(
    ("answer", "phase", "reachable", "credentials"),
    [
        pytest.param(ClusterReached("v1.36.3"), "Ready", ("True", "Answers"), ("True", "Accepted"), id="answers"),
        pytest.param(
            ClusterRejected("cluster east: unauthorized (401)"),
            "CredentialsInvalid",
            ("True", "Answers"),
            ("False", "Unauthorized"),
            id="does-not-accept-our-credentials",
        ),
        pytest.param(SILENT, "Unreachable", ("False", "NoAnswer"), ("Unknown", "NoAnswer"), id="is-silent"),
        pytest.param(
            Unreachable("cluster east: request refused (HTTP 404)", PlacementReason.REFUSED),
            "Unreachable",
            ("False", "Refuses"),
            ("Unknown", "Refuses"),
            id="refuses-the-question",
        ),
        pytest.param(
            Unreachable("cluster east: misbehaves: the answer is longer than 6 MiB", PlacementReason.MISBEHAVES),
            "Misbehaving",
            ("False", "Misbehaves"),
            ("Unknown", "Misbehaves"),
            id="misbehaves",
        ),
        pytest.param(
            UnusableCluster(PlacementReason.SECRET_NOT_FOUND, "Secret a/b not found"),
            "CredentialsInvalid",
            ("Unknown", "NotAsked"),
            ("False", "SecretNotFound"),
            id="has-no-secret",
        ),
    ],
)
def test_a_cluster_that(answer: Answer, phase: str, reachable: tuple[str, str], credentials: tuple[str, str]) -> None:
    told = config_status(EAST, answer, 7, None, NOW)
    said = {one.type: (one.status, one.reason) for one in told.conditions}
    assert said == {"Reachable": reachable, "CredentialsValid": credentials}
    assert (told.phase, told.machines, told.observed_generation) == (phase, 7, 3)


def test_the_same_again_is_the_same_status_later() -> None:
    told = config_status(EAST, ClusterReached("v1.36.3"), 7, None, NOW)
    again = msgspec.structs.replace(EAST, status=told)
    assert config_status(again, ClusterReached("v1.36.3"), 7, None, NOW + timedelta(hours=1)) == told


def test_a_cluster_that_falls_silent_keeps_its_version_and_says_since_when() -> None:
    told = config_status(EAST, ClusterReached("v1.36.3"), 7, None, NOW)
    later = NOW + timedelta(hours=1)
    silent = config_status(msgspec.structs.replace(EAST, status=told), SILENT, 7, None, later)
    assert silent.version == "v1.36.3"
    assert {one.last_transition_time for one in silent.conditions} == {later}


def test_a_cluster_without_a_kubeconfig_has_no_version_and_no_capacity() -> None:
    known = config_status(EAST, ClusterReached("v1.36.3"), 7, CapacityFree(0.6, 0.4), NOW)
    config = msgspec.structs.replace(EAST, status=known)
    gone = config_status(
        config, UnusableCluster(PlacementReason.SECRET_NOT_FOUND, "Secret a/b not found"), 7, None, NOW
    )
    assert (gone.version, gone.free) == ("", None)


def test_a_long_story_is_cut() -> None:
    told = config_status(EAST, Unreachable("x" * 5000), 0, None, NOW)
    assert max(len(one.message) for one in told.conditions) == 1024


@pytest.mark.parametrize(
    ("before", "free", "reported"),
    [
        pytest.param(None, None, None, id="never-measured"),
        pytest.param(None, CapacityFree(0.623, 0.377), ReportedCapacity(memory=60, cpu=40, at=NOW), id="first"),
        pytest.param(KNOWN, CapacityFree(0.58, 0.41), KNOWN, id="about-the-same"),
        pytest.param(KNOWN, CapacityFree(0.52, 0.41), ReportedCapacity(memory=50, cpu=40, at=NOW), id="changed"),
        pytest.param(KNOWN, CapacityFree(0.6), ReportedCapacity(memory=60, at=NOW), id="cpu-no-longer-known"),
        pytest.param(KNOWN, None, KNOWN, id="not-measured-again"),
        pytest.param(None, CapacityFree(-0.3, 1.2), ReportedCapacity(memory=0, cpu=100, at=NOW), id="beyond"),
    ],
)
def test_reported_capacity_changes_in_steps(
    before: ReportedCapacity | None, free: CapacityFree | None, reported: ReportedCapacity | None
) -> None:
    assert reported_capacity(before, free, NOW) == reported
