"""What the advisor watches, and which configs a change concerns."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

import msgspec

from virt_steward.apis.virtplatformconfig import VIRT_PLATFORM_CONFIG, VIRT_PLATFORM_CONFIG_CRD, VirtPlatformConfigSpec
from virt_steward.controllers.advisor.observation import VirtPlatformConfig, VirtPlatformConfigMeta
from virt_steward.kube.client import Selection
from virt_steward.kube.watch import projection
from virt_steward.objects.identity import Key, Ref
from virt_steward.objects.meta import Meta
from virt_steward.platform.hco import HYPERCONVERGED
from virt_steward.platform.sources import MACHINE_CONFIGS, POOLS
from virt_steward.runtime.controller import Trigger, itself
from virt_steward.runtime.informer import Source
from virt_steward.runtime.kinds import DEFINITIONS

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Sequence

    from virt_steward.controllers.advisor.profiles.profile import Profile
    from virt_steward.runtime.store import Store


class ConfigWithoutStatus(msgspec.Struct, frozen=True):
    """A VirtPlatformConfig as users write it."""

    metadata: VirtPlatformConfigMeta
    spec: VirtPlatformConfigSpec


_CONFIG = projection(VirtPlatformConfig)
_WITHOUT_STATUS = projection(ConfigWithoutStatus)


def decode_config(raw: bytes) -> VirtPlatformConfig:
    """Decode a config; a status that cannot be read is not ours, and counts as empty until it is replaced."""
    try:
        return _CONFIG(raw)
    except msgspec.ValidationError:
        config = _WITHOUT_STATUS(raw)
        return VirtPlatformConfig(config.metadata, config.spec)


CONFIGS = Source(VIRT_PLATFORM_CONFIG, decode_config)

_OBJECT = msgspec.json.Decoder(dict[str, Any])
OUR_DEFINITION = Key("", VIRT_PLATFORM_CONFIG_CRD.manifest()["metadata"]["name"])


@dataclass(frozen=True, slots=True)
class WatchedTarget:
    """A named object that a profile writes or reads, kept as a whole: there are only a few of them."""

    metadata: Meta
    object: dict[str, Any]


def decode_target(raw: bytes) -> WatchedTarget:
    obj = _OBJECT.decode(raw)
    return WatchedTarget(msgspec.convert(obj["metadata"], Meta), obj)


class TargetSources:
    """One source for each object that some profile writes, and for the HyperConverged that they read."""

    def __init__(self, profiles: Sequence[Profile], hco: Key) -> None:
        refs = {ref for profile in profiles for ref in profile.targets} | {Ref(HYPERCONVERGED, hco)}
        self.by_ref: dict[Ref, Source[WatchedTarget]] = {ref: _target_source(ref) for ref in sorted(refs)}


@cache
def _target_source(ref: Ref) -> Source[WatchedTarget]:
    """One source per object, so that the console shares the watches of the advisor in its process."""
    return Source(ref.kind, decode_target, Selection.one(ref.key))


class AdvisorEventHandlers:
    """Maps each change to the configs that it can concern; those with action Ignore are not queued."""

    def __init__(self, profiles: Sequence[Profile], sources: TargetSources, configs: Store[VirtPlatformConfig]) -> None:
        self.profiles = profiles
        self._sources = sources
        self._configs = configs

    @property
    def triggers(self) -> tuple[Trigger[Any], ...]:
        return (
            Trigger(CONFIGS, itself),
            Trigger(DEFINITIONS, self._by_definition),
            Trigger(MACHINE_CONFIGS, self._by_machine_config),
            Trigger(POOLS, self._by_machine_config),
            *(Trigger(source, self._by_target(ref)) for ref, source in self._sources.by_ref.items()),
        )

    def active(self, profiles: Iterable[Profile] | None = None) -> Collection[Key]:
        """The configs of these profiles, or of all, whose action is not Ignore."""
        keys = (Key("", profile.name) for profile in (self.profiles if profiles is None else profiles))
        return [key for key in keys if (config := self._configs.get(key)) and config.spec.action != "Ignore"]

    def _by_definition(self, key: Key, _before: object, after: object) -> Iterable[Key]:
        """Once our own kind is served, profiles can be offered."""
        if after is None or key != OUR_DEFINITION:
            return ()
        return [Key("", profile.name) for profile in self.profiles if profile.about.is_advertised]

    def _by_machine_config(self, _key: Key, _before: object, _after: object) -> Iterable[Key]:
        return self.active(profile for profile in self.profiles if profile.uses_machine_configs)

    def _by_target(self, ref: Ref) -> Callable[[Key, Any, Any], Iterable[Key]]:
        def handler(_key: Key, _before: object, _after: object) -> Iterable[Key]:
            if ref.kind == HYPERCONVERGED:  # all profiles read it
                return self.active()
            return self.active(profile for profile in self.profiles if ref in profile.targets)

        return handler
