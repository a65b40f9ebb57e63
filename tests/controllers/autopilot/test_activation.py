from dataclasses import replace
from pathlib import Path

import pytest

from tests.audit import AuditLog, Mark
from tests.controllers.autopilot.cockpit import Cockpit, at_work
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
async def test_autopilot_is_idle_without_scope(flying: Cockpit, audit_log: AuditLog, scope: str | None) -> None:
    await flying.engage(scope, patch="touched")
    if scope == "True":
        assert await eventually(lambda: flying.told("LikelyTypo"))
    await flying.engage("no-such-asset")  # once this is said, what came before it was seen
    assert await eventually(lambda: flying.told("UnknownAsset"))
    asked = [verb for verb, _, _ in requests(flying, audit_log, flying.begin)]
    assert set(asked) <= {"watch", "get"}


async def test_allow_list_selects_assets_and_groups(flying: Cockpit) -> None:
    await flying.engage("descheduler-loadaware,metrics-service")
    assert await eventually(lambda: flying.is_there(LATEST_TO_COME))
    there = {asset.name for asset in flying.catalog.assets if await flying.is_there(asset.name)}
    groups = {asset.name for asset in flying.catalog.assets if asset.group == "descheduler-loadaware"}
    assert there == {"hco-golden-config", "descheduler-loadaware", "metrics-service"} | groups - {"psi-enable-master"}
    hco = await flying.live("hco-golden-config")
    assert hco
    assert "labels" not in hco["metadata"], "it is there, as it always is, and not marked"


async def test_annotation_of_what_is_always_on_is_reported(flying: Cockpit) -> None:
    await flying.engage("metrics-service", enable_korrel8r="false")
    assert await eventually(lambda: flying.told("ObsoleteAnnotation"))
    [event] = await flying.events("ObsoleteAnnotation")
    assert (
        "enable-korrel8r has no effect any more: troubleshooting-panel-ui-plugin is always installed" in event["note"]
    )


async def test_list_replaced_by_true_is_reported(flying: Cockpit) -> None:
    await flying.engage("metrics-service,swap-enable", rollout="approve")
    assert await eventually(lambda: flying.told("AssetApplied", "metrics-service"))
    await flying.engage("true", rollout="approve")
    assert await eventually(lambda: flying.told("AllowListReplaced"))
    [event] = await flying.events("AllowListReplaced")
    assert event["type"] == "Warning"
    assert "is 'true' now, so all assets are managed" in event["note"]
    assert event["note"].endswith("set it to the list: metrics-service,swap-enable")


async def test_opt_out_is_on_unless_false(
    cockpit: Cockpit, control_plane: ControlPlane, tmp_path: Path, audit_log: AuditLog
) -> None:
    opted_out = replace(cockpit, options=replace(cockpit.options, activation=Activation.OPT_OUT))
    await cockpit.engage("false", rollout="approve")
    async with at_work(opted_out, control_plane, tmp_path):
        await cockpit.engage("False", rollout="approve")
        assert await eventually(lambda: cockpit.told("LikelyTypo")), "it is on, and not what was meant"
        await cockpit.engage(None, rollout="approve")
        assert await eventually(lambda: cockpit.is_there(LATEST_TO_COME))
    assert not await cockpit.told("AllowListReplaced"), "there was no list"
    assert cockpit.account.denied(audit_log.since(cockpit.begin)) == []


async def test_assets_are_applied_in_catalog_order(flying: Cockpit, audit_log: AuditLog) -> None:
    await flying.engage("true")
    assert await eventually(lambda: flying.is_there(LATEST_TO_COME))
    order = [(asset.object.plural, asset.object.name) for asset in flying.catalog.assets]
    patched = [one[1:] for one in requests(flying, audit_log, flying.begin) if one[0] == "patch"]
    begun = [order.index(which) for which in dict.fromkeys(patched)]  # one that was written may be looked at again
    assert begun[0] == order.index(("hyperconvergeds", "kubevirt-hyperconverged"))
    assert begun == sorted(begun)


