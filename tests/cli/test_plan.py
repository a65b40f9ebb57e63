"""How plans are printed."""

import re

import pytest

from tests.controllers.advisor.builders import an_item
from virt_steward.apis.profiles import LOAD_AWARE, ProfileOptions
from virt_steward.apis.virtplatformconfig import BlastRadius, PlanItem, PoolRadius
from virt_steward.cli.plan import desired_manifests, plan_lines
from virt_steward.insight.plans import PlannedChanges

COLOUR = re.compile(r"\x1b\[\d+m")
REBOOTS = BlastRadius(
    pools=(PoolRadius("infra", 2, 1, paused=True), PoolRadius("worker", 5, 3)),
    nodes=tuple(f"node-{number}" for number in range(7)),
    node_count=7,
    virtual_machines=12,
    immovable=("tenants/db",),
    immovable_count=1,
)


def a_plan(*items: PlanItem) -> PlannedChanges:
    return PlannedChanges(LOAD_AWARE, ProfileOptions(), "High", "abc", items, (), len(items))


def plain(plan: PlannedChanges) -> list[str]:
    return [COLOUR.sub("", line) for line in plan_lines(plan)]


def test_plan_lines_show_impact_on_pools_nodes_and_vms() -> None:
    shown = plain(a_plan(an_item(diff="+ a", blast_radius=REBOOTS)))
    assert "  pool infra: 2 nodes reboot in 1 round, once it is resumed" in shown
    assert "  pool worker: 5 nodes reboot in 3 rounds" in shown
    assert "  nodes: 7 (node-0, node-1, node-2, node-3, node-4, and 2 more)" in shown
    assert "  VMs to migrate: 12" in shown
    assert "  VMs that cannot migrate and will stop: 1 (tenants/db)" in shown


@pytest.mark.parametrize(
    ("line", "colour"),
    [
        pytest.param("+  psi: 1", "\x1b[32m", id="added is green"),
        pytest.param("-  psi: 1", "\x1b[31m", id="removed is red"),
        pytest.param("@@ -1 +1 @@", "\x1b[36m", id="a place is cyan"),
        pytest.param("   psi: 1", "", id="context is plain"),
        pytest.param("+++ planned", "", id="a heading is plain"),
    ],
)
def test_plan_lines_colour_diff(line: str, colour: str) -> None:
    [shown] = [one for one in plan_lines(a_plan(an_item(diff=line))) if line in one]
    assert shown == (f"{colour}{line}\x1b[0m" if colour else line)


def test_plan_lines_escape_control_characters() -> None:
    assert "+ ?[2Jevil" in plain(a_plan(an_item(diff="+ \x1b[2Jevil", message="\x1b[31mred")))


def test_desired_manifests_skip_items_without_desired_state() -> None:
    moot = an_item("enable-psi-metrics", "Completed", desired_state={})
    text = desired_manifests(a_plan(moot, an_item(message="two\nlines")))
    assert text == "# configure-descheduler: Low. two lines\nspec:\n  mode: Automatic\n"
