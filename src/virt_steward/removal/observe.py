"""Finds what virt-steward has left on a cluster. Lists are read page by page, and what is forbidden is reported."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import msgspec

from virt_steward.apis.crds import CRDS
from virt_steward.apis.installplanapprover import INSTALL_PLAN_APPROVER
from virt_steward.apis.kubevirtconfig import KUBEVIRT_CONFIG
from virt_steward.apis.virtplatformconfig import VIRT_PLATFORM_CONFIG
from virt_steward.catalog.load import load
from virt_steward.controllers import NAMES
from virt_steward.controllers.advisor.options import AdvisorOptions
from virt_steward.controllers.advisor.profiles import profiles
from virt_steward.controllers.advisor.records import name_of_record
from virt_steward.controllers.approver.olm import INSTALL_PLAN
from virt_steward.controllers.autopilot.rollouts.staged import ref_of_staging
from virt_steward.controllers.placement.observation import MACHINE
from virt_steward.holds.freezes import CONFIG_MAP_NAME as FREEZE
from virt_steward.insight.deployments import DEPLOYMENT, Deployment
from virt_steward.kube.client import EVERYTHING, Selection
from virt_steward.kube.discovery import CUSTOM_RESOURCE_DEFINITION
from virt_steward.kube.errors import Forbidden, NotFound
from virt_steward.objects.corekinds import CONFIG_MAP, NAMESPACE
from virt_steward.objects.identity import Key, Kind, Ref, key_of, kind_of, ref_of
from virt_steward.packaging.monitoring import MonitoringApis, MonitoringOptions
from virt_steward.packaging.parts import POLICIES, InstallOptions, installed
from virt_steward.plans.preimage import CONTROLLER_REVISION, PROFILE
from virt_steward.platform.hco import HYPERCONVERGED
from virt_steward.removal.found import FoundObject, InstallationSeen, Part, found_object
from virt_steward.runtime.access import APP_SELECTOR, LEASE, Installation, lease_of
from virt_steward.runtime.matters import memory_name
from virt_steward.runtime.standby import OtherLease

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable
    from datetime import datetime

    from virt_steward.kube.client import Reader


async def observe_installation(reader: Reader, namespace: str, hco: Key, now: datetime) -> InstallationSeen:
    """Find all that an installation in this namespace left, and whether its controllers run.

    `now` is the time of the API server: by a clock that is ahead, each Lease would be expired, and a controller that
    runs would be taken for stopped.
    """
    survey = _RemovalSurvey(reader, namespace)
    await survey.find_running(now)
    await survey.find_named(Part.POLICY, map(ref_of, POLICIES))
    await survey.find_crds()
    await survey.find_records(ref_of_staging(hco.namespace))
    for kind in _installed_kinds(namespace):
        await survey.find(Part.INSTALLATION, kind, Selection(labels=APP_SELECTOR, metadata_only=True))
    await survey.find_named(Part.NAMESPACE, [Ref(NAMESPACE, Key("", namespace))])
    for kind in _target_kinds():
        await survey.find(Part.TARGET, kind, Selection(metadata_only=True))
    found = survey.found.values()
    return InstallationSeen(namespace, tuple(found), tuple(survey.running), tuple(survey.problems))


class _RemovalSurvey:
    """Collects objects; one that is found twice counts as what it was found as first."""

    def __init__(self, reader: Reader, namespace: str) -> None:
        self.found: dict[Ref, FoundObject] = {}
        self.running: list[str] = []
        self.problems: list[str] = []
        self._reader = reader
        self._namespace = namespace

    async def find_running(self, now: datetime) -> None:
        for name in NAMES:
            lease = Ref(LEASE, Key(self._namespace, lease_of(name)))
            try:
                found = await self._reader.get(lease, OtherLease)
            except NotFound:
                continue
            except Forbidden as error:
                self.problems.append(str(error))
                continue
            if found.is_renewed(now, timedelta(seconds=found.duration)):
                self.running.append(f"{found.holder} renews {lease}")
        async for one in self._listed(DEPLOYMENT, Selection(labels=APP_SELECTOR)):
            deployment = msgspec.convert(one, Deployment)
            if deployment.spec.replicas:
                self.running.append(f"Deployment {key_of(one)} has {deployment.spec.replicas} replicas")

    async def find_named(self, part: Part, refs: Iterable[Ref]) -> None:
        for ref in refs:
            try:
                obj = await self._reader.get(ref)
            except NotFound:
                continue
            except Forbidden as error:
                self.problems.append(str(error))
                continue
            self._add(found_object(ref, part, obj))

    async def find_crds(self) -> None:
        for crd in CRDS:
            ref = Ref(CUSTOM_RESOURCE_DEFINITION, Key("", f"{crd.kind.plural}.{crd.kind.group}"))
            await self.find_named(Part.CRD, [ref])
            if ref in self.found:
                count = sum([1 async for _ in self._listed(crd.kind, Selection(metadata_only=True))])
                self.found[ref] = replace(self.found[ref], count=count)

    async def find_records(self, staging: Ref) -> None:
        home = self._namespace
        memories = tuple(memory_name(name) for name in NAMES)
        await self.find_named(Part.RECORD, [staging, *(Ref(LEASE, Key(home, lease_of(name))) for name in NAMES)])
        await self.find_named(Part.FREEZE, [Ref(CONFIG_MAP, Key(home, FREEZE))])
        async for one in self._listed(CONFIG_MAP, Selection(home, metadata_only=True)):
            if (name := key_of(one).name).startswith(name_of_record("")) or name in memories:
                self._add(found_object(Ref(CONFIG_MAP, key_of(one)), Part.RECORD, one))
        await self.find(Part.RECORD, CONTROLLER_REVISION, Selection(home, labels=PROFILE, metadata_only=True))

    async def find(self, part: Part, kind: Kind, selection: Selection) -> None:
        async for one in self._listed(kind, selection):
            found = found_object(Ref(kind, key_of(one)), part, one)
            if part is not Part.TARGET or found.managers or found.annotations or found.labels:
                self._add(found)

    async def _listed(self, kind: Kind, selection: Selection = EVERYTHING) -> AsyncIterator[dict[str, Any]]:
        """The objects of a kind, none if it is not served; what is forbidden is a problem."""
        try:
            async for page in self._reader.pages(kind, selection):
                for item in page.items:
                    yield msgspec.json.decode(item)
        except NotFound:
            return
        except Forbidden as error:
            self.problems.append(str(error))

    def _add(self, found: FoundObject) -> None:
        self.found.setdefault(found.ref, found)


def _installed_kinds(namespace: str) -> list[Kind]:
    """The kinds of which an installation consists, but for those that are found by their names."""
    everything = MonitoringOptions(MonitoringApis.ALL)
    options = InstallOptions(Installation(namespace), console=True, monitoring=everything)
    objects = [obj for part in installed(options).values() for obj in part]
    named = {NAMESPACE, CUSTOM_RESOURCE_DEFINITION, *map(kind_of, POLICIES)}
    return sorted({kind_of(obj) for obj in objects} - named)


def _target_kinds() -> list[Kind]:
    """The kinds whose objects controllers of ours write."""
    catalog = load()
    assets = {asset.object.kind for asset in catalog.assets} | {stone.ref.kind for stone in catalog.tombstones}
    plans = {ref.kind for one in profiles(AdvisorOptions(example_profile=True)) for ref in one.targets}
    return sorted({*assets, *plans, HYPERCONVERGED, INSTALL_PLAN, MACHINE, KUBEVIRT_CONFIG} - OWN_KINDS)


OWN_KINDS = {VIRT_PLATFORM_CONFIG, INSTALL_PLAN_APPROVER}
"""Their objects stay as they are, or go with their CRDs."""
