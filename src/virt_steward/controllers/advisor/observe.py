"""Gathers what bears on one config, from caches alone."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import msgspec

from virt_steward.controllers.advisor.context import ProfileContext
from virt_steward.controllers.advisor.observation import ALWAYS, AdvisorObservation, InvalidWindow
from virt_steward.controllers.advisor.phases import SETTLED
from virt_steward.controllers.advisor.version_change import compare_versions
from virt_steward.controllers.advisor.watches import CONFIGS, OUR_DEFINITION
from virt_steward.objects import windows
from virt_steward.objects.identity import Ref
from virt_steward.plans.execute import is_applied
from virt_steward.plans.fingerprint import fields_hash
from virt_steward.plans.intent import ref_to
from virt_steward.plans.rollback import deletes, is_rolled_back
from virt_steward.platform.hco import HYPERCONVERGED, Hco
from virt_steward.platform.health import NotReady, Ready, by_conditions
from virt_steward.platform.machineconfigs import MACHINE_CONFIG, machine_config_facts
from virt_steward.platform.pools import removal, rollout
from virt_steward.platform.sources import MACHINE_CONFIGS, POOLS
from virt_steward.runtime.informer import InformerState
from virt_steward.runtime.kinds import DEFINITIONS

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator
    from datetime import datetime

    from virt_steward.apis.virtplatformconfig import PlanItem
    from virt_steward.controllers.advisor.observation import VirtPlatformConfig
    from virt_steward.controllers.advisor.options import AdvisorOptions
    from virt_steward.controllers.advisor.own_writes import OwnWrites
    from virt_steward.controllers.advisor.profiles.profile import Profile
    from virt_steward.controllers.advisor.watches import TargetSources
    from virt_steward.kube.discovery import Discovery
    from virt_steward.objects.identity import Key, Kind
    from virt_steward.platform.health import Health
    from virt_steward.runtime.informer import Source
    from virt_steward.runtime.informers import InformerView
    from virt_steward.runtime.schemas import Schemas

Object = dict[str, Any]


@dataclass(frozen=True, slots=True)
class AdvisorClusterView:
    """All that the advisor reads."""

    informers: InformerView
    sources: TargetSources
    schemas: Schemas
    discovery: Discovery
    freshness: OwnWrites
    options: AdvisorOptions
    endpoints: Collection[str] = ()
    """Where this process can send notices, by name."""

    def config(self, key: Key) -> VirtPlatformConfig | None:
        return self.informers.of(CONFIGS).store.get(key)

    def is_unknown(self, key: Key) -> bool:
        """Whether a config that seems absent may be there."""
        return not self._is_synced() or self.informers.of(CONFIGS).store.unreadable(key) is not None

    def is_filling(self) -> bool:
        """Whether configs are still to be read: their definition is there."""
        return not self._is_synced() and self.informers.of(DEFINITIONS).store.get(OUR_DEFINITION) is not None

    def _is_synced(self) -> bool:
        return all(informer.state is InformerState.SYNCED for informer in self.informers.of(CONFIGS).informers)

    def target(self, ref: Ref) -> Object | None:
        source = self.sources.by_ref.get(ref)
        found = self.informers.of(source).store.get(ref.key) if source else None
        return found.object if found else None

    def context(self, config: VirtPlatformConfig, profile: Profile) -> ProfileContext:
        """What the profile may look at."""
        hco = self.target(Ref(HYPERCONVERGED, self.options.hco))
        reads = profile.reads_machine_configs
        facts = {crd: self.schemas.facts(crd) for crd in profile.schemas}
        return ProfileContext(
            options=config.options,
            hco=Hco.of(hco) if hco else None,
            schemas={crd: found for crd, found in facts.items() if found},
            configs=tuple(self.informers.of(MACHINE_CONFIGS).store) if reads else (),
            pools=tuple(self.informers.of(POOLS).store) if reads else (),
            targets={ref: self.target(ref) for ref in profile.targets},
        )

    def observe(self, config: VirtPlatformConfig, profile: Profile, now: datetime) -> AdvisorObservation:
        if config.spec.action == "Ignore":
            return AdvisorObservation(config, self.options.operator_version, profile.about.impact)
        context = self.context(config, profile)
        status = config.status
        is_done_by_another = status.phase in SETTLED and status.operator_version != self.options.operator_version
        is_back = status.plan_action == "Rollback"
        is_written = is_rolled_back if is_back else partial(is_applied, profile=profile.name)
        targets = {item.name: context.targets.get(ref_to(item.target_ref)) for item in status.items}
        return AdvisorObservation(
            config=config,
            version=self.options.operator_version,
            impact=profile.about.impact,
            missing=tuple(self._missing(config, profile)),
            unsettled="; ".join(self._unsettled(profile)),
            inputs=profile.inputs(context),
            hashes={item.name: fields_hash(targets[item.name], item.managed_fields) for item in status.items},
            written=frozenset(item.name for item in status.items if is_written(item, targets[item.name])),
            health={item.name: self.health(item, targets[item.name], back=is_back) for item in status.items},
            logic=compare_versions(profile, context, status.items) if is_done_by_another else None,
            window=_window(config, now),
            endpoints=self.endpoints,
        )

    def health(self, item: PlanItem, live: Object | None, *, back: bool = False) -> Health:
        """Whether an item that was applied, or taken back, works by now."""
        if back and deletes(item):
            return self._withdrawn(item)
        if ref_to(item.target_ref).kind != MACHINE_CONFIG:
            return by_conditions(live)
        if live is None:
            return NotReady(f"MachineConfig '{item.target_ref.name}' is not there (any more)")
        rendered = {one.name: one for one in self.informers.of(MACHINE_CONFIGS).store}
        return rollout(machine_config_facts(msgspec.json.encode(live)), self.informers.of(POOLS).store, rendered)

    def _withdrawn(self, item: PlanItem) -> Health:
        if ref_to(item.target_ref).kind != MACHINE_CONFIG:
            return Ready("Removed")
        labels = item.desired_state["metadata"].get("labels", {})
        return removal(item.target_ref.name, labels, self.informers.of(POOLS).store)

    def _missing(self, config: VirtPlatformConfig, profile: Profile) -> Iterator[str]:
        for one in profile.prerequisites(config.options):
            if not self._serves(one.kind) or (isinstance(one.what, Ref) and self.target(one.what) is None):
                yield str(one)

    def _unsettled(self, profile: Profile) -> Iterator[str]:
        """Unknown is not absent: nothing is decided before all that is read has been read."""
        yield from self._not_synced(CONFIGS)
        for ref in (*profile.targets, Ref(HYPERCONVERGED, self.options.hco)):
            source = self.sources.by_ref[ref]
            yield from self._not_synced(source)
            found = self.informers.of(source).store.get(ref.key)
            if self.freshness.is_behind(ref, found.metadata.resource_version if found else None):
                yield f"our change of {ref} has not come back yet"
        if profile.reads_machine_configs:
            yield from self._not_synced(MACHINE_CONFIGS)
            yield from self._not_synced(POOLS)
        for crd in profile.schemas:
            plural, _, group = crd.partition(".")
            if self.discovery.serves(group, plural) and self.schemas.facts(crd) is None:
                yield f"the schema of {crd} has not been read yet"

    def _not_synced(self, source: Source[Any]) -> Iterator[str]:
        for informer in self.informers.of(source).informers:
            is_absent = informer.state is InformerState.ABSENT and not self._serves(source.kind)
            if informer.state is not InformerState.SYNCED and not is_absent:
                yield f"{source.kind} {informer.trouble or informer.state.value}"

    def _serves(self, kind: Kind) -> bool:
        return not kind.group or self.discovery.serves(kind.group, kind.plural)


def _window(config: VirtPlatformConfig, now: datetime) -> windows.State | InvalidWindow:
    wanted = config.spec.window
    if wanted is None:
        return ALWAYS
    try:
        return windows.state([windows.Window.parse(wanted.schedule, wanted.duration, wanted.time_zone)], now)
    except windows.BadWindow as bad:
        return InvalidWindow(str(bad))
