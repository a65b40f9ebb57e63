"""The timeline of a rollout: what was seen, what the API still knows, and what nobody knows."""

from typing import Any

from tests.console.pictures.builders import NEW, NOON, OLD, a_log, a_node, a_pool, at
from virt_steward.console.pictures.rollout_timeline import LEFT, MOST_LANES, ROWS_SHOWN, rollout_timeline
from virt_steward.console.pictures.time_axis import RIGHT
from virt_steward.console.rollout_log import KEPT, MOST_NODES
from virt_steward.objects.identity import Key


def updating(name: str, **changes: Any) -> Any:
    return a_node(name, OLD, NEW, "Working", **changes)


ONE_BY_ONE = (
    (0, a_node("a", OLD)),
    (0, a_node("b", OLD)),
    (10, updating("a")),
    (20, updating("a", ready=False)),
    (30, a_node("a")),
    (40, updating("b")),
)


def test_timeline_of_a_rollout_that_runs() -> None:
    pool = a_pool(nodes=2, updated=1, Updating=at(5))
    found = rollout_timeline(pool, [a_node("a"), updating("b")], a_log(*ONE_BY_ONE), at(50))
    assert found is not None
    assert (found.start, found.end, found.is_running) == (at(5), at(50), True)
    steps = {lane.history.node: [(bar.slug, bar.x, bar.width) for bar in lane.bars] for lane in found.lanes}
    scale = (RIGHT - LEFT) / 45
    expected = {"a": [("waiting", 0, 5), ("updating", 5, 10), ("rebooting", 15, 10), ("updated", 25, 20)]}
    expected["b"] = [("waiting", 0, 35), ("updating", 35, 10)]
    for node, bars in expected.items():
        assert [slug for slug, _, _ in steps[node]] == [slug for slug, _, _ in bars]
        for (_, x, width), (_, since, seconds) in zip(steps[node], bars, strict=True):
            assert abs(x - (LEFT + since * scale)) <= 0.1
            assert abs(width - seconds * scale) <= 0.2
    assert [(row.node, row.state, row.seconds) for row in found.rows] == [("a", "updated", 20), ("b", "updating", None)]
    assert found.summary == "2 of 2 nodes of pool worker: 1 updating, 1 updated"
    assert found.unseen == 0


def test_timeline_of_a_finished_rollout_stands_still() -> None:
    log = a_log(*ONE_BY_ONE, (60, a_node("b")))
    pool, nodes = a_pool(nodes=2, updated=2, Updated=at(61)), [a_node("a"), a_node("b")]
    early, late = (rollout_timeline(pool, nodes, log, at(now)) for now in (70, 7_000))
    assert early == late
    assert early is not None
    assert (early.start, early.end, early.is_running) == (at(10), at(61), False)


def test_timeline_shows_only_the_last_rollout() -> None:
    again = (
        (100, a_node("a", NEW, "rendered-newer", "Working")),
        (110, a_node("a", "rendered-newer")),
        (200, a_node("a", "rendered-newer", NEW, "Working")),
        (210, a_node("a", NEW)),
    )
    log = a_log(*ONE_BY_ONE, *again)
    found = rollout_timeline(a_pool(Updated=at(211)), [a_node("a")], log, at(300))
    assert found is not None
    assert [step.slug for step in found.rows[0].steps] == ["waiting", "updating", "updated"]
    assert found.rows[0].seconds == 10


def test_timeline_marks_nodes_that_were_updated_unseen() -> None:
    """The console was started after `a` was updated, and in the middle of the update of `b`."""
    log = a_log((100, a_node("a")), (100, updating("b")), (110, a_node("b")))
    nodes = [a_node("a", ready_since=at(80)), a_node("b", ready_since=at(105))]
    found = rollout_timeline(a_pool(nodes=2, updated=2, Updated=at(111)), nodes, log, at(200), begins=at(50))
    assert found is not None
    rows = {row.node: row for row in found.rows}
    assert (rows["a"].began, rows["a"].ended, rows["a"].ready_since) == (None, None, at(80))
    assert (rows["b"].began, rows["b"].ended, rows["b"].ready_since) == (None, at(110), None)
    assert found.unseen == 1
    lanes = {lane.history.node: lane for lane in found.lanes}
    assert lanes["a"].mark == LEFT
    assert lanes["b"].mark is None
    assert "before the console started" in lanes["b"].bars[0].title


def test_timeline_takes_the_state_of_unrecorded_nodes_from_the_node() -> None:
    nodes = [a_node("a"), a_node("b", OLD), a_node("c", state="Degraded")]
    found = rollout_timeline(a_pool(nodes=3, updated=1, Updating=NOON), nodes, a_log(), at(10))
    assert found is not None
    assert {row.node: row.state for row in found.rows} == {"a": "updated", "b": "waiting", "c": "degraded"}
    assert found.unseen == 1


def test_timeline_of_a_node_whose_steps_were_too_quick_to_see() -> None:
    found = rollout_timeline(
        a_pool(Updated=at(90)), [a_node("a")], a_log((0, a_node("a", OLD)), (60, a_node("a"))), at(99)
    )
    assert found is not None
    assert (found.start, found.end, found.rows[0].began, found.rows[0].ended) == (at(60), at(90), None, at(60))


def test_timeline_ignores_older_reboots() -> None:
    log = a_log((100, a_node("a")))
    node = a_node("a", ready_since=at(10))
    assert rollout_timeline(a_pool(Updated=at(90)), [node], log, at(200), begins=at(50)) is None
    assert rollout_timeline(a_pool(Updated=at(90)), [node], log, at(200)) is not None
    assert rollout_timeline(a_pool(Updated=at(90)), [a_node("a", ready_since=at(-90_000))], log, at(200)) is None


def test_timeline_is_bounded() -> None:
    nodes = [a_node(f"n{number:04}") for number in range(1_000)]
    log = a_log(*((0, node) for node in nodes), (5, a_node("n0500", state="Degraded")))
    nodes[500] = a_node("n0500", state="Degraded")
    found = rollout_timeline(a_pool(nodes=1_000, updated=999, Updating=NOON), nodes, log, at(10))
    assert found is not None
    assert (len(found.lanes), len(found.rows), found.total) == (MOST_LANES, ROWS_SHOWN, 1_000)
    assert "n0500" in {lane.history.node for lane in found.lanes}, "trouble comes first"


def test_log_keeps_changes_only() -> None:
    log = a_log((0, a_node("a")), (1, a_node("a")), (2, a_node("a", cordoned=True)), (3, updating("a")))
    assert [(one.at, one.activity, one.is_first) for one in log.of("a")] == [
        (NOON, "settled", True),
        (at(3), "updating", False),
    ]
    log.handle(Key("", "a"), a_node("a"), None)
    assert log.of("a") == ()


def test_log_is_bounded() -> None:
    flips = [(n, a_node("a", state="Degraded" if n % 2 else "Done")) for n in range(KEPT * 3)]
    log = a_log(*flips, *((1_000, a_node(f"n{number}")) for number in range(MOST_NODES - 1)))
    assert len(log.of("a")) == KEPT
    log.handle(Key("", "last"), None, a_node("last"))
    assert (log.of("a"), len(log.of("last"))) == ((), 1), "the one that changed longest ago is dropped"
