"""Acto's walk: every field of our kinds is changed again and again, and the end depends on the last state alone.

The walk follows the schemas that the API server has. Then fresh objects get the last state at once, and what the
controllers make of both is compared. The checker judges everything on the way.
"""

import asyncio
import random
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, closing, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.chaos.holds import PREFIX, Step
from tests.chaos.run import SHAPE, have_leaders
from tests.chaos.site import Site, a_judged_control_plane, a_site
from tests.chaos.walk import Change, changes_of
from tests.chaos.workload import ASSETS, SERVICE, Workload
from tests.checker.check import ALWAYS, check
from tests.checker.facts import Facts
from tests.checker.history import AuditReader
from tests.checker.writes import LEASES
from tests.controllers.advisor.rig import HCO, no_reboots, the_config
from tests.controllers.approver.lifecycle import an_approver
from tests.eventually import eventually
from tests.machines import a_config
from tests.machines import the_config as the_cluster
from virt_steward.apis.installplanapprover import INSTALL_PLAN_APPROVER
from virt_steward.controllers.advisor.profiles.load_aware_rebalancing import DESCHEDULER
from virt_steward.kube.discovery import CUSTOM_RESOURCE_DEFINITION
from virt_steward.kube.errors import BadRequest, Forbidden, Invalid, NotFound
from virt_steward.objects.identity import Key, Ref
from virt_steward.runtime.access import NAMESPACE
from virt_steward_demo.local.controlplane import ControlPlane
from virt_steward_demo.simulation.platform import SimulatedPlatform

Object = dict[str, Any]
SILENT = 2.5
UNTIL_SILENT = 60.0
PACE = 0.03
"""Seconds between two changes: some of them are seen one by one, some are not."""
TIMES = ("lastTransitionTime", "since", "until", "time", "at", "observedGeneration", "planGeneration")
ANNOTATIONS = {
    "ignore-fields": ("/metadata/labels/app", "/spec", "not a pointer", ""),
    "patch": ('[{"op":"add","path":"/metadata/labels/walked","value":"yes"}]', "[", '[{"op":"remove","path":"/no"}]'),
    "mode": ("unmanaged", "nonsense"),
    "reconcile-paused": ("true", "false", "maybe"),
    "drift": ("report", "enforce", "nonsense"),
    "override-until": ("2020-01-01T00:00:00Z", "2999-01-01T00:00:00Z", "soon"),
}


class Walker:
    """Walks, waits and compares on one cluster without faults."""

    def __init__(self, site: Site, log: AuditReader) -> None:
        self.site = site
        self.log = log
        self.accepted = self.refused = 0

    async def schema(self, ref: Ref) -> Object:
        crd = Ref(CUSTOM_RESOURCE_DEFINITION, Key("", f"{ref.kind.plural}.{ref.kind.group}"))
        version = (await self.site.client.get(crd))["spec"]["versions"][0]
        return dict(version["schema"]["openAPIV3Schema"]["properties"]["spec"])

    async def walk(self, ref: Ref, changes: list[Change], *below: str) -> None:
        """Every change in its turn; what the API server refuses is counted, too."""
        for change in changes:
            try:
                await self.site.client.merge_patch(ref, Change((*below, *change.path), change.value).patch())
                self.accepted += 1
            except (Invalid, BadRequest, Forbidden):
                self.refused += 1
            await asyncio.sleep(PACE)

    async def settled(self) -> None:
        replicas = self.site.replicas
        deadline = time.monotonic() + UNTIL_SILENT
        began = datetime.now(UTC)
        while time.monotonic() < deadline:
            await asyncio.sleep(0.3)
            ours = (one for one in self.log.history().writes if one.user in replicas and one.ref.resource != LEASES)
            last = max((one.answered for one in ours), default=began)
            if datetime.now(UTC) - max(last, began) > timedelta(seconds=SILENT):
                return
        raise TimeoutError(f"the controllers still write after {UNTIL_SILENT:g} s")

    async def delete(self, *refs: Ref) -> None:
        for ref in refs:
            with suppress(NotFound):
                await self.site.client.delete(ref)
        await self.settled()

    async def recreated(self, ref: Ref) -> None:
        """The same last state, given to a fresh object at once."""
        last = await self.site.client.get(ref)
        await self.delete(ref, DESCHEDULER)
        metadata = {name: last["metadata"][name] for name in ("name", "namespace") if name in last["metadata"]}
        fresh = {"apiVersion": last["apiVersion"], "kind": last["kind"], "metadata": metadata, "spec": last["spec"]}
        await self.site.client.apply(fresh, manager="admin", force=True)  # the advisor may have offered it meanwhile
        await self.settled()

    async def status(self, ref: Ref, *left_out: str) -> Object:
        status = (await self.site.client.get(ref)).get("status", {})
        return {name: timeless(value) for name, value in status.items() if name not in (*TIMES, *left_out)}


def timeless(value: Any) -> Any:
    """Without points in time and generations, which differ between two runs."""
    if isinstance(value, dict):
        return {name: timeless(inner) for name, inner in value.items() if name not in TIMES}
    return [timeless(inner) for inner in value] if isinstance(value, list) else value


