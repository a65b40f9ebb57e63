"""What the statuses on a cluster say, one section per controller."""

from collections.abc import AsyncIterator

import pytest

from tests.controllers.advisor.rig import the_config
from tests.controllers.approver.builders import NOON
from tests.controllers.approver.builders import an_approver as an_observed_approver
from tests.controllers.placement.scene import Scene
from tests.operators import an_approver, create
from tests.otheroperator import OtherOperator
from virt_steward.apis.installplanapprover import InstallPlanApproverStatus, PendingPlan
from virt_steward.apis.profiles import LOAD_AWARE
from virt_steward.apis.virtplatformconfig import API_VERSION, VIRT_PLATFORM_CONFIG_CRD
from virt_steward.controllers.approver.observation import Approver
from virt_steward.controllers.autopilot.annotation_keys import SCOPE
from virt_steward.controllers.autopilot.options import HCO, AutopilotOptions
from virt_steward.insight.status import GO_LEASES, SECTIONS, Section, collect_sections, of_approvers
from virt_steward.kube.client import Client, Reader
from virt_steward.objects.identity import Key, Ref, ref_of
from virt_steward.platform.hco import HYPERCONVERGED
from virt_steward_demo.local.controlplane import ControlPlane
from virt_steward_demo.simulation.install import install
from virt_steward_demo.simulation.platform import PlatformShape, SimulatedPlatform

ELSEWHERE = Key("elsewhere", "another")
PENDING = {"csvs": ["a.v1"], "reason": "NotPinned", "message": "pin it", "since": "2030-01-01T00:00:00Z"}


@pytest.fixture
async def reader(admin: Client, control_plane: ControlPlane, operators: str) -> AsyncIterator[Reader]:
    """A reader of a cluster on which every section has a row."""
    scene = Scene(admin, control_plane, operators, operators)
    await scene.install_crds()
    await scene.clear()  # other tests share this cluster
    await install(admin, VIRT_PLATFORM_CONFIG_CRD.manifest())
    async with SimulatedPlatform(admin, PlatformShape(machines_per_worker=0, packages=())):
        await admin.merge_patch(Ref(HYPERCONVERGED, HCO), {"metadata": {"annotations": {SCOPE: "true"}}})
        await scene.join("east")
        status = {"phase": "Ready", "machines": 4, "version": "v1.36.3"}
        await admin.merge_patch(scene.ref("east"), {"status": status}, subresource="status")
        await scene.machine("web")
        pending = [{**PENDING, "plan": f"{operators}/install-1"}]
        approver = an_approver(operators) | {"status": {"pendingCount": 1, "approvedCount": 2, "pending": pending}}
        head = {"apiVersion": API_VERSION, "kind": "VirtPlatformConfig", "metadata": {"name": LOAD_AWARE}}
        await create(admin, approver, head | {"spec": {"profile": LOAD_AWARE, "action": "Ignore"}})
        yield Reader(admin.connection, admin.discovery)
        await scene.clear()
        await admin.delete(ref_of(approver))
        await admin.delete(the_config(LOAD_AWARE))


async def sections(reader: Reader, hco: Key = HCO) -> dict[str, Section]:
    return {one.controller: one for one in await collect_sections(reader, AutopilotOptions(hco))}


async def test_sections_list_profiles_assets_pending_plans_and_clusters(reader: Reader, operators: str) -> None:
    found = await sections(reader)
    assert list(found) == [section.__name__ for section in SECTIONS]
    assert (LOAD_AWARE, "Ignore", "not observed yet", "unknown", "", "") in found["advisor"].rows
    assert "Not there yet" in {state for _, state, _ in found["autopilot"].rows}
    assert (f"{operators}/install-1", "NotPinned", "2030-01-01T00:00:00Z", "pin it") in found["approver"].rows
    assert found["placement"].rows == (("east", "Ready", "4", "v1.36.3", ""),)
    assert found["placement"].summary == "clusters: 1; machines without a cluster: 1"


async def test_section_says_that_its_controller_stands_by(reader: Reader, admin: Client, operators: str) -> None:
    other = OtherOperator(admin, Key(operators, GO_LEASES["approver"]))
    await other.renew("go-1")
    found = await sections(reader)
    await other.delete()
    assert found["approver"].summary.startswith(f"standing by: go-1 holds Lease {operators}/08a05259.bapu.cloud.")
    assert not found["autopilot"].summary.startswith("standing by")


async def test_every_row_of_a_section_has_its_columns(reader: Reader) -> None:
    found = (await sections(reader)).values()
    assert all(one.rows for one in found)
    assert all(len(row) == len(one.columns) for one in found for row in one.rows)


async def test_autopilot_section_is_of_the_named_hyperconverged(reader: Reader) -> None:
    found = (await sections(reader, ELSEWHERE))["autopilot"]
    assert str(ELSEWHERE) in found.summary
    assert found.rows == ()


def test_pending_plans_are_counted_once_and_beyond_what_a_status_lists() -> None:
    def a_pending(name: str, reason: str, count: int) -> Approver:
        pending = (PendingPlan("shop/install-1", ("a.v1",), reason, "", NOON),)
        return an_observed_approver(name, status=InstallPlanApproverStatus(pending_count=count, pending=pending))

    found = of_approvers([a_pending("ann", "NotPinned", 71), a_pending("bob", "AutoApproveOff", 1)])
    assert found.summary.endswith("pending: 71 (70 not listed)")
    assert len(found.rows) == 2
    assert of_approvers([a_pending("ann", "NotPinned", 1)]).summary.endswith("pending: 1")
