"""One asset: what its folder declares, and the template of the one object that it wants."""

from __future__ import annotations

import re
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from virt_steward.catalog.conditions import Condition
from virt_steward.catalog.reads import NOTHING, Needs, Reads, kind_in
from virt_steward.platform.hco import HYPERCONVERGED

if TYPE_CHECKING:
    from collections.abc import Collection

    from virt_steward.catalog.reads import ObjectRead
    from virt_steward.objects.identity import Kind

SERVED = "@served"
"""As an apiVersion: whichever version of the HCO's kind is served."""
HCO_NAMESPACE = "@hco"
"""As a namespace: where the HCO is."""
_NAME = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")


class Install(StrEnum):
    """Whether an asset is wanted unless something speaks against it, or only if somebody asks for it."""

    ALWAYS = "always"
    OPT_IN = "opt-in"


class AssetTarget(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """Which object an asset wants."""

    api_version: str
    kind_name: str = msgspec.field(name="kind")
    plural: str
    name: str
    namespace: str = ""

    def __post_init__(self) -> None:
        if self.api_version == SERVED and self.kind_name != HYPERCONVERGED.name:
            raise ValueError(f"only a {HYPERCONVERGED.name} may have the apiVersion {SERVED}")

    @property
    def kind(self) -> Kind:
        if self.api_version == SERVED:
            return HYPERCONVERGED
        return kind_in(self.api_version, self.kind_name, self.plural)

    @property
    def version(self) -> str:
        return self.api_version.rpartition("/")[2]


class Feature(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What people know an asset by; several may belong to one feature."""

    name: str
    maturity: Literal["GA", "TP", "DP"]
    requires: tuple[str, ...] = ()


class Declaration(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What asset.yaml says."""

    name: str
    summary: str
    object: AssetTarget
    feature: Feature | None = None
    """None: part of the autopilot itself."""
    group: str = ""
    phase: int = 1
    order: int = msgspec.field(name="reconcile_order", default=1)
    install: Install = Install.ALWAYS
    gate_crd: str = ""
    conditions: tuple[Condition, ...] = ()
    reads: Reads = NOTHING
    params: dict[str, Any] = {}
    files: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.name):
            raise ValueError(f"{self.name!r} is no name: lower-case letters, digits and dashes")
        if (self.phase == 0) is not (self.object.kind == HYPERCONVERGED):
            raise ValueError(f"phase 0 is for the {HYPERCONVERGED.name}, and for nothing else")


class Asset(Declaration, frozen=True, kw_only=True):
    """A folder of the catalog, read."""

    template: str
    contents: dict[str, str]
    """The files beside it, by name."""
    path: str
    """Of the template, within the catalog."""

    def in_scope(self, names: Collection[str]) -> bool:
        """Whether an allow-list names it, or its group."""
        return self.name in names or (bool(self.group) and self.group in names)

    @property
    def reads_itself(self) -> ObjectRead | None:
        """What its template reads of the very object that it makes, if it does."""
        target = self.object
        own = (target.kind, target.namespace, target.name)
        return next((one for one in self.reads.objects.values() if (one.kind, one.namespace, one.name) == own), None)

    @property
    def needs(self) -> Needs:
        """All that its template and its conditions read."""
        return Needs.union((Needs.of(self.reads), *(condition.needs for condition in self.conditions)))
