"""The state of each node in one word, and pools as tiles: by name if they are few, as a mosaic if they are many."""

import pytest

from tests.console.pictures.builders import NEW, OLD, a_node, a_pool
from virt_steward.console.pictures.mosaic import COLUMNS, MOST_TILES, PITCH, mosaic, outline
from virt_steward.console.pictures.node_tiles import NAMED, NodeCondition, PoolTiles, node_tile, pool_tiles
from virt_steward.platform.nodes import NodeFacts, NodeRolloutState
from virt_steward.platform.pools import Pool, PoolMembership

C = NodeCondition


@pytest.mark.parametrize(
    ("node", "staged", "condition", "message"),
    [
        pytest.param(a_node(), False, C.READY, "", id="ready"),
        pytest.param(a_node(), True, C.STAGED, "", id="staged"),
        pytest.param(a_node(cordoned=True), True, C.CORDONED, "", id="cordoned-before-staged"),
        pytest.param(a_node(ready=False, cordoned=True), False, C.NOT_READY, "", id="not-ready-before-cordoned"),
        pytest.param(a_node(current=OLD), True, C.WAITING, "", id="not-updated-before-staged"),
        pytest.param(a_node(current=OLD, cordoned=True), False, C.CORDONED, "", id="cordoned-before-not-updated"),
        pytest.param(a_node(current=OLD, desired=NEW), False, C.UPDATING, "updating", id="updating"),
        pytest.param(a_node(current=OLD, desired=NEW, cordoned=True), False, C.UPDATING, "updating", id="draining"),
        pytest.param(a_node(current=OLD, desired=NEW, ready=False), False, C.UPDATING, "rebooting", id="rebooting"),
        pytest.param(a_node(state="Degraded", ready=False), False, C.DEGRADED, "degraded", id="degraded-first"),
    ],
)
def test_node_tile_names_the_worst(node: NodeFacts, *, staged: bool, condition: NodeCondition, message: str) -> None:
    tile = node_tile(node, NEW, staged=staged)
    assert (tile.condition, tile.message) == (condition, message)


def test_node_tile_of_a_cluster_without_pools() -> None:
    node = a_node()
    plain = NodeFacts(node.metadata, rollout=NodeRolloutState())
    assert node_tile(plain, "").condition is C.READY


def tiles(nodes: list[NodeFacts], *pools: Pool, staged: frozenset[str] = frozenset()) -> tuple[PoolTiles, ...]:
    return pool_tiles(pools, PoolMembership(pools), nodes, staged)


def test_pool_tiles_list_pools_by_name_and_the_rest_last() -> None:
    nodes = [a_node("b"), a_node("a"), a_node("infra-1", pool="infra"), a_node("odd", pool="nobody")]
    found = tiles(nodes, a_pool("worker"), a_pool("infra"), a_pool("empty"), staged=frozenset({"infra"}))
    assert [(one.pool, [tile.name for tile in one.nodes]) for one in found] == [
        ("empty", []),
        ("infra", ["infra-1"]),
        ("worker", ["a", "b"]),
        ("", ["odd"]),
    ]
    assert found[1].counts == ((C.STAGED, 1),)
    assert found[2].summary == "2 nodes: 2 ready"


def test_pool_tiles_aggregate_many_nodes() -> None:
    nodes = [a_node(f"node-{number:04}") for number in range(5_000)]
    nodes[17] = a_node("node-0017", state="Degraded")
    (pool,) = tiles(nodes, a_pool("worker"))
    assert pool.nodes == ()
    assert pool.mosaic is not None
    assert pool.mosaic.per_tile == 11
    assert [(group.slug, group.count) for group in pool.mosaic.groups] == [("degraded", 1), ("ready", 4_999)]
    assert [tile.name for tile in pool.troubled] == ["node-0017"]
    assert pool.summary == "5,000 nodes: 1 degraded, 4,999 ready"


@pytest.mark.parametrize("number", [NAMED, NAMED + 1])
def test_pool_tiles_name_few_nodes(number: int) -> None:
    (pool,) = tiles([a_node(f"node-{one}") for one in range(number)], a_pool("worker"))
    assert (len(pool.nodes), pool.mosaic is None) == ((number, True) if number <= NAMED else (0, False))


@pytest.mark.parametrize(
    ("counts", "per_tile", "width", "height"),
    [
        pytest.param((3,), 1, 3 * PITCH, PITCH, id="a-few"),
        pytest.param((COLUMNS, 1), 1, COLUMNS * PITCH, 2 * PITCH, id="two-rows"),
        pytest.param((MOST_TILES,), 1, COLUMNS * PITCH, 8 * PITCH, id="one-tile-each"),
        pytest.param((MOST_TILES + 1,), 2, COLUMNS * PITCH, 5 * PITCH, id="two-for-one"),
        pytest.param((1, 1, 4_800), 11, COLUMNS * PITCH, 8 * PITCH, id="single-ones-are-drawn"),
        pytest.param((0,), 1, PITCH, PITCH, id="nothing"),
    ],
)
def test_mosaic_geometry(counts: tuple[int, ...], per_tile: int, width: int, height: int) -> None:
    drawn = mosaic([(f"state-{number}", "State", count) for number, count in enumerate(counts)])
    assert (drawn.per_tile, drawn.width, drawn.height) == (per_tile, width, height)
    assert [bool(group.path) for group in drawn.groups] == [bool(count) for count in counts]


def test_outlines_differ_where_colours_may_look_alike() -> None:
    shapes = {condition: outline(condition.slug) for condition in C}
    alike = {(C.DEGRADED, C.NOT_READY)}  # of which one is filled, and the other is not
    same = {(one, other) for one in C for other in C if one != other and shapes[one] == shapes[other]}
    assert same == alike | {(other, one) for one, other in alike}
