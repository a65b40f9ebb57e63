"""Storage classes: which is the default of the cluster, and which the StorageProfiles of CDI describe as shared."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec

from virt_steward.objects.identity import Kind
from virt_steward.objects.meta import Meta

if TYPE_CHECKING:
    from collections.abc import Iterable

STORAGE_CLASS = Kind("storage.k8s.io", "StorageClass", "storageclasses")
STORAGE_PROFILE = Kind("cdi.kubevirt.io", "StorageProfile", "storageprofiles")
_IS_DEFAULT = (
    "storageclass.kubernetes.io/is-default-class",
    "storageclass.beta.kubernetes.io/is-default-class",
)


@dataclass(frozen=True, slots=True)
class Storage:
    shared: tuple[str, ...] = ()
    """Classes whose file systems several nodes can use at once, by name."""
    default: str = ""
    """The default class; empty if there is none."""
    knows_classes: bool = True
    """False: a file describes the cluster, and has no class."""


class ProfileFacts(msgspec.Struct, frozen=True, gc=False):
    """One StorageProfile, which has the name of its storage class."""

    metadata: Meta
    is_shared: bool = False


def profile_facts(raw: bytes) -> ProfileFacts:
    """Decode a StorageProfile."""
    profile = _DECODER.decode(raw)
    return ProfileFacts(profile.metadata, any(one.is_shared for one in profile.status.claim_property_sets))


class ClassMeta(Meta, frozen=True):
    creation_timestamp: str = ""
    annotations: dict[str, str] = msgspec.field(default_factory=dict)


class StorageClassFacts(msgspec.Struct, frozen=True):
    """One StorageClass."""

    metadata: ClassMeta

    @property
    def is_default(self) -> bool:
        return any(self.metadata.annotations.get(key) == "true" for key in _IS_DEFAULT)


def summarize_storage(profiles: Iterable[ProfileFacts], classes: Iterable[StorageClassFacts]) -> Storage:
    shared = tuple(sorted(profile.metadata.name for profile in profiles if profile.is_shared))
    return Storage(shared, _default(classes))


def _default(classes: Iterable[StorageClassFacts]) -> str:
    """Of several default classes the newest counts, as for claims without a class; then the first by name."""
    by_name = sorted((one.metadata for one in classes if one.is_default), key=lambda one: one.name)
    return max(by_name, key=lambda one: one.creation_timestamp).name if by_name else ""


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
