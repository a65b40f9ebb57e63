"""What a switch has brought goes when it is turned off, and with it nothing of others."""

from functools import partial

from tests.controllers.autopilot.rig import AutopilotRig, spec_of
from tests.eventually import eventually

ASSET = "logging-forwarder"
SCOPE = "logging,audit-logging"
MINE = {"name": "mine", "inputRefs": ["application"], "outputRefs": ["lokistack"]}


async def test_audit_log_pipeline_is_removed_on_opt_out(running_rig: AutopilotRig) -> None:
    await running_rig.activate(SCOPE, enable_logging="true", enable_audit_logging="true")
    assert await eventually(partial(pipelines_are, running_rig, "infra-logs", "app-logs", "audit-logs"), within=30)
    live = await running_rig.live(ASSET)
    assert live
    names = {part: live["metadata"][part] for part in ("name", "namespace")}
    addition = {
        "apiVersion": live["apiVersion"],
        "kind": live["kind"],
        "metadata": names,
        "spec": {"pipelines": [MINE]},
    }
    await running_rig.client.apply(addition, manager="admin")
    await running_rig.activate(SCOPE, enable_audit_logging=None)
    assert await eventually(partial(pipelines_are, running_rig, "infra-logs", "app-logs", "mine"), within=30)
    filters = {one["name"] for one in spec_of(await running_rig.live(ASSET))["filters"]}
    assert filters == {"drop-verbose", "drop-probes"}
    assert await running_rig.events("DriftDetected", ASSET) == [], "only the wish has changed"


async def pipelines_are(rig: AutopilotRig, *names: str) -> bool:
    live = await rig.live(ASSET)
    return live is not None and {one["name"] for one in live["spec"]["pipelines"]} == {*names}
