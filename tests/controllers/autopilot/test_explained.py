"""What a person is told of an asset, without the autopilot at work: by its rules, from what is there."""

from datetime import UTC, datetime
from typing import Any

import pytest

from tests.controllers.autopilot.cockpit import Cockpit
from tests.controllers.autopilot.everything import options_for
from tests.eventually import soon
from virt_steward.cli.assets import lines
from virt_steward.insight.assets import NoPlatform, Survey, rendered, survey
from virt_steward.insight.status import Section, autopilot
from virt_steward.insight.whyasset import NoAsset, Why, why
from virt_steward.kube.client import Reader
from virt_steward.ssa.managers import AUTOPILOT

ASSET = "descheduler-loadaware"
INTERVAL = "/spec/deschedulingIntervalSeconds"


def reader(cockpit: Cockpit) -> Reader:
    return Reader(cockpit.client.connection, cockpit.client.discovery)


async def surveyed(cockpit: Cockpit) -> Survey:
    return await survey(reader(cockpit), cockpit.catalog, options_for(cockpit.catalog), datetime.now(UTC))


async def explained(cockpit: Cockpit, asset: str = ASSET) -> Why:
    return why(await surveyed(cockpit), asset)


async def status(cockpit: Cockpit) -> Section:
    return await autopilot(reader(cockpit))


async def made_with(cockpit: Cockpit, **spec: Any) -> None:
    """Apply what the autopilot wants, but for some fields, as if it had done so."""
    found = await rendered(reader(cockpit), cockpit.catalog, cockpit.options, datetime.now(UTC))
    [line] = [one for one in found.lines if one.asset.name == ASSET]
    assert line.object
    obj = line.object | {"spec": line.object["spec"] | spec}
    await cockpit.client.apply(obj, manager=AUTOPILOT.name, force=True)


async def test_an_idle_autopilot_is_said_to_be_idle_and_what_it_would_do_all_the_same(cockpit: Cockpit) -> None:
    found = await explained(cockpit)
    assert found.state == "Idle"
    assert found.steps[0].objects
    assert "no annotation platform.kubevirt.io/autopilot" in found.steps[0].because
    assert [step.check for step in found.steps if step.objects] == ["the autopilot is on"]
    assert (await status(cockpit)).summary.startswith("idle: the HyperConverged has no annotation")
    with pytest.raises(NoAsset, match="there is no asset gone"):
        await explained(cockpit, "gone")
    await cockpit.client.delete(cockpit.ref("hco-golden-config"))

    async def is_told() -> bool:
        return "there is no HyperConverged openshift-cnv/" in (await status(cockpit)).summary

    assert await soon(is_told)
    with pytest.raises(NoPlatform):
        await explained(cockpit)


async def test_every_filter_and_check_tells_its_verdict_and_the_live_object_is_compared(cockpit: Cockpit) -> None:
    await cockpit.engage(f"{ASSET},metallb-operator,hco-golden-config")
    left = await explained(cockpit, "metallb-operator")
    assert (left.state, left.live) == ("Left alone", None)
    assert [(step.check, step.objects) for step in left.steps] == [
        ("the autopilot is on", False),
        ("in allow list", False),
        ("kind is installed", False),
        ("gate is installed", False),
        ("conditions are met", True),
    ]
    assert "platform.kubevirt.io/enable-metallb: expected=true, actual=absent" in left.steps[-1].because
    assert (await explained(cockpit)).state == "Not there yet"

    await made_with(cockpit, deschedulingIntervalSeconds=7200)
    differs = await explained(cockpit)
    assert (differs.state, differs.differences) == ("Differs", (INTERVAL,))
    assert differs.steps[-1].objects
    assert f"  [-] the live object is as wanted: it lacks {INTERVAL}" in lines(differs)
    told = await status(cockpit)
    assert (ASSET, "Differs", f"it lacks {INTERVAL}") in told.rows
    assert ("swap-enable", "Left alone", "Not in the allow-list") in told.rows
    assert told.summary.startswith("assets left alone: ")

    await cockpit.annotate(ASSET, ignore_fields=INTERVAL, override_until="2999-01-01T00:00:00Z")
    masked = await explained(cockpit)
    assert (masked.state, masked.until) == ("In place", "2999-01-01T00:00:00Z")
    assert masked.overrides["platform.kubevirt.io/ignore-fields"] == INTERVAL
    assert any(INTERVAL in step.because for step in masked.steps)
    assert ASSET not in [row[0] for row in (await status(cockpit)).rows]

    await cockpit.annotate(ASSET, reconcile_paused="true")
    assert (await explained(cockpit)).state == "Paused"
    await cockpit.annotate(ASSET, reconcile_paused=None, mode="unmanaged")
    unmanaged = await explained(cockpit)
    assert (unmanaged.state, unmanaged.steps[-1].check) == ("Left alone", "managed")
    text = "\n".join(lines(unmanaged))
    assert "[-] managed: it carries platform.kubevirt.io/mode: unmanaged" in text
    assert "The object is there: not known to be made by the autopilot; also managed by admin." in text
