"""What the autopilot installs about its own metrics, beside an installation that brings the same."""

from collections.abc import AsyncIterator
from functools import partial

import pytest

from tests.controllers.autopilot.rig import AutopilotRig, Object, explained, spec_of
from tests.eventually import eventually
from virt_steward.controllers.autopilot.options import HCO
from virt_steward.objects.identity import ref_of
from virt_steward.packaging.monitoring import MonitoringApis, MonitoringOptions, metrics, of_operators
from virt_steward.runtime.access import Installation

INSTALLATION = Installation(HCO.namespace)
"""Where the rig runs the autopilot."""
SERVICE, *_ = metrics(INSTALLATION)
BROUGHT = of_operators(INSTALLATION, MonitoringOptions(MonitoringApis.PROMETHEUS))
[MONITOR], [RULE] = BROUGHT["servicemonitor"], BROUGHT["alerts-autopilot"]


@pytest.fixture
async def running_rig(running_rig: AutopilotRig) -> AsyncIterator[AutopilotRig]:
    """As if by kustomize, without anything for the Prometheus operator."""
    await running_rig.client.apply(SERVICE, manager="installer")
    yield running_rig
    await running_rig.client.delete(ref_of(SERVICE))


async def rules(rig: AutopilotRig) -> list[Object]:
    live = await rig.live("prometheus-alerts")
    return [rule for group in spec_of(live)["groups"] for rule in group.get("rules", ())] if live else []


async def endpoints(rig: AutopilotRig) -> list[Object]:
    live = await rig.live("metrics-servicemonitor")
    return list(spec_of(live)["endpoints"]) if live else []


async def has_both(rig: AutopilotRig) -> bool:
    return bool(await rules(rig)) and bool(await endpoints(rig))


async def has_neither(rig: AutopilotRig) -> bool:
    return not await rules(rig) and not await endpoints(rig)


async def test_own_monitoring_points_at_our_pods_and_gives_way_to_that_of_the_installation(
    running_rig: AutopilotRig,
) -> None:
    await running_rig.activate("metrics-service,metrics-servicemonitor,prometheus-alerts")
    assert await eventually(partial(has_both, running_rig), within=30)
    monitor = spec_of(await running_rig.live("metrics-servicemonitor"))
    assert monitor["namespaceSelector"] == {"matchNames": [INSTALLATION.namespace]}
    assert monitor["endpoints"][0]["scheme"] == "https"
    assert not await running_rig.is_there("metrics-service")
    shown = await explained(running_rig, "metrics-service")
    assert "Service virt-steward-metrics of the installation: expected=absent, actual=present" in str(shown.checks)

    for obj in (MONITOR, RULE):
        await running_rig.client.apply(obj, manager="installer")
    assert await eventually(partial(has_neither, running_rig), within=30)
    for obj in (MONITOR, RULE):
        await running_rig.client.delete(ref_of(obj))
    assert await eventually(partial(has_both, running_rig), within=30)
