"""Plans in review report when nodes or pools have changed since they were drafted."""

import msgspec
import pytest

from tests.controllers.advisor.builders import an_item
from virt_steward.apis.virtplatformconfig import PlanItem
from virt_steward.console.rollouts import recounted
from virt_steward.plans.blast_radius import Census, blast_radius
from virt_steward.platform.machineconfigs import ROLE, LabelledMeta
from virt_steward.platform.nodes import NodeFacts
from virt_steward.platform.pools import Pool, PoolSpec

LABELS = {ROLE: "worker"}
IS_WORKER = {"node-role.kubernetes.io/worker": ""}


def a_pool(**spec: object) -> Pool:
    selectors = {"machineConfigSelector": {"matchLabels": LABELS}, "nodeSelector": {"matchLabels": IS_WORKER}}
    return Pool(LabelledMeta("worker"), msgspec.convert({**selectors, **spec}, PoolSpec))


def nodes(*names: str) -> list[NodeFacts]:
    return [NodeFacts(LabelledMeta(name, labels=IS_WORKER)) for name in names]


def planned(pool: Pool, *names: str) -> PlanItem:
    """An item whose blast radius has these nodes."""
    census = Census(
        tuple(msgspec.convert({"metadata": {"name": name, "labels": IS_WORKER}}, NodeFacts) for name in names)
    )
    desired = {"metadata": {"name": "99-worker-psi-karg", "labels": LABELS}}
    return an_item(desired_state=desired, blast_radius=blast_radius(LABELS, [pool], census))


@pytest.mark.parametrize(
    ("pool", "names", "says"),
    [
        pytest.param(a_pool(), ("a", "b", "c"), "3 nodes reboot (worker: 3 in 3 rounds)", id="node-added"),
        pytest.param(a_pool(), ("a", "c"), "2 nodes reboot", id="node-replaced"),
        pytest.param(a_pool(paused=True), ("a", "b"), "once it is resumed", id="pool-paused"),
        pytest.param(a_pool(maxUnavailable=2), ("a", "b"), "2 in 1 rounds", id="max-unavailable-changed"),
    ],
)
def test_recounted_reports_changed_nodes_and_pools(pool: Pool, names: tuple[str, ...], says: str) -> None:
    assert says in recounted(planned(a_pool(), "a", "b"), [pool], nodes(*names))


def test_recounted_is_empty_without_changes() -> None:
    item = planned(a_pool(), "a", "b")
    assert recounted(item, [a_pool()], nodes("a", "b")) == ""
    assert recounted(item, [a_pool()], []) == "", "the viewer may not see nodes"
    assert recounted(item, [], nodes("a")) == ""
    assert recounted(msgspec.structs.replace(item, blast_radius=None), [a_pool()], nodes("a")) == ""
