from dataclasses import replace
from pathlib import Path

import pytest

from tests.audit import AuditLog, Mark
from tests.controllers.autopilot.rig import AutopilotRig, at_work
from tests.eventually import eventually
from virt_steward.controllers.autopilot.overrides.scope import Activation
from virt_steward.kube.errors import NotFound
from virt_steward.objects.identity import Key, Kind, Ref
from virt_steward_demo.local.controlplane import ControlPlane
from virt_steward_demo.simulation.install import install, uninstall

LATEST_TO_COME = "descheduler-dashboard"


@pytest.mark.parametrize(
    "scope",
    [
        pytest.param(None, id="is absent"),
        pytest.param("", id="is empty"),
        pytest.param("false", id="is false"),
        pytest.param(" , ,", id="has commas only"),
        pytest.param("True", id="is no asset, though nearly true"),
    ],
)
async def test_autopilot_is_idle_without_scope(
    running_rig: AutopilotRig, audit_log: AuditLog, scope: str | None
) -> None:
    await running_rig.activate(scope, patch="touched")
    if scope == "True":
        assert await eventually(lambda: running_rig.has_event("LikelyTypo"))
    await running_rig.activate("no-such-asset")  # once this is said, what came before it was seen
    assert await eventually(lambda: running_rig.has_event("UnknownAsset"))
    asked = [verb for verb, _, _ in requests(running_rig, audit_log, running_rig.begin)]
    assert set(asked) <= {"watch", "get"}


async def test_allow_list_selects_assets_and_groups(running_rig: AutopilotRig) -> None:
    await running_rig.activate("descheduler-loadaware,metrics-service")
    assert await eventually(lambda: running_rig.is_there(LATEST_TO_COME))
    there = {asset.name for asset in running_rig.catalog.assets if await running_rig.is_there(asset.name)}
    groups = {asset.name for asset in running_rig.catalog.assets if asset.group == "descheduler-loadaware"}
    assert there == {"hco-golden-config", "descheduler-loadaware", "metrics-service"} | groups - {"psi-enable-master"}
    hco = await running_rig.live("hco-golden-config")
    assert hco
    assert "labels" not in hco["metadata"], "it is there, as it always is, and not marked"


async def test_annotation_of_what_is_always_on_is_reported(running_rig: AutopilotRig) -> None:
    await running_rig.activate("metrics-service", enable_korrel8r="false")
    assert await eventually(lambda: running_rig.has_event("ObsoleteAnnotation"))
    [event] = await running_rig.events("ObsoleteAnnotation")
    assert (
        "enable-korrel8r has no effect any more: troubleshooting-panel-ui-plugin is always installed" in event["note"]
    )


async def test_list_replaced_by_true_is_reported(running_rig: AutopilotRig) -> None:
    await running_rig.activate("metrics-service,swap-enable", rollout="approve")
    assert await eventually(lambda: running_rig.has_event("AssetApplied", "metrics-service"))
    await running_rig.activate("true", rollout="approve")
    assert await eventually(lambda: running_rig.has_event("AllowListReplaced"))
    [event] = await running_rig.events("AllowListReplaced")
    assert event["type"] == "Warning"
    assert "is 'true' now, so all assets are managed" in event["note"]
    assert event["note"].endswith("set it to the list: metrics-service,swap-enable")


async def test_opt_out_is_on_unless_false(
    rig: AutopilotRig, control_plane: ControlPlane, tmp_path: Path, audit_log: AuditLog
) -> None:
    opted_out = replace(rig, options=replace(rig.options, activation=Activation.OPT_OUT))
    await rig.activate("false", rollout="approve")
    async with at_work(opted_out, control_plane, tmp_path):
        await rig.activate("False", rollout="approve")
        assert await eventually(lambda: rig.has_event("LikelyTypo")), "it is on, and not what was meant"
        await rig.activate(None, rollout="approve")
        assert await eventually(lambda: rig.is_there(LATEST_TO_COME))
    assert not await rig.has_event("AllowListReplaced"), "there was no list"
    assert rig.account.denied(audit_log.since(rig.begin)) == []


