"""How things are, as the controllers have written it down."""

from tests.controllers.approver.builders import NOON
from tests.controllers.approver.builders import an_approver as a_seen_approver
from tests.controllers.placement.scene import Scene
from tests.operators import an_approver, create
from virt_steward.apis.installplanapprover import InstallPlanApproverStatus, PendingPlan
from virt_steward.controllers.approver.observation import Approver
from virt_steward.insight.status import SECTIONS, collect_sections, of_approvers
from virt_steward.kube.client import Client, Reader
from virt_steward.objects.identity import ref_of
from virt_steward_demo.local.controlplane import ControlPlane


async def test_plans_that_wait_and_clusters_that_do_not_answer_are_told(
    admin: Client, control_plane: ControlPlane, operators: str
) -> None:
    scene = Scene(admin, control_plane, operators, operators)
    await scene.define()
    await scene.join("east")
    told = {"phase": "Ready", "machines": 4, "version": "v1.36.3"}
    await admin.merge_patch(scene.ref("east"), {"status": told}, subresource="status")
    await scene.machine("web")
    waits = {"plan": f"{operators}/install-1", "csvs": ["a.v1"], "reason": "NotPinned", "message": "pin it"}
    pending = [{**waits, "since": "2030-01-01T00:00:00Z"}]
    approver = an_approver(operators) | {"status": {"pendingCount": 1, "approvedCount": 2, "pending": pending}}
    await create(admin, approver)
    found = {one.controller: one for one in await collect_sections(Reader(admin.connection, admin.discovery))}
    await scene.clear()
    await admin.delete(ref_of(approver))
    assert (f"{operators}/install-1", "NotPinned", "2030-01-01T00:00:00Z", "pin it") in found["approver"].rows
    assert found["placement"].rows == (("east", "Ready", "4", "v1.36.3", ""),)
    assert found["placement"].summary == "clusters: 1; machines without one: 1"


def test_plans_that_wait_beyond_what_a_status_lists_are_counted_and_one_that_two_list_counts_once() -> None:
    def lets_wait(name: str, reason: str, count: int) -> Approver:
        pending = (PendingPlan("shop/install-1", ("a.v1",), reason, "", NOON),)
        return a_seen_approver(name, status=InstallPlanApproverStatus(pending_count=count, pending=pending))

    found = of_approvers([lets_wait("ann", "NotPinned", 71), lets_wait("bob", "AutoApproveOff", 1)])
    assert found.summary.endswith("plans that wait: 71 (70 not listed)")
    assert len(found.rows) == 2
    assert of_approvers([lets_wait("ann", "NotPinned", 1)]).summary.endswith("plans that wait: 1")


async def test_every_row_of_a_section_has_its_columns(admin: Client) -> None:
    found = await collect_sections(Reader(admin.connection, admin.discovery))
    assert [one.controller for one in found] == [section.__name__ for section in SECTIONS]
    assert all(len(row) == len(one.columns) for one in found for row in one.rows)
