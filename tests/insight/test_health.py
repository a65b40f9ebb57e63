"""Whether a controller is well, decided on what was observed."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from virt_steward.insight.health import (
    DeploymentState,
    HealthObservation,
    LeaderState,
    LeaseState,
    RivalOperator,
    Unread,
    Verdict,
    judge,
    judge_all,
)
from virt_steward.insight.health_survey import OwnLease, OwnLeaseMeta
from virt_steward.objects.identity import Key
from virt_steward.runtime.leader import FAILING

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
LEASE = Key("steward", "virt-steward-advisor")
HELD = LeaseState("pod-1", NOW - timedelta(hours=2), NOW - timedelta(seconds=2), timedelta(seconds=15), NOW)
EXPIRED = replace(HELD, renewed=NOW - timedelta(seconds=16))
RELEASED = replace(HELD, holder="", renewed=None)
DEPLOYED = (DeploymentState("steward/virt-steward-advisor", 2, 2),)
FORBIDDEN = Unread("forbidden (403) to list them")
GO = RivalOperator(Key("go", "go-lease"), "go-1")


def an_observation(**facts: Any) -> HealthObservation:
    usual: dict[str, Any] = {"lease_key": LEASE, "deployments": DEPLOYED, "lease": HELD}
    return HealthObservation("advisor", **usual | facts)


ABSENT = an_observation(deployments=(), lease=None)


@pytest.mark.parametrize(
    ("seen", "verdict", "state", "says"),
    [
        pytest.param(an_observation(), "well", "leading", "", id="leading"),
        pytest.param(ABSENT, "well", "nobody", "", id="not installed"),
        pytest.param(replace(ABSENT, active=2), "needs a person", "nobody", "2 objects ask for it", id="asked for"),
        pytest.param(
            replace(ABSENT, active=2, rival=GO), "well", "nobody", "go-1 holds Lease go/go-lease", id="only Go operator"
        ),
        pytest.param(an_observation(rival=GO), "well", "standing by", "go-1 holds Lease go/go-lease", id="standing by"),
        pytest.param(
            an_observation(lease=EXPIRED),
            "needs a person",
            "expired",
            "pod-1 renewed Lease steward/virt-steward-advisor last at 2026-03-01T11:59:44Z",
            id="expired",
        ),
        pytest.param(an_observation(lease=RELEASED), "needs a person", "nobody", "has no holder", id="stopped"),
        pytest.param(
            an_observation(lease=None, deployments=(DeploymentState("steward/a", 2, 0),)),
            "needs a person",
            "nobody",
            "0 of 2 pods ready; its log says why: kubectl logs -n steward deployment/a",
            id="cannot elect",
        ),
        pytest.param(
            an_observation(lease=RELEASED, deployments=(DeploymentState("steward/a", 0, 0),)),
            "needs a person",
            "nobody",
            "has 0 replicas: scale it up",
            id="scaled down",
        ),
        pytest.param(
            an_observation(lease=EXPIRED, deployments=()),
            "needs a person",
            "expired",
            "delete Lease steward/virt-steward-advisor if it is not needed",
            id="process stopped",
        ),
        pytest.param(an_observation(deployments=()), "well", "leading", "runs in no Deployment", id="process"),
        pytest.param(
            an_observation(deployments=(DeploymentState("steward/a", 2, 1),)),
            "well",
            "leading",
            "1 of 2 pods ready",
            id="one replica",
        ),
        pytest.param(
            an_observation(lease=None, deployments=(DeploymentState("steward/a", 1, 1, elects=False),)),
            "well",
            "no election",
            "without leader election",
            id="no election",
        ),
        pytest.param(
            an_observation(lease=None, deployments=(DeploymentState("steward/a", 1, 0, elects=False),)),
            "needs a person",
            "no election",
            "0 of 1 pods ready",
            id="no election, not ready",
        ),
        pytest.param(
            an_observation(missing_crds=("widgets.example.org",)),
            "needs a person",
            "leading",
            "CRD not installed: widgets.example.org",
            id="no CRD",
        ),
        pytest.param(
            an_observation(lacking=tuple(f"watch kind{number}" for number in range(7))),
            "needs a person",
            "leading",
            "forbidden to watch kind0, watch kind1, watch kind2, watch kind3, watch kind4, and 2 more",
            id="a right is missing",
        ),
        pytest.param(
            an_observation(lacking=("watch kind0",)),
            "needs a person",
            "leading",
            "again: virt-steward rbac --controllers advisor --namespace steward | kubectl apply -f -",
            id="how to grant a right",
        ),
        pytest.param(
            an_observation(
                lacking=("watch kind0",), lease_key=Key("virt-steward", "a"), account="virt-steward-all-in-one"
            ),
            "needs a person",
            "leading",
            "again: virt-steward rbac --controllers advisor --all-in-one | kubectl apply -f -",
            id="how to grant a right to the one account",
        ),
        pytest.param(
            an_observation(lease=replace(HELD, failing=1)), "needs a person", "leading", "1 object fails", id="failing"
        ),
        pytest.param(an_observation(waiting=1), "needs a person", "leading", "", id="something waits"),
        pytest.param(an_observation(lease=FORBIDDEN), "cannot tell", "unknown", "who leads: forbidden", id="no Lease"),
        pytest.param(an_observation(deployments=FORBIDDEN), "well", "leading", "Deployments: forbidden", id="leads"),
        pytest.param(
            an_observation(deployments=FORBIDDEN, lease=None), "cannot tell", "nobody", "Deployments", id="may be there"
        ),
        pytest.param(an_observation(lacking=FORBIDDEN), "well", "leading", "the rights of its account", id="rights"),
        pytest.param(an_observation(unread=("its objects",)), "cannot tell", "leading", "its objects", id="objects"),
        pytest.param(
            an_observation(unread=("its objects",), waiting=1), "needs a person", "leading", "its objects", id="both"
        ),
    ],
)
def test_judge_says_whether_controller_is_well(seen: HealthObservation, verdict: str, state: str, says: str) -> None:
    found = judge(seen, NOW)
    assert (found.verdict, found.leading.state) == (verdict, state)
    assert says in "\n".join((found.leading.message, *found.problems, *found.notes, *found.unread))


def test_judge_reports_who_leads_since_when_and_last_success() -> None:
    found = judge(an_observation(), NOW)
    assert (found.installed, found.leading.holder, found.leading.since) == (True, "pod-1", NOW - timedelta(hours=2))
    assert found.last_success == NOW
    assert judge(ABSENT, NOW).installed is False
    assert judge(an_observation(deployments=FORBIDDEN, lease=None), NOW).installed is None


@pytest.mark.parametrize(
    ("observations", "verdict"),
    [
        pytest.param((an_observation(), ABSENT), Verdict.WELL, id="one installed"),
        pytest.param((ABSENT, ABSENT), Verdict.NEEDS_PERSON, id="nothing installed"),
        pytest.param((an_observation(), an_observation(lease=FORBIDDEN)), Verdict.CANNOT_TELL, id="unknown"),
        pytest.param(
            (an_observation(lease=FORBIDDEN), an_observation(waiting=1)), Verdict.NEEDS_PERSON, id="known counts first"
        ),
    ],
)
def test_judge_all_takes_the_worst(observations: tuple[HealthObservation, ...], verdict: Verdict) -> None:
    assert judge_all([judge(one, NOW) for one in observations]) is verdict


def test_every_leader_state_is_tested() -> None:
    table = test_judge_says_whether_controller_is_well.pytestmark[0].args[1]  # type: ignore[attr-defined]
    assert {case.values[2] for case in table} == set(LeaderState)


@pytest.mark.parametrize(("said", "failing"), [("", 0), ("3", 3), ("many", 0), ("9" * 5000, 0)])
def test_lease_says_how_many_objects_fail_if_that_is_a_number(said: str, failing: int) -> None:
    """Who may write Leases could write anything."""
    assert OwnLease(OwnLeaseMeta({FAILING: said})).state.failing == failing
