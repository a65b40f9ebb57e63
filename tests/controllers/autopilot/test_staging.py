"""The decision whether a change that reboots nodes is written now: every cell, as a table."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from virt_steward.controllers.autopilot.rollouts.policy import (
    DeadlineAction,
    RolloutMode,
    RolloutPolicy,
    Takeover,
    parse_policy,
    parse_releases,
)
from virt_steward.controllers.autopilot.rollouts.staged import (
    Occasion,
    StagedChange,
    occasion_of_creation,
    read_entries,
    staging_intent,
)
from virt_steward.controllers.autopilot.rollouts.staging import RolloutCase, StageChange, WriteNow, decide_rollout
from virt_steward.objects.identity import Key, Ref, Regarding
from virt_steward.objects.windows import Window
from virt_steward.platform.hco import HYPERCONVERGED
from virt_steward.platform.machineconfigs import LabelledMeta, LenientRequirement, PoolSelector
from virt_steward.platform.pools import Pool, PoolCondition, PoolSpec, PoolStatus, pools_affected

NOW = datetime(2030, 1, 4, 23, tzinfo=UTC)  # a Friday
WINDOW = Window.parse("0 22 * * FRI", "4h")
PREFIX = "platform.kubevirt.io/"
CREATE, UPDATE, DRIFT, FIRST, DELETE = Occasion


def a_pool(name: str = "worker", *conditions: str, paused: bool = False, updated: int = 0) -> Pool:
    status = PoolStatus(
        machine_count=3,
        updated_machine_count=updated,
        conditions=tuple(PoolCondition(condition, "True") for condition in conditions),
    )
    return Pool(LabelledMeta(name=name), PoolSpec(paused=paused), status)


POOLS = {
    "no pool": (),
    "idle": (a_pool(),),
    "updating": (a_pool("worker", "Updating"),),
    "paused": (a_pool(paused=True),),
    "degraded": (a_pool("worker", "Degraded", "NodeDegraded"),),
    "render degraded": (a_pool("worker", "Degraded", "RenderDegraded"),),
    "two idle": (a_pool("infra"), a_pool()),
    "two, one updating": (a_pool("infra"), a_pool("worker", "Updating")),
    "two, one paused": (a_pool("infra", paused=True), a_pool()),
    "two, paused and updating": (a_pool("infra", paused=True), a_pool("worker", "Updating")),
    "unreadable": None,
}
# W: written at once, s: staged; in the order create, update, drift, first contact, delete
TABLE = """
                          | immediate | coalesce | window open | window closed | window invalid | approve
