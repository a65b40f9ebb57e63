"""Which changes need a pass over all assets."""

from typing import Any

import msgspec
import pytest

from tests.catalog.builders import a_node
from virt_steward.catalog.load import Catalog
from virt_steward.controllers.autopilot.options import HCO
from virt_steward.controllers.autopilot.watches import PLATFORM, Watchlist
from virt_steward.objects.identity import Key
from virt_steward.platform.sources import NODES, POOLS
from virt_steward.runtime.informer import Source

MCD = "machineconfiguration.openshift.io/"
IDLE = {f"{MCD}currentConfig": "rendered-1", f"{MCD}desiredConfig": "rendered-1", f"{MCD}state": "Done"}
ROLLING = IDLE | {f"{MCD}desiredConfig": "rendered-2", f"{MCD}state": "Working"}


def a_pool(version: str = "1", *, role: str = "worker", **more: Any) -> dict[str, Any]:
    selector = {"matchLabels": {f"{MCD}role": role}}
    metadata = {"name": "worker", "uid": "p-1", "resourceVersion": version}
    return {"metadata": metadata, "spec": {"machineConfigSelector": selector}, **more}


def keys_after(catalog: Catalog, source: Source[Any], before: Any, after: Any) -> tuple[list[Any], int]:
    """Which keys a change is mapped to, and how often the observation becomes stale."""
    stale: list[None] = []
    triggers = Watchlist(catalog, HCO).triggers(lambda: stale.append(None))
    [handler] = [trigger.handler for trigger in triggers if trigger.source == source]
    old, new = (source.decode(msgspec.json.encode(one)) for one in (before, after))
    return [*handler(Key("", "one"), old, new)], len(stale)


@pytest.mark.parametrize(
    ("source", "before", "after"),
    [
        pytest.param(NODES, a_node(annotations=IDLE), a_node(annotations=ROLLING), id="of-a-node"),
        pytest.param(
            POOLS,
            a_pool(status={"machineCount": 3, "updatedMachineCount": 3}),
            a_pool("2", status={"machineCount": 3, "updatedMachineCount": 1}),
            id="of-a-pool",
        ),
    ],
)
def test_rollout_progress_needs_no_pass(catalog: Catalog, source: Source[Any], before: Any, after: Any) -> None:
    assert keys_after(catalog, source, before, after) == ([], 0)


@pytest.mark.parametrize(
    ("source", "before", "after"),
    [
        pytest.param(NODES, a_node(roles=("worker",)), a_node(roles=("worker", "master")), id="the-role-of-a-node"),
        pytest.param(NODES, a_node(), a_node(capacity={"nvidia.com/gpu": "1"}), id="the-hardware-of-a-node"),
        pytest.param(POOLS, a_pool(), a_pool("2", role="gpu"), id="the-selector-of-a-pool"),
    ],
)
def test_relevant_change_needs_a_pass(catalog: Catalog, source: Source[Any], before: Any, after: Any) -> None:
    assert keys_after(catalog, source, before, after) == ([PLATFORM], 1)
