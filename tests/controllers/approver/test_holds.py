"""A freeze of the installation and closed gates hold approvals back: on the API server, under the approver's rights."""

from datetime import UTC, datetime

from tests.controllers.approver.builders import V1
from tests.controllers.approver.lifecycle import Lifecycle, an_approver
from tests.controllers.approver.process import Process
from tests.controllers.approver.test_approvals import shows
from tests.eventually import eventually
from tests.freezes import frozen
from tests.installplans import INSTALL_PLAN
from virt_steward.controllers.approver.manual_approval import OVERRIDE_FREEZE, OVERRIDE_FREEZE_COMMENT
from virt_steward.decisions.freezes import WITHOUT_COMMENT, FreezeTerms
from virt_steward.decisions.installplans import InstallPlanApproved, approve_as_read, read_plan
from virt_steward.decisions.outcomes import NotApproved
from virt_steward.insight.freeze import freeze_now
from virt_steward.kube.client import Client
from virt_steward.objects.identity import Ref


async def test_freeze_and_gates_hold_approvals_back(
    cluster: Client, olm: Lifecycle, home: str, approver: Process
) -> None:
    assert approver
    await an_approver(cluster, olm.namespace, targetNamespaces=[olm.namespace], policy={"gates": ["polls"]})
    async with frozen(cluster, home, reason="holidays", controllers="approver"):
        await olm.subscribe("db", V1)
        plan = await olm.offer(V1)
        assert await eventually(lambda: shows(cluster, olm, plan, "Frozen"))
        assert not await olm.is_approved(plan)
    assert await eventually(lambda: shows(cluster, olm, plan, "GateClosed"))
    assert not await olm.is_approved(plan)
    await an_approver(cluster, olm.namespace, name="bob", targetNamespaces=[olm.namespace])
    assert await eventually(lambda: olm.is_approved(plan))


async def test_manual_approval_during_a_freeze_needs_an_override(cluster: Client, olm: Lifecycle, home: str) -> None:
    await olm.subscribe("db", V1)
    key, now = await olm.offer(V1), datetime.now(UTC)
    plan = await read_plan(cluster, key)
    async with frozen(cluster, home, reason="holidays"):
        freeze = await freeze_now(cluster, home, "approver", now)
        refused = await approve_as_read(cluster, plan, "please", now, FreezeTerms(freeze))
        assert isinstance(refused, NotApproved)
        assert f"frozen by ConfigMap {home}/virt-steward-freeze until it is removed (holidays)" in refused.reason
        override = FreezeTerms(freeze, overrides=True)
        assert await approve_as_read(cluster, plan, " ", now, override) == NotApproved(str(key), WITHOUT_COMMENT)
        assert isinstance(await approve_as_read(cluster, plan, "incident 7", now, override), InstallPlanApproved)
    notes = (await cluster.get(Ref(INSTALL_PLAN, key)))["metadata"]["annotations"]
    assert (notes[OVERRIDE_FREEZE], notes[OVERRIDE_FREEZE_COMMENT]) == (plan.metadata.uid, "incident 7")
