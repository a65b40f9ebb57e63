"""What the statuses on a cluster say, one section per controller."""

from collections.abc import AsyncIterator
from datetime import UTC, datetime

import pytest

from tests.controllers.advisor.rig import the_config
from tests.controllers.approver.builders import NOON
from tests.controllers.approver.builders import an_approver as an_observed_approver
from tests.controllers.placement.scene import Scene
from tests.machines import the_machine
from tests.operators import an_approver, create
from virt_steward.apis.installplanapprover import InstallPlanApproverStatus, PendingPlan
from virt_steward.apis.profiles import LOAD_AWARE
from virt_steward.apis.virtplatformconfig import API_VERSION, VIRT_PLATFORM_CONFIG_CRD
from virt_steward.controllers.approver.observation import Approver
from virt_steward.controllers.autopilot.annotation_keys import SCOPE
from virt_steward.controllers.autopilot.options import HCO, AutopilotOptions
from virt_steward.insight.status import (
    NOT_OBSERVED,
    SECTIONS,
    MemberRow,
    ProfileRow,
    Section,
    of_approvers,
    read_section,
)
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
    now = datetime.now(UTC)
    return {name: await read_section(reader, name, AutopilotOptions(hco), now) for name in SECTIONS}


async def test_sections_list_profiles_assets_pending_plans_clusters_and_machines(
    reader: Reader, operators: str
) -> None:
    found = await sections(reader)
    assert ProfileRow(LOAD_AWARE, "Ignore", NOT_OBSERVED, "unknown", None, "") in found["advisor"].profiles
    assert "Not there yet" in {one.state for one in found["autopilot"].assets}
    assert found["autopilot"].active == 1
    plans = {one.plan: one for one in found["approver"].install_plans}
    assert plans[f"{operators}/install-1"].reason == "NotPinned"
    assert found["placement"].clusters == (MemberRow("east", "Ready", True, 4, "v1.36.3", ""),)
    assert found["placement"].counts == {"clusters": 1, "machines": 1, "unplaced": 1}


async def test_placement_section_names_unplaced_machine_with_its_reason(
    reader: Reader, admin: Client, operators: str
) -> None:
    (row,) = (await sections(reader))["placement"].machines
    assert (row.machine, row.reason) == (f"{operators}/web", NOT_OBSERVED)
    condition = {"type": "Placed", "status": "False", "reason": "AmbiguousPlacement", "message": "two clusters fit"}
    conditions = [condition | {"lastTransitionTime": "2026-03-01T12:00:00Z"}]
    machine = the_machine(operators, "web")
    await admin.merge_patch(machine, {"status": {"conditions": conditions}}, subresource="status")
    (row,) = (await sections(reader))["placement"].machines
    assert (row.reason, row.message) == ("AmbiguousPlacement", "two clusters fit")


async def test_autopilot_section_is_of_the_named_hyperconverged(reader: Reader) -> None:
    found = (await sections(reader, ELSEWHERE))["autopilot"]
    assert str(ELSEWHERE) in found.summary
    assert found.assets == ()


def test_pending_plans_are_counted_once_and_beyond_what_a_status_lists() -> None:
    def a_pending(name: str, reason: str, count: int) -> Approver:
        pending = (PendingPlan("shop/install-1", ("a.v1",), reason, "", NOON),)
        return an_observed_approver(name, status=InstallPlanApproverStatus(pending_count=count, pending=pending))

    found = of_approvers([a_pending("ann", "NotPinned", 71), a_pending("bob", "AutoApproveOff", 1)])
    assert found.summary.endswith("pending: 71 (70 not listed)")
    assert len(found.install_plans) == 2
    assert found.counts == {"approvers": 2, "approved": 0, "pending": 71, "pendingNotListed": 70}
    assert of_approvers([a_pending("ann", "NotPinned", 1)]).summary.endswith("pending: 1")