no pool                   | WWWWW     | WWWWW    | WWWWW       | WWWWW         | WWWWW          | WWWWW
idle                      | WWWWW     | Wssss    | WWWWW       | sssss         | sssss          | sssss
updating                  | WWWWW     | WWWWW    | WWWWW       | sssss         | sssss          | sssss
paused                    | WWWWW     | Wssss    | sssss       | sssss         | sssss          | sssss
degraded                  | WWWWW     | Wssss    | WWWWW       | sssss         | sssss          | sssss
render degraded           | WWWWW     | WWWWW    | WWWWW       | sssss         | sssss          | sssss
two idle                  | WWWWW     | Wssss    | WWWWW       | sssss         | sssss          | sssss
two, one updating         | WWWWW     | WWWWW    | WWWWW       | sssss         | sssss          | sssss
two, one paused           | WWWWW     | Wssss    | WWWWW       | sssss         | sssss          | sssss
two, paused and updating  | WWWWW     | WWWWW    | WWWWW       | sssss         | sssss          | sssss
unreadable                | WWWWW     | sssss    | sssss       | sssss         | sssss          | sssss
"""
POLICIES = {
    "immediate": (RolloutPolicy(RolloutMode.IMMEDIATE), NOW),
    "coalesce": (RolloutPolicy(), NOW),
    "window open": (RolloutPolicy(RolloutMode.WINDOW, WINDOW), NOW),
    "window closed": (RolloutPolicy(RolloutMode.WINDOW, WINDOW), NOW + timedelta(hours=4)),
    "window invalid": (RolloutPolicy(RolloutMode.WINDOW), NOW),
    "approve": (RolloutPolicy(RolloutMode.APPROVE), NOW),
}


def cells() -> list[tuple[str, str, Occasion, bool]]:
    head, *rows = [[cell.strip() for cell in line.split("|")] for line in TABLE.strip("\n").split("\n")]
    return [
        (policy, pools, occasion, letter == "W")
        for pools, *entries in rows
        for policy, entry in zip(head[1:], entries, strict=True)
        for occasion, letter in zip(Occasion, entry, strict=True)
    ]


def a_case(occasion: Occasion = UPDATE, policy: str = "coalesce", pools: str = "idle") -> RolloutCase:
    rules, now = POLICIES[policy]
    return RolloutCase(occasion, rules, POOLS[pools], now)


def a_change(**fields: object) -> StagedChange:
    given = {"staged_at": NOW, "desired_hash": "d" * 64, "matching_pools": ("worker",), "asset": "swap-enable"} | fields
    return StagedChange(**given)  # type: ignore[arg-type]


def is_written(case: RolloutCase) -> bool:
    return isinstance(decide_rollout(case), WriteNow)


def test_table_has_every_cell() -> None:
    assert {(policy, pools) for policy, pools, _, _ in cells()} == {(one, two) for one in POLICIES for two in POOLS}


@pytest.mark.parametrize(("policy", "pools", "occasion", "written"), cells())
def test_change_is_written_or_staged(policy: str, pools: str, occasion: Occasion, written: bool) -> None:
    assert is_written(a_case(occasion, policy, pools)) is written


@pytest.mark.parametrize(("policy", "pools", "occasion", "written"), cells())
def test_released_or_bypassed_change_is_written_in_every_cell(
    policy: str, pools: str, occasion: Occasion, written: bool
) -> None:
    case = a_case(occasion, policy, pools)
    assert is_written(replace(case, is_released=True))
    assert is_written(replace(case, policy=replace(case.policy, is_bypassed=True)))
    assert written or not is_written(case)


@pytest.mark.parametrize(
    ("policy", "occasion", "written"),
    [("coalesce", one, True) for one in Occasion]
    + [(policy, one, False) for policy in ("window closed", "window invalid", "approve") for one in Occasion],
)
def test_change_goes_along_with_a_rollout_that_we_start(policy: str, occasion: Occasion, written: bool) -> None:
    case = a_case(occasion, policy)
    assert is_written(replace(case, started=frozenset(("worker",)))) is written
    assert is_written(replace(case, started=frozenset(("master",)))) is (policy == "coalesce" and occasion is CREATE)


@pytest.mark.parametrize(
    ("held", "pools", "written"),
    [
        pytest.param("worker", "idle", False, id="same pool"),
        pytest.param("master", "idle", True, id="another pool"),
        pytest.param("infra", "two idle", False, id="one of two pools"),
        pytest.param("worker", "updating", True, id="nodes reboot anyway"),
        pytest.param("worker", "no pool", True, id="no node reboots"),
    ],
)
def test_creation_takes_no_unreviewed_change_along(held: str, pools: str, written: bool) -> None:
    assert is_written(replace(a_case(CREATE, pools=pools), held_pools=frozenset((held,)))) is written


@pytest.mark.parametrize("policy", ["coalesce", "window closed", "window invalid", "approve"])
@pytest.mark.parametrize("action", DeadlineAction)
@pytest.mark.parametrize(("age", "is_due"), [(23, False), (24, True), (1000, True)])
def test_deadline_releases_or_warns(policy: str, action: DeadlineAction, age: int, is_due: bool) -> None:
    case = a_case(policy=policy)
    rules = replace(case.policy, deadline=timedelta(hours=24), action=action)
    staged = a_change(staged_at=case.now - timedelta(hours=age))
    verdict = decide_rollout(replace(case, policy=rules, staged=staged))
    assert isinstance(verdict, WriteNow) is (is_due and action is DeadlineAction.RELEASE)
    if isinstance(verdict, StageChange):
        assert verdict.is_overdue is is_due
        assert is_due or verdict.until == case.now + timedelta(hours=1)


def test_deadline_counts_from_staging() -> None:
    rules = RolloutPolicy(deadline=timedelta(0), action=DeadlineAction.RELEASE)
    assert not is_written(replace(a_case(), policy=rules)), "it was not staged before, so nobody has seen it"


def test_closed_window_says_when_it_opens() -> None:
    verdict = decide_rollout(a_case(policy="window closed"))
    assert isinstance(verdict, StageChange)
    assert verdict.until == datetime(2030, 1, 11, 22, tzinfo=UTC)
    assert "until its window opens at 2030-01-11T22:00:00Z" in verdict.message


@pytest.mark.parametrize(
    ("pool", "reason"),
    [
        (a_pool("worker", "Updating"), "pool worker is updating"),
        (
            a_pool("worker", "Updating", updated=2),
            "pool worker is updating; 2 of its 3 nodes were updated before and reboot again",
        ),
    ],
)
def test_running_rollout_is_counted_honestly(pool: Pool, reason: str) -> None:
    assert decide_rollout(replace(a_case(), pools=(pool,))) == WriteNow(reason)


def test_staged_change_names_paused_pools() -> None:
    verdict = decide_rollout(a_case(pools="paused"))
    assert isinstance(verdict, StageChange)
    assert "pool worker (paused: worker)" in verdict.message


@pytest.mark.parametrize(
    ("hco", "live", "expected"),
    [
        pytest.param({}, {}, RolloutPolicy(), id="default"),
        pytest.param({"rollout": "immediate"}, {}, RolloutPolicy(RolloutMode.IMMEDIATE), id="of the platform"),
        pytest.param(
            {"rollout": "immediate"}, {"rollout": " approve "}, RolloutPolicy(RolloutMode.APPROVE), id="the object wins"
        ),
        pytest.param(
            {"rollout": "window", "rollout-window": "0 22 * * FRI 4h"},
            {},
            RolloutPolicy(RolloutMode.WINDOW, WINDOW),
            id="window in UTC",
        ),
        pytest.param(
            {"rollout-window": "0 22 * * FRI 4h Europe/Oslo"},
            {"rollout": "window"},
            RolloutPolicy(RolloutMode.WINDOW, Window.parse("0 22 * * FRI", "4h", "Europe/Oslo")),
            id="window of the platform, mode of the object",
        ),
        pytest.param(
            {"rollout-deadline": "7d", "rollout-deadline-action": "release"},
            {},
            RolloutPolicy(deadline=timedelta(days=7), action=DeadlineAction.RELEASE),
            id="deadline",
        ),
        pytest.param({"takeover": "accept"}, {}, RolloutPolicy(takeover=Takeover.ACCEPT), id="takeover"),
        pytest.param(
            {"bypass-mcp-rollout-coalescing": "true"}, {}, RolloutPolicy(), id="bypass is not read of the platform"
        ),
    ],
)
def test_policy_is_read_from_annotations(hco: dict[str, str], live: dict[str, str], expected: RolloutPolicy) -> None:
    assert parse_policy(prefixed(hco), prefixed(live)) == expected


@pytest.mark.parametrize(
    ("annotations", "expected", "problem"),
    [
        ({"rollout": "Immediate"}, RolloutPolicy(RolloutMode.APPROVE), "not one of immediate, coalesce"),
        ({"rollout": ""}, RolloutPolicy(RolloutMode.APPROVE), "not one of immediate, coalesce"),
        ({"rollout": "window"}, RolloutPolicy(RolloutMode.WINDOW), "rollout-window is missing"),
        ({"rollout": "window", "rollout-window": "nightly"}, RolloutPolicy(RolloutMode.WINDOW), "five fields"),
        (
            {"rollout": "window", "rollout-window": "0 22 * * FRI 4h UTC x"},
            RolloutPolicy(RolloutMode.WINDOW),
            "five fields",
        ),
        ({"rollout": "window", "rollout-window": "0 25 * * * 4h"}, RolloutPolicy(RolloutMode.WINDOW), "not a window"),
        ({"rollout-deadline": "soon"}, RolloutPolicy(), "is not a duration"),
        ({"rollout-deadline-action": "now"}, RolloutPolicy(), "the deadline only warns"),
        ({"takeover": "true"}, RolloutPolicy(), "not one of review, accept"),
    ],
)
def test_bad_policy_means_fewer_writes(annotations: dict[str, str], expected: RolloutPolicy, problem: str) -> None:
    found = parse_policy(prefixed(annotations), {})
    assert replace(found, problems=()) == expected
    assert len(found.problems) == 1
    assert problem in found.problems[0]


@pytest.mark.parametrize(
    ("text", "bypassed"),
    [(one, True) for one in ("1", "t", "T", "true", "True", "TRUE")]
    + [(one, False) for one in ("", "yes", "tRUE", "0", "false", " true")],
)
def test_bypass_is_parsed_like_a_go_bool(text: str, bypassed: bool) -> None:
    assert parse_policy({}, prefixed({"bypass-mcp-rollout-coalescing": text})).is_bypassed is bypassed


def test_releases_are_a_list_of_ids() -> None:
    assert parse_releases(" a@1 ,,b@2,") == {"a@1", "b@2"}
    assert parse_releases(None) == frozenset()


@pytest.mark.parametrize(
    "changed",
    [
        {"staged_at": NOW + timedelta(seconds=1)},
        {"desired_hash": "e" * 64},
        {"live_hash": "other"},
        {"asset": "psi-enable"},
    ],
)
def test_release_is_of_one_change_only(changed: dict[str, object]) -> None:
    assert a_change().id == a_change(matching_pools=("worker", "infra"), occasion=DRIFT).id
    assert a_change().id != a_change(**changed).id


@pytest.mark.parametrize(
    ("before", "is_compared", "has_predecessor", "expected"),
    [
        pytest.param(None, False, False, CREATE, id="no other instance"),
        pytest.param(None, False, True, FIRST, id="another instance did not have it"),
        pytest.param(None, True, True, CREATE, id="wanted since, or deleted since"),
        pytest.param(FIRST, True, True, FIRST, id="staged at first contact, then another content is wanted"),
        pytest.param(FIRST, False, True, FIRST, id="and after a restart"),
        pytest.param(CREATE, False, True, CREATE, id="staged for another reason, then a restart"),
        pytest.param(FIRST, True, False, CREATE, id="nothing of the other instance is left"),
    ],
)
def test_creation_is_first_contact_beside_objects_of_another_instance(
    before: Occasion | None, is_compared: bool, has_predecessor: bool, expected: Occasion
) -> None:
    staged = a_change(occasion=before) if before else None
    assert occasion_of_creation(staged, is_compared=is_compared, has_predecessor=has_predecessor) is expected


HCO = Regarding(Ref(HYPERCONVERGED, Key("cnv", "kubevirt")), "hco.kubevirt.io/v1", "u-1")


def test_entries_survive_the_config_map() -> None:
    entries = {"90-worker-swap-online": a_change(), "kubeletconfig.virt-perf-settings": a_change(asset="kubelet")}
    intent = staging_intent(HCO, entries)
    assert read_entries(intent["data"]) == entries
    assert intent["metadata"]["ownerReferences"][0]["uid"] == "u-1"
    assert '"stagedAt":"2030-01-04T23:00:00Z"' in intent["data"]["90-worker-swap-online"]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{}",
        "null",
        '{"stagedAt": "yesterday", "desiredHash": "", "asset": "a"}',
        '{"stagedAt": "2030-01-04T23:00:00", "desiredHash": "d", "asset": "a"}',
        '{"stagedAt": "2030-01-04T23:00:00Z", "desiredHash": "d", "matchingPools": ["worker"]}',
    ],
)
def test_entry_that_is_corrupt_or_not_ours_is_dropped(text: str) -> None:
    assert read_entries({"90-worker-swap-online": text}) == {}


def selecting(name: str, *, labels: dict[str, str] | None = None, operator: str = "") -> Pool:
    expressions = (LenientRequirement("role", operator, ("x",)),) if operator else ()
    selector = PoolSelector({} if operator else {"role": name}, expressions)
    return Pool(LabelledMeta(name=name, labels=labels or {}), PoolSpec(machine_config_selector=selector))


@pytest.mark.parametrize(
    ("wanted", "live", "known", "expected"),
    [
        pytest.param("worker", "worker", (), ["worker"], id="by its labels"),
        pytest.param("worker", "infra", (), ["infra", "worker"], id="by labels that it has now"),
        pytest.param("none", "none", (), [], id="none"),
        pytest.param("none", "none", ("infra", "gone"), ["infra"], id="found before"),
    ],
)
def test_pools_affected_by_a_machine_config(
    wanted: str, live: str, known: tuple[str, ...], expected: list[str]
) -> None:
    intent = {"metadata": {"labels": {"role": wanted}}, "spec": {"config": {}}}
    pools = [selecting("worker"), selecting("infra")]
    assert [pool.name for pool in pools_affected(intent, {"role": live}, pools, known)] == expected


def test_pool_with_unreadable_selector_counts_as_affected() -> None:
    intent = {"metadata": {"labels": {"role": "worker"}}}
    pools = [selecting("odd", operator="Near"), selecting("plain", operator="NotIn")]
    assert [pool.name for pool in pools_affected(intent, {}, pools[:1])] == ["odd"]


def test_pools_affected_by_a_kubelet_config() -> None:
    intent = {"metadata": {}, "spec": {"machineConfigPoolSelector": {"matchLabels": {"tier": "guests"}}}}
    pools = [selecting("worker", labels={"tier": "guests"}), selecting("infra")]
    assert [pool.name for pool in pools_affected(intent, {}, pools)] == ["worker"]


def prefixed(annotations: dict[str, str]) -> dict[str, str]:
    return {PREFIX + name: value for name, value in annotations.items()}
