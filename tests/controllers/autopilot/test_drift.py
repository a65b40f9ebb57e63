from typing import Any

import pytest

from tests.audit import AuditLog, Mark, Request
from tests.controllers.autopilot.cockpit import Cockpit, spec_of
from tests.eventually import eventually
from virt_steward.kube.errors import Refused
from virt_steward.objects.identity import ref_of

ASSET = "descheduler-loadaware"


@pytest.fixture
async def engaged(flying: Cockpit) -> Cockpit:
    """Some assets are there, and everything is as it should be."""
    await flying.engage(f"{ASSET},metrics-service,swap-enable")
    assert await eventually(lambda: flying.is_there("descheduler-dashboard"))
    assert await eventually(lambda: flying.told("AssetApplied", "descheduler-dashboard"))
    return flying


def asked(cockpit: Cockpit, audit_log: AuditLog, mark: Mark) -> list[Request]:
    return [
        one
        for one in audit_log.since(mark)
        if one.user == cockpit.account.user and one.verb != "watch" and one.resource not in {"", "events"}
    ]


async def test_drift_is_corrected_and_names_its_author(engaged: Cockpit, audit_log: AuditLog) -> None:
    before = spec_of(await engaged.live(ASSET))
    mark = audit_log.mark()
    await engaged.edit(ASSET, {"spec": {"deschedulingIntervalSeconds": 7200}})
    assert await eventually(lambda: _is(engaged, before))
    assert await eventually(lambda: engaged.told("DriftCorrected", ASSET))
    [event] = await engaged.events("DriftDetected", ASSET)
    values = "/spec/deschedulingIntervalSeconds is 7200, should be 60 (changed by editor, 20"
    assert values in event["note"]
    assert "platform.kubevirt.io/ignore-fields" in event["note"]
    # What was still under way from before meets an object that has moved on.
    requests = [(one.verb, one.uri) for one in asked(engaged, audit_log, mark) if one.code != 409]
    assert len(requests) <= 3, requests


async def _is(cockpit: Cockpit, spec: dict[str, Any]) -> bool:
    return spec_of(await cockpit.live(ASSET)) == spec


async def test_deleted_object_is_recreated(engaged: Cockpit) -> None:
    before = await engaged.live(ASSET)
    assert before
    await engaged.client.delete(engaged.ref(ASSET))

    async def is_another() -> bool:
        now = await engaged.live(ASSET)
        return now is not None and now["metadata"]["uid"] != before["metadata"]["uid"]

    assert await eventually(is_another)


async def test_irrelevant_change_costs_no_request(engaged: Cockpit, audit_log: AuditLog) -> None:
    mark = audit_log.mark()
    await engaged.client.merge_patch(
        engaged.ref("hco-golden-config"), {"metadata": {"annotations": {"example.org/note": "hello"}}}, manager="admin"
    )
    await engaged.client.merge_patch(
        engaged.ref(ASSET), {"metadata": {"annotations": {"platform.kubevirt.io/patch": "[]"}}}, manager="admin"
    )
    assert await eventually(lambda: engaged.told("PatchApplied", ASSET)), "by then, what came before it was seen"
    assert {one.name for one in asked(engaged, audit_log, mark)} <= {engaged.ref(ASSET).key.name}
    assert all("dryRun" in one.uri for one in asked(engaged, audit_log, mark) if one.verb == "patch")


async def test_apply_keeps_fields_of_other_managers(engaged: Cockpit) -> None:
    before = await engaged.live(ASSET)
    assert before
    mine = {**{name: before[name] for name in ("apiVersion", "kind")}, "spec": {"logLevel": "Debug"}}
    mine["metadata"] = {"name": "cluster", "namespace": before["metadata"]["namespace"], "labels": {"argocd": "yes"}}
    await engaged.client.apply(mine, manager="argocd")
    await engaged.edit(ASSET, {"spec": {"deschedulingIntervalSeconds": 7200}})
    assert await eventually(lambda: engaged.told("DriftCorrected", ASSET))
    after = await engaged.live(ASSET)
    assert after
    assert after["spec"]["logLevel"] == "Debug"
    assert after["metadata"]["labels"]["argocd"] == "yes"


async def test_drift_report_changes_nothing(engaged: Cockpit) -> None:
    await engaged.annotate(ASSET, drift="report")
    await engaged.edit(ASSET, {"spec": {"deschedulingIntervalSeconds": 7200}})
    assert await eventually(lambda: engaged.told("DriftDetected", ASSET))
    await engaged.edit("metrics-service", {"metadata": {"labels": {"app": "other"}}})
    assert await eventually(lambda: engaged.told("DriftCorrected", "metrics-service"))
    assert spec_of(await engaged.live(ASSET))["deschedulingIntervalSeconds"] == 7200
    assert await engaged.events("AssetInOrder", ASSET) == []
    await engaged.edit(ASSET, {"spec": {"deschedulingIntervalSeconds": 60}})
    assert await eventually(lambda: engaged.told("AssetInOrder", ASSET)), "somebody has set it right by hand"
    await engaged.edit(ASSET, {"spec": {"deschedulingIntervalSeconds": 7200}})
    assert await eventually(lambda: _has_drifted_again(engaged)), "and wrong again"
    await engaged.annotate(ASSET, drift=None)
    assert await eventually(lambda: engaged.told("DriftCorrected", ASSET))
    assert spec_of(await engaged.live(ASSET))["deschedulingIntervalSeconds"] == 60


async def _has_drifted_again(cockpit: Cockpit) -> bool:
    [event] = await cockpit.events("DriftDetected", ASSET)
    return "series" in event


async def test_refused_object_holds_up_no_other(flying: Cockpit) -> None:
    policy = {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": "no-swap"},
        "spec": {
            "failurePolicy": "Fail",
            "matchConstraints": {
                "resourceRules": [
                    {
                        "apiGroups": ["machineconfiguration.openshift.io"],
                        "apiVersions": ["*"],
                        "operations": ["CREATE", "UPDATE"],
                        "resources": ["machineconfigs"],
                        "resourceNames": [flying.ref("swap-enable").key.name],
                    }
                ]
            },
            "validations": [{"expression": "false", "message": "no swap here"}],
        },
    }
    binding = {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": {"name": "no-swap"},
        "spec": {"policyName": "no-swap", "validationActions": ["Deny"]},
    }
    await flying.client.apply(policy, manager="admin")
    await flying.client.apply(binding, manager="admin")
    try:
        assert await eventually(lambda: _refuses(flying))
        await flying.engage("swap-enable,metrics-service,descheduler-loadaware")
        assert await eventually(lambda: flying.is_there("descheduler-dashboard"))
        assert await eventually(lambda: flying.told("ApplyFailed", "swap-enable"))
        [event] = await flying.events("ApplyFailed", "swap-enable")
        assert "no swap here" in event["note"]
    finally:
        for one in (binding, policy):
            await flying.client.delete(ref_of(one))
    assert await eventually(lambda: flying.is_there("swap-enable"), within=30), "the queue tries again by itself"
    assert await eventually(lambda: flying.told("AssetInOrder", "swap-enable"), within=30)


async def _refuses(cockpit: Cockpit) -> bool:
    name = cockpit.ref("swap-enable").key.name
    probe = {"apiVersion": "machineconfiguration.openshift.io/v1", "kind": "MachineConfig", "metadata": {"name": name}}
    try:
        await cockpit.client.apply(probe, manager="probe", dry_run=True)
    except Refused:
        return True
    return False
