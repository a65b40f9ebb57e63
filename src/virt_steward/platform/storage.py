"""Storage classes, as far as the StorageProfiles of CDI describe them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec

from virt_steward.objects.identity import Kind
from virt_steward.objects.meta import Meta

if TYPE_CHECKING:
    from collections.abc import Iterable

STORAGE_PROFILE = Kind("cdi.kubevirt.io", "StorageProfile", "storageprofiles")


@dataclass(frozen=True, slots=True)
class Storage:
    shared: tuple[str, ...] = ()
    """Classes whose file systems several nodes can use at once, by name."""


class ProfileFacts(msgspec.Struct, frozen=True, gc=False):
    """One StorageProfile, which has the name of its storage class."""

    metadata: Meta
    is_shared: bool = False


def profile_facts(raw: bytes) -> ProfileFacts:
    """Decode a StorageProfile."""
    profile = _DECODER.decode(raw)
    return ProfileFacts(profile.metadata, any(one.is_shared for one in profile.status.claim_property_sets))


def summarize_storage(profiles: Iterable[ProfileFacts]) -> Storage:
    return Storage(tuple(sorted(profile.metadata.name for profile in profiles if profile.is_shared)))


class _ClaimProperties(msgspec.Struct, rename="camel"):
    access_modes: tuple[str, ...] = ()
    volume_mode: str | None = None

    @property
    def is_shared(self) -> bool:
        """Without a volume mode, a claim is for a file system."""
        return "ReadWriteMany" in self.access_modes and self.volume_mode in (None, "", "Filesystem")


class _ProfileStatus(msgspec.Struct, rename="camel"):
    claim_property_sets: tuple[_ClaimProperties, ...] = ()


class _RawProfile(msgspec.Struct):
    metadata: Meta
    status: _ProfileStatus = msgspec.field(default_factory=_ProfileStatus)


_DECODER = msgspec.json.Decoder(_RawProfile)
