"""How things are, as the controllers have written it down."""

from tests.controllers.placement.scene import Scene
from tests.operators import an_approver, create
from virt_steward.insight.status import SECTIONS, sections
from virt_steward.kube.client import Client, Reader
from virt_steward.local.controlplane import ControlPlane
from virt_steward.objects.identity import ref_of


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
    found = {one.controller: one for one in await sections(Reader(admin.connection, admin.discovery))}
    await scene.clear()
    await admin.delete(ref_of(approver))
    assert (f"{operators}/install-1", "NotPinned", "2030-01-01T00:00:00Z", "pin it") in found["approver"].rows
    assert found["placement"].rows == (("east", "Ready", "4", "v1.36.3", ""),)
    assert found["placement"].summary == "clusters: 1; machines without one: 1"


async def test_every_row_of_a_section_has_its_columns(admin: Client) -> None:
    found = await sections(Reader(admin.connection, admin.discovery))
    assert [one.controller for one in found] == [section.__name__ for section in SECTIONS]
    assert all(len(row) == len(one.columns) for one in found for row in one.rows)
