"""The autopilot in numbers, as they are scraped: a series is there while it means something, and tells the truth."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path

import aiohttp
import pytest
from prometheus_client import CollectorRegistry
from prometheus_client.parser import text_string_to_metric_families

from tests.controllers.autopilot.opponent import an_opponent, is_paused
from tests.controllers.autopilot.pair import ASSET, BOTH, OTHER, activate_two, becomes, is_corrected
from tests.controllers.autopilot.rig import AutopilotRig, at_work
from tests.eventually import eventually
from tests.ports import a_free_port
from virt_steward.controllers.autopilot.metrics import AutopilotMetrics
from virt_steward.objects.identity import Key, Kind, Ref
from virt_steward.runtime.addresses import Address
from virt_steward.runtime.probes import Addresses
from virt_steward_demo.local.controlplane import ControlPlane
from virt_steward_demo.simulation.install import install, uninstall

COMPLIES = "compliance_status"


class Scraper:
    """Reads what is served."""

    def __init__(self, url: str, session: aiohttp.ClientSession) -> None:
        self._url = url
        self._session = session

    async def samples(self, name: str) -> dict[tuple[str, ...], float]:
        """All series of a metric, by the values of their labels in the order of the names."""
        async with self._session.get(self._url) as answer:
            text = await answer.text()
        return {
            tuple(value for _, value in sorted(sample.labels.items())): sample.value
            for family in text_string_to_metric_families(text)
            for sample in family.samples
            if sample.name == f"kubevirt_autopilot_{name}"
        }

    async def missing(self) -> set[tuple[str, ...]]:
        """The kinds that are missing, by group, kind and version."""
        return {kind for kind, value in (await self.samples("missing_dependency")).items() if value}

    async def misses_nothing(self) -> bool:
        return await self.missing() == set()

    async def value(self, rig: AutopilotRig, asset: str, name: str, *more: str) -> float | None:
        """Of the series of an asset's object; None if there is none."""
        ref = rig.ref(asset)
        labels = (ref.kind.name, ref.key.name, ref.key.namespace, *more)
        return (await self.samples(name)).get(labels)

    async def becomes(self, rig: AutopilotRig, name: str, value: float | None, *more: str) -> bool:
        """Whether the series of the one asset gets a value, None for none, within its time."""

        async def is_so() -> bool:
            return await self.value(rig, ASSET, name, *more) == value

        return await eventually(is_so, within=30)

    async def counts(self, name: str, asset: str = ASSET) -> float:
        return (await self.samples(f"{name}_total")).get((asset,), 0.0)


@pytest.fixture
async def scraper(rig: AutopilotRig, control_plane: ControlPlane, tmp_path: Path) -> AsyncIterator[Scraper]:
    """The autopilot at work, and two assets activated."""
    async with serving(rig, control_plane, tmp_path) as scraper:
        await activate_two(rig)
        yield scraper


@asynccontextmanager
async def serving(rig: AutopilotRig, control_plane: ControlPlane, folder: Path) -> AsyncIterator[Scraper]:
    """The autopilot at work, its metrics served."""
    free = a_free_port()
    address = Address("--metrics-bind-address", "127.0.0.1", free)
    async with (
        at_work(rig, control_plane, folder, addresses=Addresses(address, None, None)),
        aiohttp.ClientSession() as session,
    ):
        yield Scraper(f"http://{address}/metrics", session)


async def test_compliance_metric_follows_the_live_object(rig: AutopilotRig, scraper: Scraper) -> None:
    assert await scraper.becomes(rig, COMPLIES, 1)
    await rig.annotate(ASSET, drift="report")
    assert await scraper.becomes(rig, COMPLIES, 1)
    await rig.edit(ASSET, {"spec": {"mode": "Predictive"}})
    assert await scraper.becomes(rig, COMPLIES, 0), "it is only reported"
    assert await scraper.becomes(rig, "report_only", 1)
    await rig.annotate(ASSET, drift=None, reconcile_paused="true")
    assert await scraper.becomes(rig, "report_only", None)
    assert await scraper.becomes(rig, "paused_resources", 1)
    assert await scraper.value(rig, ASSET, COMPLIES) == 0, "it is paused, and differs"
    await rig.annotate(ASSET, reconcile_paused=None)
    assert await scraper.becomes(rig, COMPLIES, 1)
    assert await scraper.becomes(rig, "paused_resources", 0)
    assert (await scraper.counts("drift_detected"), await scraper.counts("asset_apply")) >= (2, 2)
    assert await scraper.counts("asset_reconcile") >= 4
    assert await scraper.counts("asset_reconcile_errors") == 0
    await rig.annotate(ASSET, mode="unmanaged")
    assert await scraper.becomes(rig, "customization_info", 1, "unmanaged")
    assert await scraper.becomes(rig, COMPLIES, None), "nothing is wanted of it"
    assert await scraper.value(rig, ASSET, "paused_resources") is None
    await rig.annotate(ASSET, mode=None, patch="[]", ignore_fields="/spec/mode")
    assert await scraper.becomes(rig, "customization_info", 1, "patch")
    assert await scraper.becomes(rig, "customization_info", 1, "ignore")
    assert await scraper.becomes(rig, "customization_info", None, "unmanaged")
    await rig.activate("false")
    assert await scraper.becomes(rig, COMPLIES, None)
    assert await scraper.samples(COMPLIES) == {}
    assert await scraper.samples("customization_info") == {}