async def test_activation_takes_three_requests_per_object(flying: Cockpit, audit_log: AuditLog) -> None:
    mark = audit_log.mark()
    await flying.engage("true")
    assert await eventually(lambda: flying.is_there(LATEST_TO_COME))
    assert await eventually(lambda: flying.told("AssetApplied", LATEST_TO_COME))
    asked = [one for one in requests(flying, audit_log, mark) if one[0] != "watch"]
    created = {which[1:] for which in asked}
    assert len(asked) <= 3 * len(created)
    assert len(created) > 8


async def test_compliance_is_reported_once_per_episode(flying: Cockpit, audit_log: AuditLog) -> None:
    await flying.engage("metrics-service,swap-enable")
    assert await eventually(lambda: flying.told("ReconcileSucceeded"))
    [event] = await flying.events("ReconcileSucceeded")
    assert event["note"].startswith(f"2 of {len(flying.catalog.assets)} assets are in sync")
    assert (event["type"], event["reportingController"]) == ("Normal", "virt-platform-autopilot")
    mark = audit_log.mark()
    await flying.engage("metrics-service,swap-enable,no-such-asset")
    assert await eventually(lambda: flying.told("UnknownAsset")), "another pass"
    await flying.engage("metrics-service,swap-enable,descheduler-loadaware")
    assert await eventually(lambda: has_succeeded(flying, times=2)), "something was made"
    told = [one for one in audit_log.since(mark) if one.resource == "events" and one.is_write]
    assert [one.verb for one in told if one.user == flying.account.user and one.name == event["metadata"]["name"]] == []


async def has_succeeded(cockpit: Cockpit, times: int) -> bool:
    return len(await cockpit.events("ReconcileSucceeded")) == times


def requests(cockpit: Cockpit, audit_log: AuditLog, mark: Mark) -> list[tuple[str, str, str]]:
    """What the autopilot has asked, without events."""
    return [
        (one.verb, one.resource, one.name)
        for one in audit_log.since(mark)
        if one.user == cockpit.account.user and one.resource not in {"events", "leases"}
    ]


async def test_missing_crd_is_reported_only_if_requested(
    flying: Cockpit,
) -> None:
    await uninstall(flying.client, "MetalLB", "ForkliftController", "KubeDescheduler")
    await flying.engage("true", enable_metallb="true")

    async def needs() -> set[str]:
        return {event["note"].partition(",")[0] for event in await flying.events("CRDMissing")}

    async def is_told() -> bool:
        return {
            "metallb-operator needs MetalLB.metallb.io",  # its annotation asks for it
            "descheduler-loadaware needs KubeDescheduler.operator.openshift.io",  # it is always on
        } <= await needs()

    assert await eventually(is_told)
    assert not any("Forklift" in one for one in await needs())
    await install(flying.client, "MetalLB", "ForkliftController", "KubeDescheduler")
    assert await eventually(lambda: flying.is_there("metallb-operator"))
    assert await eventually(lambda: flying.told("CRDDiscovered"))


async def test_asset_is_pending_until_its_namespace_exists(
    flying: Cockpit,
) -> None:
    namespace = Ref(Kind("", "Namespace"), Key("", "metallb-system"))
    await gone(flying, namespace)
    await flying.engage("metallb-operator,metrics-service", enable_metallb="true")
    assert await eventually(lambda: flying.is_there("metrics-service"))
    assert not await flying.is_there("metallb-operator")
    assert await flying.events("ApplyFailed") == []
    await flying.client.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "metallb-system"}})
    assert await eventually(lambda: flying.is_there("metallb-operator"))


async def gone(cockpit: Cockpit, ref: Ref) -> None:
    await cockpit.client.delete(ref)

    async def is_gone() -> bool:
        try:
            await cockpit.client.get(ref)
        except NotFound:
            return True
        return False

    assert await eventually(is_gone, within=20)
