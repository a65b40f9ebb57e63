"""The metadata that every projection of an object keeps."""

from __future__ import annotations

import msgspec

from virt_steward.objects.identity import Key


class Meta(msgspec.Struct, frozen=True, rename="camel", gc=False):
    """Extend it with what else a projection reads: labels, annotations, ownerReferences."""

    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""

    @property
    def key(self) -> Key:
        return Key(self.namespace, self.name)


class Existing(msgspec.Struct, frozen=True, gc=False):
    """An object of which only the existence matters: the smallest projection."""

    metadata: Meta
