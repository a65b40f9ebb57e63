from typing import Any

import pytest

from tests.audit import AuditLog, Mark, Request
from tests.controllers.autopilot.rig import AutopilotRig, spec_of
from tests.eventually import eventually
from virt_steward.kube.errors import Refused
from virt_steward.objects.identity import ref_of

ASSET = "descheduler-loadaware"


@pytest.fixture
async def activated(running_rig: AutopilotRig) -> AutopilotRig:
    """Some assets are there, and everything is as it should be."""
    await running_rig.activate(f"{ASSET},metrics-service,swap-enable")
    assert await eventually(lambda: running_rig.is_there("descheduler-dashboard"))
    assert await eventually(lambda: running_rig.has_event("AssetApplied", "descheduler-dashboard"))
    return running_rig


def asked(rig: AutopilotRig, audit_log: AuditLog, mark: Mark) -> list[Request]:
    return [
        one
        for one in audit_log.since(mark)
        if one.user == rig.account.user and one.verb != "watch" and one.resource not in {"", "events"}
    ]


async def test_drift_is_corrected_and_names_its_author(activated: AutopilotRig, audit_log: AuditLog) -> None:
    before = spec_of(await activated.live(ASSET))
    mark = audit_log.mark()
    await activated.edit(ASSET, {"spec": {"deschedulingIntervalSeconds": 7200}})
    assert await eventually(lambda: _is(activated, before))
    assert await eventually(lambda: activated.has_event("DriftCorrected", ASSET))
    [event] = await activated.events("DriftDetected", ASSET)
    values = "/spec/deschedulingIntervalSeconds is 7200, should be 60 (changed by editor, 20"
    assert values in event["note"]
    assert "platform.kubevirt.io/ignore-fields" in event["note"]
    # What was still under way from before meets an object that has moved on.
    requests = [(one.verb, one.uri) for one in asked(activated, audit_log, mark) if one.code != 409]
    assert len(requests) <= 3, requests


async def _is(rig: AutopilotRig, spec: dict[str, Any]) -> bool:
    return spec_of(await rig.live(ASSET)) == spec


async def test_deleted_object_is_recreated(activated: AutopilotRig) -> None:
    before = await activated.live(ASSET)
    assert before
    await activated.client.delete(activated.ref(ASSET))

    async def is_another() -> bool:
        now = await activated.live(ASSET)
        return now is not None and now["metadata"]["uid"] != before["metadata"]["uid"]

    assert await eventually(is_another)


async def test_irrelevant_change_costs_no_request(activated: AutopilotRig, audit_log: AuditLog) -> None:
    mark = audit_log.mark()
    await activated.client.merge_patch(
        activated.ref("hco-golden-config"),
        {"metadata": {"annotations": {"example.org/note": "hello"}}},
        manager="admin",
    )
    await activated.client.merge_patch(
        activated.ref(ASSET), {"metadata": {"annotations": {"platform.kubevirt.io/patch": "[]"}}}, manager="admin"
    )
    assert await eventually(lambda: activated.has_event("PatchApplied", ASSET)), "by then, what came before it was seen"
    assert {one.name for one in asked(activated, audit_log, mark)} <= {activated.ref(ASSET).key.name}
    assert all("dryRun" in one.uri for one in asked(activated, audit_log, mark) if one.verb == "patch")


async def test_apply_keeps_fields_of_other_managers(activated: AutopilotRig) -> None:
    before = await activated.live(ASSET)
    assert before
    mine = {**{name: before[name] for name in ("apiVersion", "kind")}, "spec": {"logLevel": "Debug"}}
    mine["metadata"] = {"name": "cluster", "namespace": before["metadata"]["namespace"], "labels": {"argocd": "yes"}}
    await activated.client.apply(mine, manager="argocd")
    await activated.edit(ASSET, {"spec": {"deschedulingIntervalSeconds": 7200}})
    assert await eventually(lambda: activated.has_event("DriftCorrected", ASSET))
    after = await activated.live(ASSET)
    assert after
    assert after["spec"]["logLevel"] == "Debug"
    assert after["metadata"]["labels"]["argocd"] == "yes"


async def test_drift_report_changes_nothing(activated: AutopilotRig) -> None:
    await activated.annotate(ASSET, drift="report")
    await activated.edit(ASSET, {"spec": {"deschedulingIntervalSeconds": 7200}})
    assert await eventually(lambda: activated.has_event("DriftDetected", ASSET))
    await activated.edit("metrics-service", {"metadata": {"labels": {"app": "other"}}})
    assert await eventually(lambda: activated.has_event("DriftCorrected", "metrics-service"))
    assert spec_of(await activated.live(ASSET))["deschedulingIntervalSeconds"] == 7200
    assert await activated.events("AssetInOrder", ASSET) == []
    await activated.edit(ASSET, {"spec": {"deschedulingIntervalSeconds": 60}})
    assert await eventually(lambda: activated.has_event("AssetInOrder", ASSET)), "somebody has set it right by hand"
    await activated.edit(ASSET, {"spec": {"deschedulingIntervalSeconds": 7200}})
    assert await eventually(lambda: _has_drifted_again(activated)), "and wrong again"
    await activated.annotate(ASSET, drift=None)
    assert await eventually(lambda: activated.has_event("DriftCorrected", ASSET))
    assert spec_of(await activated.live(ASSET))["deschedulingIntervalSeconds"] == 60


async def _has_drifted_again(rig: AutopilotRig) -> bool:
    [event] = await rig.events("DriftDetected", ASSET)
    return "series" in event


async def test_refused_object_holds_up_no_other(running_rig: AutopilotRig) -> None:
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
                        "resourceNames": [running_rig.ref("swap-enable").key.name],
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
    await running_rig.client.apply(policy, manager="admin")
    await running_rig.client.apply(binding, manager="admin")
    try:
        assert await eventually(lambda: _refuses(running_rig))
        await running_rig.activate("swap-enable,metrics-service,descheduler-loadaware")
        assert await eventually(lambda: running_rig.is_there("descheduler-dashboard"))
        assert await eventually(lambda: running_rig.has_event("ApplyFailed", "swap-enable"))
        [event] = await running_rig.events("ApplyFailed", "swap-enable")
        assert "no swap here" in event["note"]
    finally:
        for one in (binding, policy):
            await running_rig.client.delete(ref_of(one))
    assert await eventually(lambda: running_rig.is_there("swap-enable"), within=30), "the queue tries again by itself"
    assert await eventually(lambda: running_rig.has_event("AssetInOrder", "swap-enable"), within=30)


async def _refuses(rig: AutopilotRig) -> bool:
    name = rig.ref("swap-enable").key.name
    probe = {"apiVersion": "machineconfiguration.openshift.io/v1", "kind": "MachineConfig", "metadata": {"name": name}}
    try:
        await rig.client.apply(probe, manager="probe", dry_run=True)
    except Refused:
        return True
    return False