@pytest.fixture(scope="module")
def judged(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    with a_judged_control_plane(tmp_path_factory.mktemp("judged")) as started:
        yield started


@pytest.fixture
async def walker(judged: ControlPlane, tmp_path: Path) -> AsyncIterator[Walker]:
    with closing(AuditReader(judged.audit_log)) as log:
        async with (
            a_site(judged, tmp_path) as site,
            SimulatedPlatform(site.client, SHAPE),
            _walking(site, log, tmp_path) as walker,
        ):
            yield walker


@asynccontextmanager
async def _walking(site: Site, log: AuditReader, folder: Path) -> AsyncIterator[Walker]:
    """All controllers run; at the end, the checker has its say."""
    work = Workload(site.client, 0, site.members)
    site.start_all(folder / "processes")
    try:
        assert await eventually(lambda: have_leaders(site), within=60)
        walker = Walker(site, log)
        yield walker
        facts = Facts(site.replicas, members=tuple(site.members), answers=tuple(site.journal))
        assert [str(one) for one in check(log.history(), facts, ALWAYS).violations] == []
        print(f"\nchanges: {walker.accepted} accepted, {walker.refused} refused")
        assert walker.accepted > 10
    finally:
        site.kill_all()
        await site.clear_leases()
        await work.clear()


async def test_cluster_does_not_remember_its_former_specs(walker: Walker) -> None:
    ref = the_cluster("walked")
    await walker.site.client.create(a_config("walked", Key(NAMESPACE, "east")))
    await walker.walk(ref, changes_of(await walker.schema(ref), 1), "spec")
    await walker.settled()
    walked = await walker.status(ref)
    await walker.recreated(ref)
    assert await walker.status(ref) == walked
    await walker.delete(ref)


async def test_approver_does_not_remember_its_former_specs(walker: Walker) -> None:
    """With dryRun, since an approval lasts."""
    await Workload(walker.site.client, 0, walker.site.members).run(Step(0, "slow-plan", 1))
    ref = Ref(INSTALL_PLAN_APPROVER, Key(NAMESPACE, "walked"))
    await an_approver(walker.site.client, NAMESPACE, "walked", dryRun=True)
    await walker.walk(ref, changes_of(await walker.schema(ref), 2, fixed=("dryRun",)), "spec")
    await walker.settled()
    walked = await walker.status(ref)
    await walker.recreated(ref)
    assert await walker.status(ref) == walked


async def configured(walker: Walker, action: str) -> Ref:
    spec = {"profile": the_config().key.name, "action": action, "options": no_reboots()}
    await eventually(lambda: _exists(walker, the_config()))
    await walker.site.client.merge_patch(the_config(), {"spec": spec}, manager="admin")
    return the_config()


async def _exists(walker: Walker, ref: Ref) -> bool:
    try:
        await walker.site.client.get(ref)
    except NotFound:
        return False
    return True


async def test_plan_does_not_depend_on_former_options(walker: Walker) -> None:
    ref = await configured(walker, "DryRun")
    await walker.walk(ref, changes_of(await walker.schema(ref), 3, fixed=("action", "profile")), "spec")
    await walker.settled()
    walked = await walker.status(ref)
    await walker.recreated(ref)
    assert await walker.status(ref) == walked


async def test_applied_object_does_not_depend_on_former_options(walker: Walker) -> None:
    ref = await configured(walker, "Apply")
    options = (await walker.schema(ref))["properties"]["options"]["properties"]["loadAware"]
    await walker.walk(ref, changes_of(options, 4, fixed=("enablePSIMetrics",)), "spec", "options", "loadAware")
    await walker.settled()
    walked = await walker.site.client.get(DESCHEDULER)
    await walker.recreated(ref)
    assert (await walker.site.client.get(DESCHEDULER))["spec"] == walked["spec"]


async def test_asset_does_not_remember_its_former_annotations(walker: Walker) -> None:
    scope = {f"{PREFIX}autopilot": SERVICE}
    await walker.site.client.merge_patch(HCO, {"metadata": {"annotations": scope}}, manager="admin")
    service = ASSETS[SERVICE]
    assert await eventually(lambda: _exists(walker, service))
    changes = [Change((f"{PREFIX}{name}",), value) for name, values in ANNOTATIONS.items() for value in (*values, None)]
    random.Random("annotations").shuffle(changes)
    await walker.walk(
        service, [*changes, Change((f"{PREFIX}patch",), ANNOTATIONS["patch"][0])], "metadata", "annotations"
    )
    await walker.settled()
    walked = await walker.site.client.get(service)
    given = {
        name: text
        for name, text in walked["metadata"]["annotations"].items()
        if name.removeprefix(PREFIX) in ANNOTATIONS
    }
    await walker.delete(service)
    assert await eventually(lambda: _exists(walker, service))
    await walker.walk(service, [Change((), given)], "metadata", "annotations")
    await walker.settled()
    assert content(await walker.site.client.get(service)) == content(walked)


def content(obj: Object) -> Object:
    """What users see of a Service; its addresses and the note of its uid are new each time."""
    annotations = {
        name: text for name, text in obj["metadata"]["annotations"].items() if not name.endswith("created-uid")
    }
    spec = {name: value for name, value in obj["spec"].items() if not name.startswith("clusterIP")}
    return {"labels": obj["metadata"]["labels"], "annotations": annotations, "spec": spec}
