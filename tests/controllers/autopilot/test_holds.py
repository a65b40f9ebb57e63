"""Freezes and gates hold changes of the autopilot back: on the API server, with simulated pools."""

from datetime import UTC, datetime
from functools import partial

from tests.controllers.autopilot.rig import AutopilotRig
from tests.controllers.autopilot.staging_rig import (
    KUBELET,
    OTHER,
    SCOPE,
    activated,
    has_passed,
    has_pods,
    is_staged,
    staged,
    want_pods,
)
from tests.eventually import eventually
from tests.freezes import frozen
from virt_steward.controllers.autopilot.options import HCO
from virt_steward.decisions.freezes import FreezeTerms
from virt_steward.decisions.outcomes import Decided, NotDecided
from virt_steward.decisions.rollouts import release
from virt_steward.decisions.signatures import sign
from virt_steward.holds.freezes import Frozen
from virt_steward.insight.status import Section, read_section


async def section_of(rig: AutopilotRig, controller: str) -> Section:
    return await read_section(rig.client, controller, rig.options, datetime.now(UTC))


async def test_freeze_stages_what_reboots_nodes_and_still_corrects_drift(running_rig: AutopilotRig) -> None:
    await activated(running_rig)
    async with frozen(running_rig.client, HCO.namespace, reason="holidays"):
        await running_rig.activate(SCOPE, rollout="immediate")
        await want_pods(running_rig, 321)
        assert await eventually(partial(is_staged, running_rig, KUBELET))
        await has_passed(running_rig)  # by a correction of drift
        assert not await has_pods(running_rig, 321)
        words = "frozen by ConfigMap openshift-cnv/virt-steward-freeze until it is removed (holidays)"
        section = await section_of(running_rig, "autopilot")
        assert section.frozen.startswith(words)
        [why] = [row.why for row in section.assets if row.asset == KUBELET]
        assert words in why
        assert not (await section_of(running_rig, "placement")).frozen
        ids = [(await staged(running_rig))[KUBELET].id]
        silent, signature = [await sign(running_rig.client, text, datetime.now(UTC)) for text in ("", "incident 7")]
        later = await release(running_rig.client, HCO, ids, silent, FreezeTerms(Frozen("spec.freeze")))
        assert isinstance(later, Decided)
        assert "applied after the freeze" in later.message
        override = FreezeTerms(Frozen("spec.freeze"), overrides=True)
        assert isinstance(await release(running_rig.client, HCO, ids, silent, override), NotDecided)
        assert isinstance(await release(running_rig.client, HCO, ids, signature, override), Decided)
        assert await eventually(partial(has_pods, running_rig, 321))
        assert await eventually(partial(running_rig.has_event, "MachineConfigUpdateReleased", KUBELET))
        [event] = await running_rig.events("MachineConfigUpdateReleased", KUBELET)
        assert "admin overrides the freeze: incident 7" in event["note"]


async def test_total_freeze_corrects_nothing_until_it_ends(running_rig: AutopilotRig) -> None:
    await activated(running_rig)
    async with frozen(running_rig.client, HCO.namespace, scope="all"):
        await running_rig.edit(OTHER, {"metadata": {"labels": {"app": "other"}}})
        await want_pods(running_rig, 321)
        assert await eventually(partial(is_staged, running_rig, KUBELET))  # a pass that began after the edit
        assert await _label(running_rig) == "other"
    assert await eventually(lambda: _is_corrected(running_rig))


async def _label(rig: AutopilotRig) -> str:
    live = await rig.live(OTHER)
    return str(live["metadata"]["labels"]["app"]) if live else ""


async def _is_corrected(rig: AutopilotRig) -> bool:
    return await _label(rig) not in ("", "other")


async def test_closed_gate_holds_staged_change_and_says_so(running_rig: AutopilotRig) -> None:
    await activated(running_rig)
    await running_rig.activate(SCOPE, rollout="immediate", rollout_gates="polls, pools")
    await want_pods(running_rig, 321)
    assert await eventually(partial(is_staged, running_rig, KUBELET))
    assert "gate polls is closed: it is not defined" in (await staged(running_rig))[KUBELET].closed_gates
    [why] = [row.why for row in (await section_of(running_rig, "autopilot")).assets if row.asset == KUBELET]
    assert "gate polls is closed: it is not defined" in why
    await running_rig.activate(SCOPE, rollout_gates="pools")
    assert await eventually(partial(has_pods, running_rig, 321))
    assert await eventually(partial(is_staged, running_rig))