async def test_assets_are_applied_in_catalog_order(running_rig: AutopilotRig, audit_log: AuditLog) -> None:
    await running_rig.activate("true")
    assert await eventually(lambda: running_rig.is_there(LATEST_TO_COME))
    order = [(asset.object.plural, asset.object.name) for asset in running_rig.catalog.assets]
    patched = [one[1:] for one in requests(running_rig, audit_log, running_rig.begin) if one[0] == "patch"]
    begun = [order.index(which) for which in dict.fromkeys(patched)]  # one that was written may be looked at again
    assert begun[0] == order.index(("hyperconvergeds", "kubevirt-hyperconverged"))
    assert begun == sorted(begun)


async def test_activation_takes_three_requests_per_object(running_rig: AutopilotRig, audit_log: AuditLog) -> None:
    mark = audit_log.mark()
    await running_rig.activate("true")
    assert await eventually(lambda: running_rig.is_there(LATEST_TO_COME))
    assert await eventually(lambda: running_rig.has_event("AssetApplied", LATEST_TO_COME))
    asked = [one for one in requests(running_rig, audit_log, mark) if one[0] != "watch"]
    created = {which[1:] for which in asked}
    assert len(asked) <= 3 * len(created)
    assert len(created) > 8


async def test_compliance_is_reported_once_per_episode(running_rig: AutopilotRig, audit_log: AuditLog) -> None:
    await running_rig.activate("metrics-service,swap-enable")
    assert await eventually(lambda: running_rig.has_event("ReconcileSucceeded"))
    [event] = await running_rig.events("ReconcileSucceeded")
    assert event["note"].startswith(f"2 of {len(running_rig.catalog.assets)} assets are in sync")
    assert (event["type"], event["reportingController"]) == ("Normal", "virt-platform-autopilot")
    mark = audit_log.mark()
    await running_rig.activate("metrics-service,swap-enable,no-such-asset")
    assert await eventually(lambda: running_rig.has_event("UnknownAsset")), "another pass"
    await running_rig.activate("metrics-service,swap-enable,descheduler-loadaware")
    assert await eventually(lambda: has_succeeded(running_rig, times=2)), "something was made"
    told = [one for one in audit_log.since(mark) if one.resource == "events" and one.is_write]
    assert [
        one.verb for one in told if one.user == running_rig.account.user and one.name == event["metadata"]["name"]
    ] == []


async def has_succeeded(rig: AutopilotRig, times: int) -> bool:
    return len(await rig.events("ReconcileSucceeded")) == times


def requests(rig: AutopilotRig, audit_log: AuditLog, mark: Mark) -> list[tuple[str, str, str]]:
    """What the autopilot has asked, without events."""
    return [
        (one.verb, one.resource, one.name)
        for one in audit_log.since(mark)
        if one.user == rig.account.user and one.resource not in {"events", "leases"}
    ]


async def test_missing_crd_is_reported_only_if_requested(
    running_rig: AutopilotRig,
) -> None:
    await uninstall(running_rig.client, "MetalLB", "ForkliftController", "KubeDescheduler")
    await running_rig.activate("true", enable_metallb="true")

    async def needs() -> set[str]:
        return {event["note"].partition(",")[0] for event in await running_rig.events("CRDMissing")}

    async def is_told() -> bool:
        return {
            "metallb-operator needs MetalLB.metallb.io",  # its annotation asks for it
            "descheduler-loadaware needs KubeDescheduler.operator.openshift.io",  # it is always on
        } <= await needs()

    assert await eventually(is_told)
    assert not any("Forklift" in one for one in await needs())
    await install(running_rig.client, "MetalLB", "ForkliftController", "KubeDescheduler")
    assert await eventually(lambda: running_rig.is_there("metallb-operator"))
    assert await eventually(lambda: running_rig.has_event("CRDDiscovered"))


async def test_asset_is_pending_until_its_namespace_exists(
    running_rig: AutopilotRig,
) -> None:
    namespace = Ref(Kind("", "Namespace"), Key("", "metallb-system"))
    await gone(running_rig, namespace)
    await running_rig.activate("metallb-operator,metrics-service", enable_metallb="true")
    assert await eventually(lambda: running_rig.is_there("metrics-service"))
    assert not await running_rig.is_there("metallb-operator")
    assert await running_rig.events("ApplyFailed") == []
    await running_rig.client.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "metallb-system"}})
    assert await eventually(lambda: running_rig.is_there("metallb-operator"))


async def gone(rig: AutopilotRig, ref: Ref) -> None:
    await rig.client.delete(ref)

    async def is_gone() -> bool:
        try:
            await rig.client.get(ref)
        except NotFound:
            return True
        return False

    assert await eventually(is_gone, within=20)