async def test_edit_war_metric_counts_once(rig: AutopilotRig, scraper: Scraper) -> None:
    async with an_opponent(rig, {"mode": "Predictive"}):
        assert await eventually(partial(is_paused, rig), within=60)
        assert await scraper.becomes(rig, "paused_resources", 1)
        await is_corrected(rig)
    assert await scraper.value(rig, ASSET, "thrashing_total") == 1
    assert await scraper.value(rig, ASSET, COMPLIES) == 0
    await rig.annotate(ASSET, reconcile_paused=None)
    assert await becomes(rig, mode="Automatic")
    assert await scraper.becomes(rig, "paused_resources", 0)
    assert await scraper.value(rig, ASSET, "thrashing_total") == 1


async def test_series_are_removed_when_idle(rig: AutopilotRig, scraper: Scraper) -> None:
    await uninstall(rig.client, "MetalLB")
    metallb = ("metallb.io", "MetalLB", "v1beta1")

    async def misses(*expected: tuple[str, ...]) -> bool:
        return await scraper.missing() == {*expected}

    for stop in (partial(rig.activate, BOTH), partial(rig.activate, "false")):
        await rig.activate(f"{BOTH},metallb-operator")
        assert await eventually(partial(misses, metallb), within=30)
        assert (await scraper.samples("dependency_opted_in"))[metallb] == 1
        await stop()
        assert await eventually(misses, within=30)
    assert await scraper.samples("dependency_opted_in") == {}
    assert await scraper.samples("missing_dependency") == {}
    assert await rig.events("CRDDiscovered") == [], "it is still missing"
    assert await scraper.samples("tombstone_status") == {}, "nobody looks for them"
    await rig.activate(BOTH)
    assert await scraper.becomes(rig, COMPLIES, 1)
    assert await scraper.samples("tombstone_status") != {}
    await rig.activate(BOTH, disabled_resources="{")
    assert await scraper.becomes(rig, COMPLIES, 0), "nothing is set right any more, which an alert should tell"


def test_render_failed_metric_names_reason_and_ends() -> None:
    registry = CollectorRegistry()
    gauges = AutopilotMetrics(registry)

    def series() -> set[tuple[str, str, str]]:
        samples = [one for family in registry.collect() for one in family.samples if one.name.endswith("render_failed")]
        return {(one.labels["asset"], one.labels["reason"], one.labels["code"]) for one in samples}

    gauges.render_failed("loki", "NoDefaultStorageClass")
    gauges.render_failed("swap", "")
    assert series() == {("loki", "configuration", "NoDefaultStorageClass"), ("swap", "internal", "TemplateError")}
    gauges.render_failed("loki", "")
    gauges.rendered("swap")
    assert series() == {("loki", "internal", "TemplateError")}


def test_failure_ends_report_only_metric() -> None:
    registry = CollectorRegistry()
    gauges, ref = AutopilotMetrics(registry), Ref(Kind("", "Service"), Key("somewhere", "one"))
    labels = {"kind": "Service", "namespace": "somewhere", "name": "one"}
    gauges.complies(ref, complies=False, only_reported=True)
    assert registry.get_sample_value("kubevirt_autopilot_report_only", labels) == 1
    gauges.complies(ref, complies=False)
    assert registry.get_sample_value("kubevirt_autopilot_report_only", labels) is None, "else no alert would fire"
    assert registry.get_sample_value("kubevirt_autopilot_compliance_status", labels) == 0


async def test_passes_continue_during_an_override(
    rig: AutopilotRig, control_plane: ControlPlane, tmp_path: Path
) -> None:
    hasty = replace(rig, options=replace(rig.options, period=0.5))
    async with serving(hasty, control_plane, tmp_path) as scraper:
        await activate_two(hasty)
        await hasty.activate(BOTH + ",hco-golden-config", drift="report", override_until="2999-01-01T00:00:00Z")
        assert await eventually(lambda: hasty.has_event("OverrideEnds", "hco-golden-config"), within=30)
        looks = await scraper.counts("asset_reconcile")

        async def looks_on() -> bool:
            return await scraper.counts("asset_reconcile") >= looks + 5

        assert await eventually(looks_on, within=30)


async def test_failure_and_missing_crd_metrics(rig: AutopilotRig, scraper: Scraper) -> None:
    missing = ("operator.openshift.io", "KubeDescheduler", "v1")
    assert await scraper.misses_nothing()
    await uninstall(rig.client, "KubeDescheduler", "MetalLB")

    async def is_missed() -> bool:
        return await scraper.missing() == {missing}

    assert await eventually(is_missed, within=30), "nobody asked for MetalLB"
    assert await scraper.becomes(rig, COMPLIES, None)
    await rig.activate(OTHER)
    assert await eventually(scraper.misses_nothing, within=30)
    await rig.activate(f"{OTHER},descheduler-dashboard")
    assert await eventually(is_missed, within=30), "what an asset waits for is missed as well as what it makes"
    await rig.activate(BOTH)
    await install(rig.client, "KubeDescheduler", "MetalLB")
    assert await scraper.becomes(rig, COMPLIES, 1)
    assert await eventually(scraper.misses_nothing, within=30)
    opted_in = await scraper.samples("dependency_opted_in")
    assert opted_in[missing] == 1
    assert opted_in["metallb.io", "MetalLB", "v1beta1"] == 0, "nobody asked for it"
    await rig.activate(BOTH, disabled_resources=f"[{{kind: Service, name: {rig.ref(OTHER).key.name}}}]")

    async def is_forgotten() -> bool:
        return await scraper.value(rig, OTHER, COMPLIES) is None

    assert await eventually(is_forgotten, within=30)
    await rig.annotate(ASSET, patch='[{"op": "replace", "path": "/spec/mode", "value": "Whatever"}]')
    assert await scraper.becomes(rig, COMPLIES, 0)
    assert await scraper.counts("asset_reconcile_errors") >= 1
    await rig.annotate(ASSET, patch=None)
    assert await scraper.becomes(rig, COMPLIES, 1)
