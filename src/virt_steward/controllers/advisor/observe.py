"""Gathers the observation of one config, from caches alone."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING, Any

import msgspec

from virt_steward.controllers.advisor.adoption import Adopted, changed_since_adoption, has_offer, started_items
from virt_steward.controllers.advisor.observation import ALWAYS, AdvisorObservation, InvalidWindow, has_drifted
from virt_steward.controllers.advisor.phases import SETTLED
from virt_steward.controllers.advisor.profiles.profile import ProfileContext
from virt_steward.controllers.advisor.version_change import compare_versions
from virt_steward.controllers.advisor.watches import CONFIGS, OUR_DEFINITION
from virt_steward.holds.freezes import combined, state_of_spec
from virt_steward.holds.installation import FreezeView, freezes_in
from virt_steward.objects import windows
from virt_steward.objects.identity import Ref
from virt_steward.plans.drift import drift_of
from virt_steward.plans.execute import is_applied
from virt_steward.plans.fingerprint import fields_hash
from virt_steward.plans.intent import ref_to
from virt_steward.plans.rollback import deletes, is_rolled_back
from virt_steward.platform.hco import HYPERCONVERGED, Hco
from virt_steward.platform.health import NotReady, Ready, health_from_conditions
from virt_steward.platform.machineconfigs import MACHINE_CONFIG, machine_config_facts
from virt_steward.platform.pools import removal_health, rollout_health
from virt_steward.platform.sources import MACHINE_CONFIGS, POOLS
from virt_steward.runtime.informer import InformerState
from virt_steward.runtime.kinds import DEFINITIONS
from virt_steward.ssa.managers import ADVISOR

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator
    from datetime import datetime

    from virt_steward.apis.virtplatformconfig import PlanItem
    from virt_steward.controllers.advisor.integrity import AuthenticConfig
    from virt_steward.controllers.advisor.observation import VirtPlatformConfig
    from virt_steward.controllers.advisor.options import AdvisorOptions
    from virt_steward.controllers.advisor.profiles.profile import Profile
    from virt_steward.controllers.advisor.watches import TargetSources
    from virt_steward.holds.freezes import FreezeState
    from virt_steward.kube.discovery import Discovery
    from virt_steward.objects.identity import Key, Kind
    from virt_steward.platform.health import Health
    from virt_steward.runtime.clock import Clock
    from virt_steward.runtime.informer import Source
    from virt_steward.runtime.informers import InformerView
    from virt_steward.runtime.schemas import Schemas
    from virt_steward.runtime.standby import OtherLease

Object = dict[str, Any]


PATIENCE = 30.0
"""Seconds after which a cache is trusted again: what we wrote may have been deleted before the watch delivered it."""


class OwnWrites:
    """The resourceVersion that a cache must have reached, by object: until then it shows the state before our write."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._expected: dict[Ref, tuple[int, float]] = {}

    def expect(self, ref: Ref, version: str) -> None:
        self._expected[ref] = (int(version), self._clock.now() + PATIENCE)

    def is_behind(self, ref: Ref, version: str | None) -> bool:
        """Whether the cache is older than our write; `version` is None if it does not have the object."""
        expected, until = self._expected.get(ref, (0, 0.0))
        if (version is None or int(version) < expected) and self._clock.now() < until:
            return True
        self._expected.pop(ref, None)
        return False


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
    """The names of the endpoints to which this process can send notifications."""
    other_leases: Iterable[OtherLease] = ()
    """Those of other implementations of the advisor."""

    def other_ran_at(self) -> datetime | None:
        """When another implementation last renewed a Lease; None if none has left one."""
        return max((lease.spec.renew_time for lease in self.other_leases if lease.spec.renew_time), default=None)

    def config(self, key: Key) -> VirtPlatformConfig | None:
        return self.informers.of(CONFIGS).store.get(key)

    def is_unknown(self, key: Key) -> bool:
        """Whether a config that is not in the cache may exist."""
        return not self._is_synced() or self.informers.of(CONFIGS).store.unreadable(key) is not None

    def is_filling(self) -> bool:
        """Whether the configs are still being listed; their CRD exists."""
        return not self._is_synced() and self.informers.of(DEFINITIONS).store.get(OUR_DEFINITION) is not None

    def _is_synced(self) -> bool:
        return all(informer.state is InformerState.SYNCED for informer in self.informers.of(CONFIGS).informers)

    def target(self, ref: Ref) -> Object | None:
        source = self.sources.by_ref.get(ref)
        found = self.informers.of(source).store.get(ref.key) if source else None
        return found.object if found else None

    def context(self, config: VirtPlatformConfig, profile: Profile) -> ProfileContext:
        """What the profile may read."""
        hco = self.target(Ref(HYPERCONVERGED, self.options.hco))
        reads = profile.uses_machine_configs
        facts = {crd: self.schemas.facts(crd) for crd in profile.schemas}
        return ProfileContext(
            options=config.options,
            hco=Hco.of(hco) if hco else None,
            schemas={crd: found for crd, found in facts.items() if found},
            configs=tuple(self.informers.of(MACHINE_CONFIGS).store) if reads else (),
            pools=tuple(self.informers.of(POOLS).store) if reads else (),
            targets={ref: self.target(ref) for ref in profile.targets},
        )

    def observe(self, authentic: AuthenticConfig, profile: Profile, now: datetime) -> AdvisorObservation:
        config, integrity = authentic.config, authentic.integrity
        version = self.options.operator_version
        if config.spec.action == "Ignore":
            return AdvisorObservation(config, version, profile.about.impact, integrity=integrity)
        context = self.context(config, profile)
        other = integrity.status if isinstance(integrity, Adopted) else None
        if other and other.phase == "InProgress":
            config = _with_items(config, started_items(other.items, profile.intents(context)))
        status = config.status
        is_by_other_version = status.phase in SETTLED and status.operator_version != version and not other
        is_rollback = status.plan_action == "Rollback"
        is_written = (
            partial(is_rolled_back, manager=ADVISOR) if is_rollback else partial(is_applied, profile=profile.name)
        )
        targets = {item.name: context.targets.get(ref_to(item.target_ref)) for item in status.items}
        hashes = {item.name: fields_hash(targets[item.name], item.managed_fields) for item in status.items}
        drifted = [item for item in status.items if has_drifted(item, hashes[item.name])]
        return AdvisorObservation(
            config=config,
            version=version,
            impact=profile.about.impact,
            missing=tuple(self._missing(config, profile)),
            unsettled="; ".join(self._unsettled(profile)),
            inputs=profile.inputs(context),
            hashes=hashes,
            drift={item.name: drift_of(item, targets[item.name], ADVISOR) for item in drifted},
            written=frozenset(item.name for item in status.items if is_written(item, targets[item.name])),
            health={item.name: self.health(item, targets[item.name], rollback=is_rollback) for item in status.items},
            logic=compare_versions(profile, context, status.items) if is_by_other_version else None,
            window=window_of(config, now),
            freeze=self.freeze_of(config, now),
            gates_wanted=self.options.gates.of("advisor", config.spec.gates),
            gates_poll=timedelta(seconds=self.options.gates.poll_seconds),
            endpoints=self.endpoints,
            changed_since_adoption=changed_since_adoption(status, context.targets) if has_offer(status) else (),
            integrity=integrity,
        )

    def freeze_of(self, config: VirtPlatformConfig, now: datetime) -> FreezeState:
        """Whether its own freeze or that of the installation is in force."""
        namespace = self.options.namespace
        installation = FreezeView(self.informers.of(freezes_in(namespace)).store, namespace, "advisor")
        return freeze_of(config, installation.state(now), now)

    def health(self, item: PlanItem, live: Object | None, *, rollback: bool = False) -> Health:
        """Whether the target of an item that was applied, or rolled back, is ready."""
        if rollback and deletes(item):
            return self._removal(item)
        if ref_to(item.target_ref).kind != MACHINE_CONFIG:
            return health_from_conditions(live)
        if live is None:
            return NotReady(f"MachineConfig '{item.target_ref.name}' not found")
        rendered = {one.name: one for one in self.informers.of(MACHINE_CONFIGS).store}
        return rollout_health(machine_config_facts(msgspec.json.encode(live)), self.informers.of(POOLS).store, rendered)

    def _removal(self, item: PlanItem) -> Health:
        if ref_to(item.target_ref).kind != MACHINE_CONFIG:
            return Ready("Removed")
        labels = item.desired_state["metadata"].get("labels", {})
        return removal_health(item.target_ref.name, labels, self.informers.of(POOLS).store)

    def _missing(self, config: VirtPlatformConfig, profile: Profile) -> Iterator[str]:
        for one in profile.prerequisites(config.options):
            if not self._serves(one.kind) or (isinstance(one.what, Ref) and self.target(one.what) is None):
                yield one.missing

    def _unsettled(self, profile: Profile) -> Iterator[str]:
        """What has not been read yet. Unknown is not absent, so nothing is decided before all inputs are read."""
        yield from self._not_synced(CONFIGS)
        for ref in (*profile.targets, Ref(HYPERCONVERGED, self.options.hco)):
            source = self.sources.by_ref[ref]
            yield from self._not_synced(source)
            found = self.informers.of(source).store.get(ref.key)
            if self.freshness.is_behind(ref, found.metadata.resource_version if found else None):
                yield f"our write of {ref} is not in the cache yet"
        if profile.uses_machine_configs:
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


def _with_items(config: VirtPlatformConfig, items: tuple[PlanItem, ...]) -> VirtPlatformConfig:
    return msgspec.structs.replace(config, status=msgspec.structs.replace(config.status, items=items))


def freeze_of(config: VirtPlatformConfig, installation: FreezeState, now: datetime) -> FreezeState:
    """Whether its own freeze, or that of the installation, is in force."""
    return combined((state_of_spec(config.spec.freeze, "spec.freeze", now), installation))


def window_of(config: VirtPlatformConfig, now: datetime) -> windows.State | InvalidWindow:
    """Whether items of the plan may start now; always, if it has no window."""
    wanted = config.spec.window
    if wanted is None:
        return ALWAYS
    try:
        return windows.state([windows.Window.parse(wanted.schedule, wanted.duration, wanted.time_zone)], now)
    except windows.BadWindow as bad:
        return InvalidWindow(str(bad))
